"""The report's sections on costs and on feed-forward layers."""

import re

import duckdb
import pytest
from invented_importance import IMPORTANCE
from invented_study import CIRCUITS, Model, write_measurements
from rendered import render_report

from headstream.tasks.report.figures.style import house_style
from headstream.tasks.report.sections.costs.cost_curves import cost_curves
from headstream.tasks.results.study_results import open_results
from headstream.tasks.results.tables import write_table

SIZES = {"n_ctx": (256, 512, 1024), "d_model": (64, 128, 256), "n_heads": (1, 2)}
POWERS = {("n_ctx", "full"): 2, ("n_ctx", "local"): 1, ("d_model", "full"): 2, ("n_heads", "full"): 0}


def cost_rows(axes=tuple(SIZES)) -> list[dict]:
    """FLOPs and seconds that grow by powers; seconds grow with heads by a tenth."""
    return [
        {
            **{"axis": axis, "attention": attention, "config_id": f"{attention} {size}", "pass": name},
            **{"n_ctx": 128, "d_model": 16, "n_heads": 1, axis: size, "bytes": 1000 * size},
            **{"flops_counted": times * 1_000_000 * size**power, "seconds": times * 1e-6 * size ** (power or 0.1375)},
        }
        for (axis, attention), power in POWERS.items()
        if axis in axes
        for size in SIZES[axis]
        for name, times in (("forward", 1), ("forward_backward", 3))
    ]


def feed_forward_rows(model: Model) -> list[dict]:
    """The second of three groups has most of the effect, and zero has twice that of the mean."""
    return [
        {
            **{"model_id": model.model_id, "layer": layer, "part": part, "method": method},
            **{"first_neuron": first, "n_neurons": n, "n_sequences": 7, "kl_nats": 0.3},
            **{"loss_effect_nats": times * effect, "ci_low_nats": 0.01, "ci_high_nats": 0.9},
            "share_of_loss": None if layer else times * effect,
        }
        for layer in range(model.n_layers)
        for method, times in (("mean", 1), ("zero", 2))
        for part, first, n, effect in (
            *(("all", 0, 12, 0.5), ("group 0", 0, 4, 0.1), ("group 1", 4, 4, 0.25), ("group 2", 8, 4, 0.125)),
        )
    ]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    """The invented study's warehouse, and a function that puts rows in the place of a table's."""
    folder = tmp_path_factory.mktemp("warehouse")
    others = {*CIRCUITS, *IMPORTANCE, "attention_samples", "heads", "position_losses"}  # sections that take time
    path = write_measurements(folder / "w.duckdb", Model(), without=others)

    def fill(table: str, rows: list[dict]) -> None:
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"DELETE FROM {table}")
            if rows:
                file = write_table(folder, table, rows)
                connection.execute(f"INSERT INTO {table} BY NAME FROM read_parquet(?)", [str(file)])

    return path, fill


@pytest.fixture
def drawn(warehouse):
    """A function that draws the costs of the invented study."""
    path, fill = warehouse

    def draw(rows: list[dict]):
        fill("costs", [{"study": "invented", **row} for row in rows])
        with open_results(path, "invented") as results, house_style():
            (picture,) = cost_curves(results)
            return picture

    return draw


def test_lines_have_their_costs_and_guides_their_slopes(drawn):
    picture = drawn(cost_rows())
    assert picture.sentence.startswith(
        "At the large end, the FLOPs (seconds) of a forward pass grow as n_ctx^2.00 with full attention (n_ctx^2.00), "
        "n_ctx^1.00 with local attention (n_ctx^1.00) and d_model^2.00 with full attention (d_model^2.00)."
    )
    titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
    assert titles == ["FLOPs over n_ctx", "seconds over n_ctx", "FLOPs over d_model", "seconds over d_model"]
    flops, _, by_width, _ = picture.figure.axes
    lines = {line.get_label(): line.get_ydata().tolist() for line in flops.lines}
    assert lines["local, forward + backward"] == [3e6 * n for n in SIZES["n_ctx"]]
    guides = [line for line in flops.lines if line.get_label().startswith("_")]
    for guide, power in zip(guides, (2, 1), strict=True):
        assert guide.get_ydata().tolist() == pytest.approx([1e6 * n**power for n in SIZES["n_ctx"]])
    assert [text.get_text() for text in flops.texts] == ["n²", "n"]
    assert [text.get_text() for text in by_width.texts] == ["d²"]


def test_what_was_not_measured_is_not_drawn(drawn):
    assert len(drawn(cost_rows(axes=("d_model",))).figure.axes) == 2
    assert drawn(cost_rows()[:2]).sentence == "A single size gives no exponent."
    for rows in ([], cost_rows(axes=("n_heads",))):
        picture = drawn(rows)
        assert picture.figure is None
        assert picture.sentence.startswith("No picture: ")


def test_the_sections_have_their_tables(warehouse, tmp_path):
    path, fill = warehouse
    fill("costs", [{"study": study, **row} for study in ("invented", "other") for row in cost_rows()])
    fill("feed_forward_ablations", feed_forward_rows(Model()))
    render_report(path, "invented", tmp_path)
    page = re.sub(r"<details>.*?</details>", "", (tmp_path / "report.md").read_text(), flags=re.DOTALL)
    sections = {text.partition("\n")[0]: text.replace("\u00a0", " ") for text in re.split(r"^## ", page, flags=re.M)}
    costs = sections["Costs"]
    assert "| n_ctx | local | forward and backward | 512 | 1,024 | 1.000 | 1.000 | 1.000 |" in costs
    assert "| 2 | forward | 128 | 16 | 1.000 | 0.001 | 1.100 | 2.0 k |" in costs
    assert costs.count("| forward |") == 3 + 2, "of this study alone"
    layers = sections["Feed-forward layers"]
    assert "| 2L4H | 0 | 0.500 | 0.010 | 0.900 | 1.000 | 0.300 | 0.500 | 4 to 7, of 3 groups | 0.250 |" in layers
    assert "| 2L4H | 1 | 0.500 | 0.010 | 0.900 | 1.000 | 0.300 | missing | 4 to 7, of 3 groups | 0.250 |" in layers
    assert not re.search(r"\b(None|nan|NULL)\b", costs + layers)
