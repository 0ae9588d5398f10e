"""Circuits of behaviours in the explorer: the drawing of a set's, its pairs side by side, and patching by hand."""

import re
import shutil

import duckdb
import pytest
import torch
from conftest import Explored
from explorer_figures import PHONE, figure, saved_rows
from invented_prompts import EDGES, RIVERS, insert_prompts, node_rows, only_asked, repeats_of
from invented_study import STEPS, Model

from headstream.asked_model import patch
from headstream.models.prompts.exact_effects import exact_node_effects
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import base_run
from headstream.models.transformer import Transformer
from headstream.tasks.report.explorer import explorer_contents
from headstream.tasks.report.explorer.explorer_contents import write_explorer
from headstream.tasks.results.sql import run_sql
from headstream.tasks.results.study_results import open_results
from headstream.tasks.training.checkpoints import load_model

expect = pytest.importorskip("playwright.sync_api").expect

CIRCUIT, BY_SIZE = "Circuit of repeats", "How much circuits of repeats make"
ON_PAIR, MEAN = "What each head is worth, nats, on this pair", "What each head is worth, nats, mean over the set"
OWN = "set=%2B&clean=the+cold+river+runs+to+the&corrupt=the+deep+river+runs+to+the&answer=+sea&wrong=+water"
SEEN = (
    "2L4H/L1H3?view=circuits&set=repeats&edge=L0H0-L1H3-K",
    "2L4H/L1H3?view=text&set=repeats&patched=L0H0",
    "2L4H/L1H3?view=text&set=rivers&into=corrupt",
    f"2L4H/L1H3?view=text&{OWN}",
)


def in_16_bits(explored: Explored) -> Transformer:
    model = load_model(explored.files[Model().model_id].checkpoints, STEPS[-1])
    for parameter in model.parameters():
        parameter.data = parameter.half().float()
    return model


@pytest.fixture(scope="module")
def asked(explored: Explored, tmp_path_factory) -> Explored:
    """The invented study with two prompt sets."""
    folder = tmp_path_factory.mktemp("asked")
    shutil.copy(explored.warehouse, folder / "w.duckdb")
    insert_prompts(folder / "w.duckdb", Model().model_id, in_16_bits(explored), explored.tokens, STEPS[-1])
    with open_results(folder / "w.duckdb", "invented") as results:
        write_explorer(results, explored.files, folder / "explorer.html", [])
    return explored._replace(page=folder / "explorer.html", warehouse=folder / "w.duckdb")


@pytest.fixture(scope="module")
def alone(asked: Explored, tmp_path_factory) -> Explored:
    """The same study, of which nothing but the prompt sets was measured."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copy(asked.warehouse, folder / "w.duckdb")
    with duckdb.connect(folder / "w.duckdb") as connection:
        only_asked(connection)
    with open_results(folder / "w.duckdb", "invented") as results:
        write_explorer(results, asked.files, folder / "explorer.html", [])
    return asked._replace(page=folder / "explorer.html", warehouse=folder / "w.duckdb")


@pytest.mark.parametrize("view", ["heads", "text", "circuits", "about"])
def test_a_study_of_behaviours_alone_has_every_view(visit, alone, view):
    tab = visit(f"2L4H?view={view}", page=alone.page)
    seen = {"heads": "no scores of heads", "text": "Where token", "circuits": CIRCUIT, "about": "Models"}[view]
    expect(tab.locator("main")).to_contain_text(seen)


def test_a_head_that_carries_a_behaviour_says_so_on_its_card(visit, alone):
    head = strongest_head(alone)
    card = visit("2L4H", page=alone.page).get_by_label("The chosen head")
    expect(card.get_by_role("heading", level=2)).to_have_text(head)
    expect(card).to_contain_text(re.compile(f"In (repeats|rivers): (Without {head}, |{head} works against it)"))


def strongest_head(asked: Explored) -> str:
    query = "SELECT node FROM node_effects WHERE node LIKE '%H%' ORDER BY abs(share) DESC LIMIT 1"
    with duckdb.connect(asked.warehouse, read_only=True) as connection:
        ((name,),) = connection.execute(query).fetchall()
    return name


@pytest.fixture
def look(visit, asked: Explored):
    return lambda hash_, page=asked.page, **options: visit(hash_, page=page, **options)


# Circuits


def test_a_circuit_is_drawn_with_as_many_edges_as_the_slider_says(look):
    page = look("2L4H/L1H3?view=circuits")
    page.get_by_role("combobox", name="Circuit").select_option("repeats")
    assert "set=repeats" in page.url
    output = page.locator("output[aria-live]")
    assert output.text_content() == "3 of 7, f = 0.91 (4 random edges 0.00 to 0.10)"
    assert page.locator(".edge").count() == 3
    slider = page.get_by_role("slider", name="Edges of the circuit")
    slider.press("ArrowRight")
    assert output.text_content() == "4 of 7, 1 of them on no path, f = 0.57 (random edges 0.00 to 0.10)"
    assert page.locator(".edge").count() == 3
    slider.press("End")
    assert page.locator(".edge").count() == len(EDGES) - 1  # all but the one to a head that leads nowhere
    slider.fill("6")
    known = "f = 0.57 at 4 (random edges 0.00 to 0.10), 1.00 at 7 (random edges 0.00 to 0.10)"
    assert output.text_content() == f"6 of 7, 2 of them on no path, {known}"  # the seventh leads on from one
    slider.press("Home")
    assert page.locator(".edge").count() == 0
    assert "No path of these edges" in figure(page, CIRCUIT).text_content()


def test_an_edge_that_is_pointed_at_says_what_it_is_worth(look):
    page = look("2L4H/L1H3?view=circuits&set=repeats&edges=7")
    said = page.locator(".pointed")
    page.locator("[data-edge=L0H0-L1H3-K] path").nth(1).hover(force=True)
    expected = "L0H0 → K of L1H3: share 0.950 (95 %: 0.850 to 1.050), first-order 0.800, surely in, in the circuit"
    expect(said).to_have_text(f"{expected}, in 50 % of resamples.")
    page.get_by_label("logits").first.hover()
    page.locator("[data-edge=L1H3-logits-in]").focus()
    expect(said).to_contain_text("L1H3 → logits: share 1")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert "edge=L0H0-L1H3-K" in page.url
    expect(page.locator("[data-edge=L0H0-L1H3-K]")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name=re.compile("^L0H0, .*share")).click()
    assert page.locator("aside h2").text_content() == "L0H0"


def test_a_circuits_sql_gives_its_rows(look, asked: Explored):
    page = look("2L4H/L1H3?view=circuits&set=repeats&edges=7")
    for title, n in ((CIRCUIT, len(EDGES) - 1), (BY_SIZE, 5)):
        rows = saved_rows(page, title)
        assert len(rows) == n
        assert run_sql(asked.warehouse, figure(page, title).locator("pre").text_content()).num_rows >= n
    assert [row["random_high"] for row in rows] == ["0.1", "0.1", "", "0.1", "0.1"]


def test_a_set_that_a_model_cant_do_has_no_circuit(look):
    page = look("2L4H/L1H3?view=circuits&set=rivers")
    expect(page.locator("main .empty")).to_have_text("There is no circuit of rivers in 2L4H.")
    assert "that it can do rivers is not shown" in page.locator("main").text_content()


# Pairs


def test_a_pair_stands_side_by_side_and_each_node_has_its_effect(look, asked: Explored):
    page = look("2L4H/L1H3?view=text")
    page.get_by_role("combobox", name="Read").select_option("repeats")
    model = in_16_bits(asked)
    read = repeats_of(asked.tokens, model).kept[0].tokens
    pairs = Pairs(*(torch.tensor([part]) for part in read))
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    headings = page.locator("h4").all_text_contents()
    for heading, run in zip(headings, (clean, corrupt), strict=True):
        odds = float(re.search(r": (-?[\d.]+) nats", heading)[1])
        assert odds == pytest.approx(pairs.log_odds(run.logits).item(), abs=1e-3)
    assert page.locator("mark").count() == 2
    for way, effects in zip(("clean", "corrupt"), exact_node_effects(clean, corrupt, pairs), strict=True):
        page.get_by_role("combobox", name="Patch the").select_option(way)
        column = "effect_nats" if way == "clean" else "restored_nats"
        figure(page, ON_PAIR).get_by_text("Fall" if way == "clean" else "Rise").wait_for()
        found = [float(row[column]) for row in saved_rows(page, ON_PAIR)]
        assert found == pytest.approx(effects[1:, 0].tolist(), abs=1e-4)


def test_heads_are_patched_by_a_click_and_by_a_key(look, asked: Explored):
    page = look("2L4H/L1H3?view=text&set=repeats")
    model = in_16_bits(asked)
    pairs = Pairs(*(torch.tensor([part]) for part in repeats_of(asked.tokens, model).kept[0].tokens))
    runs = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    effect = exact_node_effects(*runs, pairs)[0][2, 0].item()
    before = pairs.log_odds(runs[0].logits).item()
    page.locator("[data-node=L0H1]").click()
    said = page.locator(".pointed")
    expect(said).to_contain_text("With L0H1 of the corrupt run")
    numbers = re.search(r"from (\S+) to (\S+) nats", said.text_content())
    assert [float(number) for number in numbers.groups()] == pytest.approx([before, before - effect], abs=1e-3)
    page.locator("[data-node=L0H1]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(said).to_contain_text("With L0H1, L0H2 of the corrupt run")
    assert "patched=L0H1%2CL0H2" in page.url
    expect(page.locator("[data-node=L0H2]")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Patch nothing").click()
    expect(said).to_contain_text("Nothing is patched")


def test_effects_over_a_set_are_the_measured_means(look, asked: Explored):
    page = look("2L4H/L1H3?view=text&set=repeats&effects=mean")
    model = in_16_bits(asked)
    expected = {row["node"]: row["effect_nats"] for row in node_rows(model, repeats_of(asked.tokens, model))}
    found = {row["node"]: float(row["effect_nats"]) for row in saved_rows(page, MEAN)}
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert run_sql(asked.warehouse, figure(page, MEAN).locator("pre").text_content()).num_rows == len(found)


def test_ones_own_pair_is_read_and_patched(look, asked: Explored):
    page = look("2L4H/L1H3?view=text&set=rivers")
    page.get_by_role("combobox", name="Read").select_option("+")
    clean, corrupt = (page.get_by_role("textbox", name=name) for name in ("Clean prompt", "Corrupt prompt"))
    first = RIVERS[0]
    assert clean.input_value() == first.prompt  # it begins with the pair that was shown
    corrupt.fill("the clear river runs down to")
    expect(page.locator(".empty")).to_contain_text(re.compile("the prompts have|an answer merges"))
    corrupt.fill(first.corrupt)
    expected = patch(in_16_bits(asked), asked.tokens, first.prompt, first.corrupt, *first.answers, *first.wrong)
    figure(page, ON_PAIR).wait_for()
    found = {row["node"]: float(row["effect_nats"]) for row in saved_rows(page, ON_PAIR)}
    assert found == pytest.approx(expected.effect_nats.to_dict(), abs=1e-4)
    heading = page.locator("h4").first.text_content()
    assert float(re.search(r": (-?[\d.]+) nats", heading)[1]) == pytest.approx(expected.attrs["clean_nats"], abs=1e-3)
    again = look(page.url.partition("#")[2])  # the address holds the pair, too
    assert again.locator("h4").first.text_content() == heading


def test_a_model_that_does_not_run_here_shows_what_was_measured(look, asked: Explored, tmp_path, monkeypatch):
    monkeypatch.setattr(explorer_contents, "WEIGHT_BYTES", 0)
    with open_results(asked.warehouse, "invented") as results:
        write_explorer(results, asked.files, tmp_path / "kept.html", [])
    page = look("2L4H/L1H3?view=text&set=repeats", page=tmp_path / "kept.html")
    figure(page, MEAN).wait_for()
    assert page.locator("[data-node]").first.get_attribute("role") == "img"
    assert page.get_by_role("combobox", name="Patch the").count() == 0
    odds = run_sql(asked.warehouse, "SELECT clean_nats FROM prompts WHERE prompts = 'repeats' AND pair = 0")
    found = re.search(r": (-?[\d.]+) nats", page.locator("h4").first.text_content())[1]
    assert float(found) == pytest.approx(odds["clean_nats"][0].as_py(), abs=1e-3)
    assert page.get_by_role("combobox", name="Read").locator("option").count() == 3  # none for a pair that is typed


# What holds for all of these


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_behaviours_fit_a_phone_and_every_control_has_a_name(look, scheme):
    for hash_ in SEEN:
        page = look(hash_, viewport=PHONE, color_scheme=scheme, has_touch=True)
        page.locator("main figure").last.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], hash_
        nameless = page.evaluate(
            """[...document.querySelectorAll("button, select, input, textarea, [role=button], [role=img], svg")]
            .filter((each) => !each.getAttribute("aria-label") && !each.textContent.trim())
            .filter((each) => !each.closest("label")?.textContent.trim()).map((each) => each.outerHTML.slice(0, 80))"""
        )
        assert nameless == []


def test_a_study_without_prompts_offers_only_a_pair_that_is_typed(visit):
    page = visit("2L4H/L1H3?view=text&set=repeats&pair=-4&patched=L9H9")
    page.wait_for_selector(".passage .token")
    assert page.get_by_role("combobox", name="Read").locator("option").count() == 2
    page = visit("2L4H/L1H3?view=circuits&set=repeats")
    assert page.get_by_role("combobox", name="Circuit").count() == 0
    assert page.locator(".edge").count() == 1
