import re
from xml.etree import ElementTree

import duckdb
import numpy as np
import pytest
from invented_study import SCORES, Model, write_measurements
from matplotlib.figure import Figure
from painted_cells import painted
from pandas import DataFrame

from headstream.tasks.report.figures import style
from headstream.tasks.report.figures.phase_changes import strongest_change
from headstream.tasks.report.figures.score_panels import MAX_CELL_HEIGHT, MAX_MAP_HEIGHT, score_panels
from headstream.tasks.report.figures.style import (
    IN_THE_DARK,
    Palette,
    cells,
    headline,
    house_style,
    label_ends,
    save,
    tint,
)
from headstream.tasks.report.sections import figures
from headstream.tasks.report.sections.attention.attention import expected_keys
from headstream.tasks.report.sections.learning.learning import _about_lines, _draw
from headstream.tasks.report.sections.pruning.heads_that_matter import heads_that_matter
from headstream.tasks.report.sentences import extremes, models_left_out, not_drawn
from headstream.tasks.results.study_results import open_results
from headstream.tasks.words.lists import listed


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    models = Model(), Model(n_layers=1, n_heads=2, induction=0.02, repeat_gain=0.1, loss=2.8)
    path = write_measurements(tmp_path_factory.mktemp("figures") / "w.duckdb", *models)
    with open_results(path, "invented") as results:
        yield results


def draw(name: str, results) -> list:
    with house_style():
        return figures()[name](results)


def contrast(color: str, other: str) -> float:
    """WCAG 2: 4.5 is enough for text, 3 for lines."""

    def luminance(color: str) -> float:
        channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(color), luminance(other)])
    return (high + 0.05) / (low + 0.05)


# How figures look


def test_colours_can_be_seen_on_light_and_dark_pages():
    cards = style.CARD, IN_THE_DARK[style.CARD]
    for text in (style.INK, style.MUTED):
        assert contrast(text, cards[0]) >= 4.5
        assert contrast(IN_THE_DARK[text], cards[1]) >= 4.5
    for color in (*style.SERIES, *style.KIND_COLORS.values(), *style.ROLE_COLORS.values()):
        assert min(contrast(color, card) for card in cards) >= 3


def test_a_saved_figure_is_the_same_each_time_and_knows_the_dark(tmp_path):
    svgs = []
    for name in ("a.svg", "b.svg"):
        with house_style():
            figure = Figure()
            axes = figure.subplots()
            axes.plot([1, 2], [3, 4], marker="o")
            axes.set_title("$x$ <b> \u6f22")
            save(figure, tmp_path / name)
        svgs.append((tmp_path / name).read_text())
    assert svgs[0] == svgs[1]
    assert "dc:date" not in svgs[0]
    root = ElementTree.fromstring(svgs[0])
    assert "$x$ <b> \u6f22" in "".join(root.itertext())
    rules = re.search(r"@media \(prefers-color-scheme: dark\) \{.*\}", svgs[0])[0]
    used = set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", re.sub(re.escape(rules), "", svgs[0])))
    for part, color in used - {("stroke", "#1f77b4"), ("fill", "#1f77b4")}:
        assert f'[style*="{part}: {color}"]' in rules, "this would stay light in the dark"


def test_labels_keep_their_look_and_share_the_colour_of_their_depth():
    few = Palette({"1L2H": 1, "1L4H": 1, "2L4H": 2})
    assert few.line("1L2H")["color"] == few.line("1L4H")["color"] != few.line("2L4H")["color"]
    assert few.line("1L2H")["linestyle"] != few.line("1L4H")["linestyle"]
    many = Palette({f"{n}L{h}H": n for n in (0, 1) for h in range(5)})
    assert len({many.color(f"1L{h}H") for h in range(5)}) == 1
    assert many.color("0L0H") != many.color("1L0H")
    variants = Palette({f"2L4H {variant}": 2 for variant in "abcdefghi"})
    assert len({variants.color(f"2L4H {variant}") for variant in "abcdef"}) == 6
    most = Palette({f"2L4H {variant}": 2 for variant in "abcdefghi"} | {"0L": 0})
    looks = [most.line(label) for label in ("0L", *(f"2L4H {variant}" for variant in "abcdefghi"))]
    assert len({(look["color"], look["linestyle"]) for look in looks}) == 10


def test_labels_of_one_depth_differ_in_their_dashes_while_there_are_any_left():
    labels = [f"1L{h}H" for h in range(4)]
    palette = Palette(dict.fromkeys(labels, 1))
    assert len({palette.line(label)["linestyle"] for label in labels}) == len(style._DASHES) == 4


def test_a_long_headline_lies_inside_its_figure():
    with house_style():
        figure = Figure((style.WIDTH, 2))
        headline(figure, "2L4H d_model=128 n_ctx=1024 tokens=100,000,000 positions=learned_shortformer seed=0")
        (title,) = figure.texts
        box = title.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert 0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_names_at_the_ends_of_lines_do_not_overlap():
    names = [f"1L{h}H" for h in range(9)]
    ends = {name: 1 + 0.01 * i for i, name in enumerate(names)} | {"2L1H": 9.0}
    axes = Figure((8.6, 4)).subplots()
    axes.set_ylim(0, 10)
    label_ends(axes, ends, Palette({name: int(name[0]) for name in ends}))
    assert [text.get_text() for text in axes.texts] == [*names, "2L1H"], "from the lowest to the highest"
    inches = np.diff([text.get_position()[1] for text in axes.texts]) * 4 * axes.get_position().height
    assert inches.min() > 0.15
    assert axes.texts[-1].get_position()[1] == pytest.approx(0.9)


@pytest.mark.parametrize("end", [0.0, 10.0])
def test_names_at_the_ends_of_lines_stay_beside_their_panel(end):
    ends = {f"1L{h}H": end for h in range(9)}
    axes = Figure((8.6, 4)).subplots()
    axes.set_ylim(0, 10)
    label_ends(axes, ends, Palette(dict.fromkeys(ends, 1)))
    places = [text.get_position()[1] for text in axes.texts]
    assert min(places) >= 0
    assert max(places) <= 1
    assert np.diff(places).min() * 4 * axes.get_position().height > 0.15


def test_values_are_tints():
    image = tint(np.array([[0, 0.5], [np.nan, 2]]), "#ff0000")
    assert image[..., 3].tolist() == [[0, 0.5], [0, 1]]
    assert (image[..., :3] == [1, 0, 0]).all()


# What figures show


FEW_STUDIES_MEASURE = {
    "cost_curves", "behaviour_circuit", "behaviour_curve", "behaviour_formation", "with_and_without"
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in figures() if name not in FEW_STUDIES_MEASURE])
def test_every_figure_has_a_sentence_and_its_queries(results, name):
    for picture in draw(name, results):
        assert picture.figure
        assert picture.queries
        assert re.fullmatch(r"[A-Z0-9].*\.", picture.sentence)
        assert re.fullmatch(r"[A-Z].*[A-Za-z)]\.", picture.look), "what to see in it"
        assert not re.search(r"nan|None|missing", picture.sentence)


def test_curves_show_every_model_and_the_phase_change(results):
    picture = draw("learning_curves", results)[0]
    axes = picture.figure.axes[0]
    assert len(axes.lines) == 4  # training and validation of two models
    validation = axes.lines[-1]
    assert validation.get_ydata()[-1] == 2.3
    change = strongest_change(results, "prefix_matching")
    band = axes.patches[0]
    assert (band.get_x(), band.get_x() + band.get_width()) == (change.start_tokens, change.end_tokens)
    assert "highest in 1L2H (2.80 nats) and lowest in 2L4H (2.30 nats)" in picture.sentence
    assert "band marks the phase change of 2L4H" in picture.sentence


def test_head_maps_have_a_cell_for_each_head(results):
    best, other = draw("head_maps", results)
    assert best.sentence == (
        "2 of the 8 heads of 2L4H reach the threshold of a role: L0H0 (previous token) and L1H3 (induction)."
    )
    assert best.figure.get_suptitle() == "2L4H"
    scores = {row["head_label"]: row for row in results.rows("head_scores") if row["label"] == "2L4H"}
    maps, bar = best.figure.axes
    alphas = painted(maps)[..., 3]
    assert alphas.shape == (2 * (1 + 2) + 1, 4 * (1 + 4) - 1), "eight scores, a cell of room between maps"
    assert alphas[1, 3] == scores["L1H3"]["induction_random_period"] == 0.35, "layers go upward"
    shares = np.array([scores[head]["positional_share"] for head in sorted(scores)]).reshape(2, 4)
    assert alphas[4:6, 5:9] == pytest.approx(shares[::-1], abs=0.005)
    texts = [text.get_text() for text in maps.texts]
    assert texts[0] == "induction_random_period"
    assert texts[8] == "0.35"
    assert [text.get_text() for text in bar.texts] == ["share of attention  0", "1"]
    assert other.sentence.startswith("1 of the 2 heads of 1L2H reaches")


@pytest.mark.parametrize("n_layers", [1, 6, 24])
def test_maps_and_their_cells_are_no_higher_than_declared(n_layers):
    heads = DataFrame({"layer": np.repeat(range(n_layers), 2), "head": [0, 1] * n_layers, "score": 0.5})
    with house_style():
        figure = score_panels("2H", heads, {"score": "score"}, n_columns=1, unit="share")
        figure.get_layout_engine().execute(figure)
    axes = figure.axes[0]
    n_rows = len(painted(axes))
    cell = axes.get_position().height * figure.get_size_inches()[1] / n_rows
    left_over = 1.1  # maps share what the names around them leave of their room
    assert cell <= MAX_CELL_HEIGHT * left_over
    assert cell * n_layers <= MAX_MAP_HEIGHT * left_over


def test_maps_are_rectangles_and_large_ones_sharp_bitmaps(tmp_path):
    values = np.array([[1.0, 1.0, 0.0], [0.5, 0.25, np.nan]])
    with house_style():
        figure, axes = style.panel(2)
        cells(axes, tint(values, style.BLUE))
        save(figure, tmp_path / "small.svg")
        _, axes_of_large = style.panel(2)
        cells(axes_of_large, tint(np.eye(101), style.BLUE))
    assert painted(axes)[..., 3].tolist() == [[1, 1, 0], [0.5, 0.25, 0]]
    assert len(axes.patches) == 3, "neighbours of one colour are one rectangle"
    drawn = (tmp_path / "small.svg").read_text()
    assert "<image" not in drawn
    assert "crispEdges" in drawn
    assert axes_of_large.images[0].get_array().shape == (606, 606, 4)


def test_trajectories_say_when_heads_formed(results):
    picture = draw("head_trajectories", results)[0]
    assert "previous_token of L0H0, the highest at the end, rises from 0.01 at 4.1 k tokens to 0.64" in picture.sentence
    assert (
        "induction_random_period of L1H3, the highest at the end, rises from 0.01 at 4.1 k tokens to 0.35"
        in picture.sentence
    )


def test_attention_counts_what_it_outlines(results):
    induction, previous, _ = draw("attention", results)
    # 15 tokens, 7 of them for the second time; the invented head then gives everything to what came next.
    assert "gives 1.00 of its attention to what followed earlier copies" in induction.sentence
    assert "over the 7 queries" in induction.sentence
    assert "over the 13 queries" in previous.sentence  # not BOS, nor the one that follows it
    weights = painted(induction.figure.axes[0])[..., 3]
    assert weights.shape == (15, 15)
    assert weights[8, 2] == 1
    assert len(induction.figure.axes[0].collections[0].get_offsets()) == 7


def test_expected_keys():
    bos, a, b, c = "^abc"
    tokens = [bos, a, b, c, a, b]
    assert np.argwhere(expected_keys("induction", tokens)).tolist() == [[4, 2], [5, 3]]
    assert np.argwhere(expected_keys("previous token", tokens)).tolist() == [[2, 1], [3, 2], [4, 3], [5, 4]]
    assert np.argwhere(expected_keys("induction", [bos, a, a, a])).tolist() == [[3, 2]]


def test_pieces_of_sentences():
    assert extremes({"a": {0: 1.0}, "b": {0: 2.0}, "c": {}}, " nats") == (
        "highest in b (2.00 nats) and lowest in a (1.00 nats), which other seeds may change (an interval needs three)"
    )
    three = {"a": {0: 1.0, 1: 1.1, 2: 1.2}, "b": {0: 2.0, 1: 2.1, 2: 2.2}, "c": {0: 1.9, 1: 2.1, 2: 2.2}}
    assert extremes(three) == (
        "highest in b (2.10), though its difference from c isn't significant (corrected for 2 comparisons),"
        " and lowest in a (1.10)"
    )
    alike = three | {"a": {0: 1.8, 1: 2.1, 2: 2.2}}
    assert extremes(alike) == "at most 2.10, and at least 2.03"
    assert extremes({"a": {0: 1.0}}) == "1.00 in a"
    assert extremes({"a": {0: 1.0}, "b": {0: 1.0}, "c": {}}) == "1.00 in a and b"
    assert extremes({"a": {}}) == "missing"
    assert [listed(list("abc"[:n])) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert models_left_out(0) == not_drawn(0, "head", "with smaller effects") == ""
    assert models_left_out(1) == " 1 more kind of model is not shown: see the SQL."
    assert not_drawn(2, "head", "with smaller effects") == " 2 heads with smaller effects are not drawn."


def test_numbers_of_heads_are_drawn_where_nothing_was_pruned(tmp_path):
    models = [Model(n_heads=n, seed=seed) for n in (2, 4) for seed in range(3)]
    path = write_measurements(tmp_path / "w.duckdb", *models, without=("pruning",))
    with open_results(path, "invented") as results:
        (picture,) = heads_that_matter(results)
    (losses,) = picture.figure.axes
    assert [len(line.get_ydata()) for line in losses.lines if line.get_marker() == "o"] == [6]
    assert "removed" not in picture.sentence


def test_heads_without_scores_have_no_map(tmp_path):
    """As where weights alone were measured."""
    scores = ", ".join(f"{name} = NULL" for name in SCORES)
    path = write_measurements(tmp_path / "w.duckdb", Model(n_layers=1, n_heads=2))
    with duckdb.connect(path) as connection:
        connection.execute(f"UPDATE heads SET {scores}")
    with open_results(path, "invented") as results:
        (picture,) = draw("head_maps", results)
    assert picture.figure is None
    assert picture.sentence == "No picture: scores of the heads of 1L2H were not measured."


def test_many_models_of_a_kind_are_thin_lines_and_their_mean():
    axes, palette = Figure().subplots(), Palette({"2L4H": 2, "1L4H": 1})
    rows = [
        {"label": label, "model_id": f"{label}{seed}", "tokens": tokens, "loss": seed * tokens}
        for label, n in (("2L4H", 4), ("1L4H", 3))
        for seed in range(n)
        for tokens in (1, 2)
    ]
    _draw(axes, DataFrame(rows), "tokens", "loss", palette)
    widths = [line.get_linewidth() for line in axes.lines]
    assert len(widths) == 3 + 4 + 1
    assert [width == widths[0] for width in widths] == [True] * 3 + [False] * 4 + [True]
    assert [*axes.lines[-1].get_ydata()] == [1.5, 3.0]
    assert _about_lines(DataFrame(rows)) == " Thin lines are seeds, thick ones their means."
    assert _about_lines(DataFrame(rows[-6:])) == ""
