"""Two models beside each other in the explorer: a base and what was done to it in training, or any two."""

import duckdb
import numpy as np
import pytest
import torch
from conftest import Explored, invented_weights
from explorer_figures import PHONE, figure, saved_rows
from invented_study import STEPS, TOKENS_PER_STEP, Model, write_measurements
from tiny import tiny_tokens

from headstream.tasks.report.explorer import explorer_contents
from headstream.tasks.report.explorer.explorer_contents import write_explorer
from headstream.tasks.report.explorer.passages import PASSAGE_TOKENS, passages_of
from headstream.tasks.results.sql import run_sql
from headstream.tasks.results.study_results import open_results
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import load_model, save_checkpoint

expect = pytest.importorskip("playwright.sync_api").expect

BEGINS, ENDS = 300, 560  # training steps
DONE = f"silence L1H3 from {BEGINS * TOKENS_PER_STEP} until {ENDS * TOKENS_PER_STEP}"
BASE, SILENCED = Model(), Model(cell=f"interventions=[{DONE}]", induction=0.25)
OTHER = Model(n_layers=1, induction=0.1)  # whose checkpoints saw twice as many tokens at each step
SLOWER = 2
SCORE = "induction_random_period"
GRID, CURVES = "induction random period of every head", "induction random period of both models"


@pytest.fixture(scope="module")
def explored(tmp_path_factory) -> Explored:
    folder = tmp_path_factory.mktemp("beside")
    models = (BASE, SILENCED, OTHER)
    warehouse = write_measurements(folder / "w.duckdb", *models)
    with duckdb.connect(warehouse) as connection:
        connection.execute("UPDATE models SET interventions = ? WHERE model_id = ?", [DONE, SILENCED.model_id])
        connection.execute(
            "INSERT INTO interventions BY NAME SELECT ? AS model_id, 1 AS place, 'silence' AS kind, ['L1H3'] AS heads, "
            f"{BEGINS * TOKENS_PER_STEP} AS from_tokens, {ENDS * TOKENS_PER_STEP} AS until_tokens",
            [SILENCED.model_id],
        )
        for table in ("evaluations", "models"):
            change = f"UPDATE {table} SET tokens = tokens * {SLOWER} WHERE model_id = ?"
            connection.execute(change, [OTHER.model_id])
    files = {}
    for model in models:
        (folder / model.model_id).mkdir()
        files[model.model_id] = invented_weights(folder / model.model_id, model)
    checkpoints = files[SILENCED.model_id].checkpoints
    network = load_model(checkpoints, STEPS[-1])
    for parameter in network.parameters():
        parameter.data *= 1.25  # or it would be the base
    save_checkpoint(checkpoints, network, STEPS[-1])
    with open_results(warehouse, "invented") as results:
        write_explorer(results, files, folder / "explorer.html", [])
    return Explored(folder / "explorer.html", warehouse, files, Tokens.open(tiny_tokens()))


def of_model(page, model: Model, title: str):
    return page.get_by_role("figure", name=title).filter(has=page.locator(f"[data-focus^='{model.model_id}']"))


def title_of(page, model: Model, title: str) -> str:
    return of_model(page, model, title).get_attribute("aria-label")


def scores(explored: Explored, model: Model, step: int) -> list[float]:
    where = f"model_id = '{model.model_id}' AND step = {step}"
    query = f"SELECT {SCORE} AS score FROM heads WHERE {where} ORDER BY layer, head"
    return [row["score"] for row in run_sql(explored.warehouse, query).to_pylist()]


def chosen(page) -> str:
    return page.get_by_role("combobox", name="Beside").locator("option:checked").text_content()


def test_an_intervened_models_base_is_beside_it_and_what_was_done_is_said(visit, explored: Explored):
    page = visit(f"{SILENCED.model_id}/L1H3")
    ((log2,),) = (
        row.values() for row in run_sql(explored.warehouse, "SELECT delay_log2 FROM intervention_effects").to_pylist()
    )
    told = page.locator(".told").text_content()
    assert "in training, silence the induction head from 1.2 M tokens until 2.3 M tokens (L1H3)." in told
    assert f"after {2**log2:.2f} times as many tokens as there." in told
    assert "nothing was done to it in training." in told
    assert page.locator(".cell").count() == 16
    page.get_by_role("combobox", name="Beside").select_option("none")
    assert page.locator(".cell").count() == 8
    assert "beside=none" in page.url
    page.get_by_role("combobox", name="Beside").select_option("1L4H")
    assert page.locator(".cell").count() == 12
    assert "beside=1L4H" in page.url
    page.get_by_role("link", name="Swap them").click()
    assert page.get_by_role("combobox", name="Model").input_value() == OTHER.model_id
    assert page.locator(".cell").count() == 12


def test_a_base_has_nothing_beside_it_unless_the_address_says_so(visit):
    page = visit(f"{BASE.model_id}/L1H3")
    assert chosen(page) == "no other model"
    assert page.locator(".told").text_content() == ""
    page = visit(f"{BASE.model_id}/L1H3?beside={SILENCED.model_id}")
    assert chosen(page).endswith(": silence L1H3 from 1.2 M tokens until 2.3 M tokens")
    for name in ("constructor", BASE.model_id, "nobody"):
        assert chosen(visit(f"{BASE.model_id}/L1H3?beside={name}")) == "no other model"


def test_one_slider_moves_both_to_checkpoints_that_have_seen_as_much(visit, explored: Explored):
    page = visit(f"{BASE.model_id}/L0H3?beside={OTHER.model_id}")
    for place in (0, 6, 9, len(STEPS) - 1):
        page.get_by_role("slider", name="Checkpoint").fill(str(place))
        nearest = min(STEPS, key=lambda step: abs(SLOWER * step - STEPS[place]))
        for model, step in ((BASE, STEPS[place]), (OTHER, nearest)):
            rows = saved_rows(page, title_of(page, model, GRID))
            found = [float(row[SCORE]) for row in rows]
            assert found == pytest.approx(scores(explored, model, step), rel=1e-4)
        differ = SLOWER * nearest != STEPS[place]
        assert ("Not after the same" in page.locator(".told").text_content()) == differ
    page.get_by_role("slider", name="Checkpoint").fill("6")
    page.get_by_role("link", name="Swap them").click()
    assert f"at={min(STEPS, key=lambda step: abs(SLOWER * step - STEPS[6]))}" in page.url


def test_curves_of_both_models_are_in_one_figure_with_when_it_began_and_ended(visit, explored: Explored):
    page = visit(f"{SILENCED.model_id}/L1H3?at={BEGINS}")
    rows = saved_rows(page, CURVES)
    for model in (BASE, SILENCED):
        found = [float(row[SCORE]) for row in rows if row["model_id"] == model.model_id]
        assert found == pytest.approx([scores(explored, model, step)[-1] for step in STEPS], rel=1e-4)
    picture = figure(page, CURVES)
    assert picture.locator(".moment text").all_text_contents() == ["silence begins", "silence ends"]
    begin, end = (float(each.get_attribute("x1")) for each in picture.locator(".moment line").all())
    here = picture.locator("line[stroke-dasharray]")
    assert begin == pytest.approx(float(here.get_attribute("x1")))
    page.get_by_role("slider", name="Checkpoint").fill(str(STEPS.index(ENDS)))
    assert end == pytest.approx(float(here.get_attribute("x1")))


def test_curves_lie_where_models_had_seen_as_many_tokens(visit):
    page = visit(f"{OTHER.model_id}/L0H3?beside={BASE.model_id}")
    picture = figure(page, CURVES)
    dashed = picture.locator("polyline[stroke-dasharray]").last
    x = [float(point.split(",")[0]) for point in dashed.get_attribute("points").split()]
    left, right = (
        float(picture.locator("line:not([stroke-dasharray])").first.get_attribute(end)) for end in ("x1", "x2")
    )
    places = np.interp(STEPS, [SLOWER * step for step in STEPS], range(len(STEPS)))
    assert x == pytest.approx(left + places / (len(STEPS) - 1) * (right - left), abs=0.1)


def test_arrow_keys_stay_in_the_map_of_the_model_beside(visit):
    page = visit(f"{SILENCED.model_id}/L0H0")
    page.locator(f".cell[data-focus='{BASE.model_id} L0H0']").focus()
    for key, head in (("ArrowRight", "L0H1"), ("ArrowUp", "L1H1")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.focus") == f"{BASE.model_id} {head}"
        assert page.locator("aside h2").text_content() == head
    assert page.get_by_role("combobox", name="Model").input_value() == SILENCED.model_id


def test_the_sql_of_figures_of_both_gives_their_rows(visit, explored: Explored):
    page = visit(f"{SILENCED.model_id}/L1H3")
    titles = [CURVES, *(title_of(page, model, GRID) for model in (BASE, SILENCED))]
    for title in titles:
        rows = run_sql(explored.warehouse, figure(page, title).locator("pre").text_content())
        assert rows.num_rows == len(saved_rows(page, title)) > 0


def test_both_read_a_text_as_torch_does_and_show_the_same_token(visit, explored: Explored):
    page = visit(f"{SILENCED.model_id}/L1H3?view=text&token=9")
    expect(page.locator(".passage")).to_have_count(2)
    ids = torch.tensor([passages_of(explored.tokens, PASSAGE_TOKENS)[0].tokens[:64]])
    for model in (BASE, SILENCED):
        rows = saved_rows(page, title_of(page, model, "Attention of L1H3"))
        pattern = load_model(explored.files[model.model_id].checkpoints, STEPS[-1]).trace(ids).layers[1].pattern[0, 3]
        expected = [float(pattern[int(row["query"]), int(row["key"])]) for row in rows]
        assert [float(row["weight"]) for row in rows] == pytest.approx(expected, abs=1e-2)
    marked = "[...document.querySelectorAll('.token.at')].map((each) => each.dataset.token)"
    assert page.evaluate(marked) == ["9", "9"]
    page.locator(".passage").last.locator(".token").nth(4).hover()
    assert page.evaluate(marked) == ["4", "4"]


def test_a_model_that_does_not_run_here_says_after_what_it_was_kept(visit, explored: Explored, tmp_path, monkeypatch):
    monkeypatch.setattr(explorer_contents, "WEIGHT_BYTES", 0)
    with open_results(explored.warehouse, "invented") as results:
        write_explorer(results, explored.files, tmp_path / "kept.html", [])
    page = visit(f"{SILENCED.model_id}/L1H3?view=text&at={BEGINS}&off=L0H0", page=tmp_path / "kept.html")
    expect(page.locator(".passage")).to_have_count(2)
    expect(page.locator(".elsewhere")).to_have_count(2)
    for side in page.locator(".sides .hint").filter(has_text="Attention of").all():
        assert "no head of it is off" in side.text_content()
        assert f"(checkpoint {len(STEPS)} of {len(STEPS)})" in side.text_content()


@pytest.mark.parametrize(("view", "scheme"), [("heads", "dark"), ("text", "light")])
def test_they_are_below_each_other_on_a_phone(visit, view, scheme):
    page = visit(f"{SILENCED.model_id}/L1H3?view={view}", viewport=PHONE, color_scheme=scheme, has_touch=True)
    expect(page.locator(".sides").first).to_be_visible()
    first, second = (page.locator(".sides").first.locator("> *").nth(i).bounding_box() for i in (0, 1))
    assert second["y"] >= first["y"] + first["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
