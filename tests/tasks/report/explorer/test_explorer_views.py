"""The explorer as somebody uses it, in a browser: each view, by mouse and by keyboard, in both themes, on a phone."""

import io
import re
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from conftest import Explored
from explorer_figures import PHONE, figure, saved, saved_rows
from invented_study import STEPS, Model
from PIL import Image

from headstream.models.transformer import Transformer
from headstream.tasks.report.explorer import explorer_contents, explorer_page
from headstream.tasks.report.explorer.explorer_contents import write_explorer
from headstream.tasks.report.explorer.passages import PASSAGE_TOKENS, passages_of
from headstream.tasks.results.sql import run_sql
from headstream.tasks.results.study_results import open_results
from headstream.tasks.training.checkpoints import load_model

expect = pytest.importorskip("playwright.sync_api").expect

VIEWS = ("heads", "text", "circuits", "about")
TYPED = "the cold river runs; the cold <b>river</b> runs"
GRID, MATRIX = "induction random period of every head", "Attention of L1H3"


def weights(explored: Explored, step: int = STEPS[-1]) -> Transformer:
    return load_model(explored.files[Model().model_id].checkpoints, step)


def first_passage(explored: Explored) -> list[int]:
    """As much of it as the models' context of 64 tokens holds."""
    return list(passages_of(explored.tokens, PASSAGE_TOKENS)[0].tokens[:64])


def in_16_bits(model: Transformer) -> Transformer:
    for parameter in model.parameters():
        parameter.data = parameter.half().float()
    return model


# Heads


def test_a_head_opens_its_card_and_the_address_says_so(visit):
    page = visit()
    assert page.locator("aside h2").text_content() == "L1H3"  # the one with most induction
    page.locator(".cell[data-head=L0H0]").click()
    assert page.locator("aside h2").text_content() == "L0H0"
    assert page.url.endswith("#2L4H/L0H0")
    assert "0.640 of its attention goes to the token before" in page.locator("aside .evidence").text_content()
    assert page.locator("aside .badge").text_content() == "previous token"
    page.go_back()
    expect(page.locator("aside h2")).to_have_text("L1H3")


def test_the_card_names_what_the_head_reads_and_leads_there(visit):
    page = visit("2L4H/L1H3")
    read = page.locator("aside .pairs > div").first
    assert "L0H0 by its keys" in read.text_content()
    assert "without it, prefix matching" in read.text_content()
    assert re.search(r"Without L0H0.* in its keys: prefix matching \S+ instead of \S+\.", read.text_content())
    read.get_by_role("link", name="L0H0").click()
    assert page.locator("aside h2").text_content() == "L0H0"
    titles = page.locator("aside h3").all_text_contents()
    assert {"Over training", "Loss without it", "Eigenvalues", "What a probe reads of it", "How much it matters"} <= {
        *titles
    }


def test_arrow_keys_move_among_heads(visit):
    page = visit("2L4H/L0H0")
    page.locator(".cell[data-head=L0H0]").focus()
    for key, head in (("ArrowRight", "L0H1"), ("ArrowUp", "L1H1"), ("ArrowLeft", "L1H0"), ("ArrowDown", "L0H0")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.head") == head
        assert page.locator("aside h2").text_content() == head


def test_the_slider_shows_each_checkpoint_as_the_warehouse_has_it(visit, explored: Explored):
    page = visit("2L4H/L1H3")
    for place, step in ((0, 0), (6, STEPS[6]), (len(STEPS) - 1, STEPS[-1])):
        page.get_by_role("slider", name="Checkpoint").fill(str(place))
        rows = saved_rows(page, GRID)
        of_step = f"model_id = '{Model().model_id}' AND step = {step}"
        query = f"SELECT induction_random_period AS score FROM heads WHERE {of_step} ORDER BY layer, head"
        expected = [row["score"] for row in run_sql(explored.warehouse, query).to_pylist()]
        assert [float(row["induction_random_period"]) for row in rows] == pytest.approx(expected, rel=1e-4)
    page.get_by_role("slider", name="Checkpoint").fill("6")
    assert f"at={STEPS[6]}" in page.url


def test_play_goes_through_training_to_its_end(visit):
    page = visit("2L4H/L1H3?at=560")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("output")).to_contain_text("checkpoint 11 of 11", timeout=20_000)
    page.get_by_role("button", name="Play").wait_for()  # it has stopped
    assert "at=" not in page.url


def test_any_score_colours_the_grid(visit):
    page = visit()
    page.get_by_label("Colour by").select_option("previous_token")
    assert "score=previous_token" in page.url
    rows = saved_rows(page, "previous token of every head")
    assert float(rows[0]["previous_token"]) == pytest.approx(Model().previous_token)


def test_when_the_head_formed_is_said_with_links_to_before_and_after(visit):
    page = visit()
    said = page.locator(".finding")
    assert "L1H3 of 2L4H formed abruptly between" in said.text_content()
    said.get_by_role("link").first.click()
    before = float(page.locator(".cell[data-head=L1H3] text").text_content())
    said.get_by_role("link").last.click()
    assert float(page.locator(".cell[data-head=L1H3] text").text_content()) > before


# Text


@pytest.mark.parametrize("step", [420, STEPS[-1]])
def test_attention_on_a_passage_is_torchs(visit, explored: Explored, step):
    page = visit(f"2L4H/L1H3?view=text&at={step}")
    rows = saved_rows(page, MATRIX)
    n = int(rows[-1]["query"]) + 1
    spelled = {int(row["query"]): row["query_token"] for row in rows}
    found = np.zeros((n, n))
    for row in rows:
        found[int(row["query"]), int(row["key"])] = float(row["weight"])
    passage = first_passage(explored)
    assert n == len(passage)
    assert spelled[0] == "<|bos|>"
    for model, tolerance in ((weights(explored, step), 1e-2), (in_16_bits(weights(explored, step)), 1e-4)):
        expected = model.trace(torch.tensor([passage])).layers[1].pattern[0, 3].numpy()
        assert np.abs(found - expected).max() < tolerance


def test_ones_own_text_is_read_and_a_head_switched_off_changes_what_comes_next(visit, explored: Explored):
    page = visit("2L4H/L1H3?view=text")
    page.get_by_role("combobox", name="Text").select_option("own")
    page.get_by_role("textbox", name="Your own text").fill(TYPED)
    ids = [explored.tokens.bos, *explored.tokens.tokenizer.encode(TYPED).ids]
    expect(page.locator(".token")).to_have_count(len(ids))
    assert page.locator(".passage").text_content() == "<|bos|>" + TYPED.replace(" ", "·")
    assert page.locator(".passage b").count() == 0
    page.get_by_role("switch", name="L0H1").click()
    page.wait_for_selector("[aria-label='L0H1 off']")
    model = in_16_bits(weights(explored))
    mask = [torch.tensor([1.0, 0.0, 1.0, 1.0]), torch.ones(4)]
    intact, off = (model(torch.tensor([ids]), head_mask=m)[0, -1].softmax(-1) for m in (None, mask))
    title = page.get_by_role("figure").filter(has_text="What comes after token").get_attribute("aria-label")
    rows = saved_rows(page, title)
    spelled = explorer_contents.page_labels(explored.tokens)
    for row in rows:
        token = spelled.index(row["token"])
        assert float(row["probability"]) == pytest.approx(float(intact[token]), abs=1e-4)
        assert float(row["probability_with_heads_off"]) == pytest.approx(float(off[token]), abs=1e-4)
    assert spelled.index(rows[0]["token"]) == int(intact.argmax())
    assert "off=L0H1" in page.url
    again = visit(page.url.partition("#")[2])  # the address holds the text, too
    assert again.locator(".token").count() == len(ids)


def test_pointing_at_a_token_shows_where_it_looks_and_who_looks_at_it(visit):
    page = visit("2L4H/L1H3?view=text&heads=L1H3,L0H0&token=5")
    page.locator(".token").nth(9).hover()
    from_nine = page.locator(".token").nth(2).get_attribute("title")
    assert re.fullmatch(r"2: .*, L1H3 [\d.e-]+, L0H0 [\d.e-]+", from_nine)
    rows = {(row["query"], row["key"]): float(row["weight"]) for row in saved_rows(page, MATRIX)}
    assert float(re.search(r"L1H3 ([\d.e-]+)", from_nine)[1]) == pytest.approx(rows["9", "2"], abs=1e-3)
    page.get_by_role("combobox", name="Show").select_option("to")
    page.locator(".token").nth(2).hover()
    to_two = page.locator(".token").nth(9).get_attribute("title")
    assert float(re.search(r"L1H3 ([\d.e-]+)", to_two)[1]) == pytest.approx(rows["9", "2"], abs=1e-3)
    page.locator(".token").nth(7).click()
    assert "token=7" in page.url
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert "token=8" in page.url


def test_heads_are_averaged_and_weighed(visit, explored: Explored):
    page = visit("2L4H/L1H3?view=text&heads=L0H0,L0H1&average=1&weighed=1")
    rows = saved_rows(page, "Attention of mean of 2 heads")
    passage = first_passage(explored)
    model = in_16_bits(weights(explored))
    layer = model.trace(torch.tensor([passage])).layers[0]
    values = model.layers[0].attention.queries_keys_values(layer.residual_in)[2]
    lengths = (values @ layer.W_O).norm(dim=-1)[0]
    weighed = layer.pattern[0, :2] * lengths[:2, None, :]
    expected = (weighed / weighed.sum(-1, keepdim=True)).mean(0)
    for row in rows[-40:]:
        assert float(row["weight"]) == pytest.approx(float(expected[int(row["query"]), int(row["key"])]), abs=1e-4)


def test_losses_are_torchs(visit, explored: Explored):
    page = visit("2L4H/L1H3?view=text&colour=loss")
    rows = saved_rows(page, "Loss of each token: deepest from 6 nats")
    ids = torch.tensor([first_passage(explored)])
    losses = torch.nn.functional.cross_entropy(in_16_bits(weights(explored))(ids)[0, :-1], ids[0, 1:], reduction="none")
    assert rows[0]["loss_nats"] == ""
    assert [float(row["loss_nats"]) for row in rows[1:]] == pytest.approx(losses.tolist(), abs=1e-3)


def test_attention_of_a_model_that_does_not_run_here_was_kept(visit, explored: Explored, tmp_path, monkeypatch):
    monkeypatch.setattr(explorer_contents, "WEIGHT_BYTES", 0)
    with open_results(explored.warehouse, "invented") as results:
        write_explorer(results, explored.files, tmp_path / "kept.html", [])
    page = visit("2L4H/L1H3?view=text", page=tmp_path / "kept.html")
    assert page.get_by_role("switch").count() == 0
    assert page.get_by_role("combobox", name="Text").locator("option").count() == 6
    passage = first_passage(explored)
    expected = weights(explored).trace(torch.tensor([passage])).layers[1].pattern[0, 3]
    for row in saved_rows(page, MATRIX):
        assert float(row["weight"]) == pytest.approx(
            float(expected[int(row["query"]), int(row["key"])]), abs=0.5 / 255 + 1e-6
        )


def test_a_model_that_fits_in_no_way_says_so(visit, explored: Explored, tmp_path, monkeypatch):
    monkeypatch.setattr(explorer_contents, "WEIGHT_BYTES", 0)
    monkeypatch.setattr(explorer_contents, "RUN_BYTES", 0)
    with open_results(explored.warehouse, "invented") as results:
        write_explorer(results, explored.files, tmp_path / "none.html", [])
    page = visit("2L4H/L1H3?view=text", page=tmp_path / "none.html")
    expect(page.locator(".empty")).to_have_text("This file holds no attention of this model on this passage.")


# Circuits


def test_edges_above_the_bar_and_a_pair_with_its_patterns(visit):
    page = visit("2L4H/L1H3?view=circuits")
    assert page.locator(".edge").count() == 1  # the circuit's: the only one that is significant
    page.get_by_label("Least composition").fill("0")
    many = page.locator(".edge").count()
    assert many > 10
    page.get_by_label("Q: queries").uncheck()
    assert 1 < page.locator(".edge").count() < many
    assert figure(page, "Q-composition").count() == 0
    page.locator("[data-edge=L0H0-L1H3-K]").press("Enter")
    assert "edge=L0H0-L1H3-K" in page.url
    page.wait_for_selector(".pair")
    assert "L1H3 reads L0H0 with its keys" in page.locator(".pair").text_content()
    early, late, both = (
        np.array([float(row["weight"]) for row in saved_rows(page, title)])
        for title in ("L0H0, the writer", "L1H3, the reader", "composed")
    )
    n = int((2 * len(early)) ** 0.5)
    square = np.zeros((3, n, n))
    square[:, *np.tril_indices(n)] = early, late, both
    assert np.abs(square[1] @ square[0] - square[2]).max() < 1e-5


def test_a_cell_of_a_heat_map_chooses_its_pair(visit):
    page = visit("2L4H/L1H3?view=circuits&bar=0")
    picture = figure(page, "K-composition").locator("svg.matrix image")
    box = picture.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.1)  # first row, last column
    assert "edge=L0H0-L1H3-K" in page.url


# What holds for every view


def test_views_are_saved_as_pictures(visit):
    for view, title in (("heads", GRID), ("text", MATRIX), ("circuits", "Which head reads which")):
        page = visit(f"2L4H/L1H3?view={view}")
        root = ElementTree.fromstring(saved(page, title, "SVG"))
        width, height = (round(float(side)) for side in root.get("viewBox").split()[2:])
        image = Image.open(io.BytesIO(saved(page, title, "PNG")))
        assert abs(image.width - 2 * width) <= 2
        assert abs(image.height - 2 * height) <= 2
        assert len(image.convert("RGB").getcolors(1 << 16)) > 5
    page = visit("2L4H/L1H3?view=text&token=5")
    title = page.locator("figure").filter(has=page.locator(".passage")).get_attribute("aria-label")
    texts = ElementTree.fromstring(saved(page, title, "SVG")).findall("{*}text")
    assert "".join(text.text for text in texts) == page.locator(".passage").text_content()


@pytest.mark.parametrize("view", ["heads", "circuits"])
def test_the_sql_of_every_figure_gives_its_rows(visit, explored: Explored, view):
    page = visit(f"2L4H/L1H3?view={view}")
    figures = page.locator("figure").filter(has=page.locator("details.sql"))
    assert figures.count() >= 4
    for each in figures.all():
        query = each.locator("pre").text_content()
        rows = run_sql(explored.warehouse, query)
        title = each.get_attribute("aria-label")
        assert rows.num_rows > 0, title
        if each.get_by_role("button", name="as CSV").count():
            least = len(saved_rows(page, title))
            assert rows.num_rows >= least > 0, title


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_a_phone_in_both_themes(visit, view, scheme):
    page = visit(f"2L4H/L1H3?view={view}&edge=L0H0-L1H3-K", viewport=PHONE, color_scheme=scheme, has_touch=True)
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) < 200) == (scheme == "dark")
    page.get_by_role("link", name="About").tap()
    assert "view=about" in page.url


def test_a_module_that_is_named_as_a_view_is_a_tab(visit, explored: Explored, tmp_path, monkeypatch):
    shutil.copytree(explorer_page.PAGE, tmp_path / "page")
    (tmp_path / "page" / "own_view.js").write_text(
        'import { el } from "./elements.js";\n\n'
        'const words = (page) => el("p", { class: "own" }, `${page.model.name} again`);\n'
        'export const view = { name: "own", title: "Own", place: 2.5, open: (page) => ({ element: words(page) }) };\n'
    )
    monkeypatch.setattr(explorer_page, "PAGE", tmp_path / "page")
    with open_results(explored.warehouse, "invented") as results:
        write_explorer(results, explored.files, tmp_path / "own.html", [])
    page = visit("2L4H/L1H3", page=tmp_path / "own.html")
    assert page.locator("nav a").all_text_contents() == ["Heads", "Text", "Own", "Circuits", "About"]
    page.get_by_role("link", name="Own").click()
    assert page.locator("main .own").text_content() == "2L4H again"
    assert "view=own" in page.url


def test_checkpoints_stop_playing_when_another_view_is_opened(visit):
    page = visit("2L4H/L1H3?view=text&at=560", locale="en-GB")  # in a context of its own, which gets another clock
    page.clock.install()
    page.get_by_role("button", name="Play").click()
    page.get_by_role("link", name="About").click()
    page.clock.run_for(2000)
    assert "at=560" in page.url


def test_every_control_has_a_name(visit):
    for view in VIEWS:
        page = visit(f"2L4H/L1H3?view={view}")
        nameless = page.evaluate(
            """[...document.querySelectorAll("button, select, input, textarea, [role=button], [role=switch], svg")]
            .filter((each) => !each.getAttribute("aria-label") && !each.textContent.trim())
            .filter((each) => !each.closest("label")?.textContent.trim()).map((each) => each.outerHTML.slice(0, 80))"""
        )
        assert nameless == []


def test_an_address_that_names_nothing_there_is_shows_something(visit):
    page = visit("nobody/L9H9?view=nowhere&at=x&passage=99&token=-4&heads=Q&bar=z")
    assert page.locator("aside h2").text_content() == "L1H3"
    page = visit("2L4H/%E0%A4?view=text&passage=99&token=900&heads=%2C%2C&off=L7H7")
    page.wait_for_selector(".token")


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString"])
def test_an_address_may_name_what_every_object_has(visit, name):
    for place in (f"2L4H/L0H0?view={name}", f"{name}/{name}?view=text&way={name}&colour={name}&passage={name}"):
        page = visit(place)
        assert page.get_by_role("alert").count() == 0
        assert page.locator("main section").count()


@pytest.mark.parametrize(
    ("token", "chosen"), [("0.5", 1), ("1.4", 1), ("-0.5", 0), ("1e9", 3), ("NaN", 0), ("-Infinity", 0)]
)
def test_a_token_between_two_is_the_nearest(visit, token, chosen):
    page = visit(f"2L4H/L0H0?view=text&passage=own&token={token}&text=+++")
    page.wait_for_selector(f".token[data-token='{chosen}'][aria-pressed=true]")


def test_text_that_attacks_stays_text(visit):
    page = visit("2L4H/L1H3?view=text&passage=own&text=%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3D%22hacked%3D1%22%3E")
    page.wait_for_selector(".token")
    assert page.locator("img").count() == 0
    assert "<img" in page.locator(".passage").text_content()
    page.get_by_role("link", name="About").click()
    assert "</script><script>window.hacked" in page.locator(".about").text_content()
    assert page.evaluate("window.hacked") is None


def test_a_checkpoint_without_weights_is_said_to_have_none(visit):
    page = visit("2L4H/L1H3?view=text&at=300")
    expect(page.locator(".elsewhere")).to_contain_text("tokens are in this file: what follows is after")
    page = visit("2L4H/L1H3?view=text&at=420")
    expect(page.locator(".passage")).to_be_visible()
    expect(page.locator(".elsewhere")).to_have_count(0)
