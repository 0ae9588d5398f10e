from contextlib import ExitStack

import numpy as np
import pytest
from invented_study import CIRCUITS, D_MODEL, Model, write_measurements
from matplotlib.colors import to_hex
from pandas import NA, DataFrame

from headstream.tasks.report.figures.style import KIND_COLORS, house_style
from headstream.tasks.report.model_choice import best_label_of_each_depth, labels_best_first
from headstream.tasks.report.sections import figures
from headstream.tasks.report.sections.circuits.composition_graph import (
    MAX_EDGES,
    THICKEST,
    composition_graph,
    curve_past,
)
from headstream.tasks.report.sections.circuits.eigenvalue_spectra import MAX_SPECTRA
from headstream.tasks.report.sections.circuits.induction_circuit import in_rows
from headstream.tasks.report.sections.circuits.path_term_bars import MAX_PATHS, _order
from headstream.tasks.report.sections.circuits.score_term_bars import PARTS, strongest_source
from headstream.tasks.report.sentences import counted, risen
from headstream.tasks.results.study_results import StudyResults, open_results

OF_CIRCUITS = ("circuit_formation", "composition_graph", "score_term_bars", "eigenvalue_spectra", "path_term_bars")
OF_CIRCUITS += ("bigram_fit",)
TWO, ONE, ZERO = Model(), Model(n_layers=1, n_heads=2, induction=0.02, loss=2.8), Model(n_layers=0, loss=4.0)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = write_measurements(tmp_path_factory.mktemp("circuits") / "w.duckdb", TWO, ONE, ZERO)
    with open_results(path, "invented") as results:
        yield results


@pytest.fixture
def study(tmp_path):
    """A function that opens a study of invented models."""
    with ExitStack() as stack:

        def opened(*models: Model, without=()) -> StudyResults:
            path = write_measurements(tmp_path / f"{len(list(tmp_path.iterdir()))}.duckdb", *models, without=without)
            return stack.enter_context(open_results(path, "invented"))

        yield opened


def draw(name: str, results) -> list:
    with house_style():
        return figures()[name](results)


# Which heads compose


def test_a_graph_has_a_node_a_head_and_an_edge_a_significant_pair(results):
    (picture,) = draw("composition_graph", results)
    assert picture.sentence == (
        "Of the 48 ways in which heads of 2L4H can compose, one is significant: "
        "L0H0 into the keys of L1H3 (score 0.400, z = 36.1)."
    )
    axes = picture.figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["H0", "H1", "H2", "H3"] * 2
    (edge,) = axes.patches
    assert to_hex(edge.get_edgecolor()) == KIND_COLORS["K"]
    assert edge.get_linewidth() == THICKEST
    start, end = edge.get_path().vertices[[0, -1]].tolist()
    assert start == [0, 0]
    assert end == [3, pytest.approx(0.8, abs=0.1)], "right below the head that it enters"
    (arrow,) = axes.lines
    assert (arrow.get_marker(), arrow.get_xydata().tolist()) == ("^", [end])


def test_only_the_strongest_edges_are_drawn(results):
    everything = results.frame("compositions").assign(significant=True)

    class Composed:
        def frame(self, query: str) -> DataFrame:
            return everything if query == "compositions" else results.frame(query)

        def rows(self, query: str) -> list:
            return results.rows(query)

    (picture,) = composition_graph(Composed())
    assert "48 are significant: 16 through queries, 16 through keys and 16 through values." in picture.sentence
    assert f" {48 - MAX_EDGES} others with lower z are not drawn." in picture.sentence
    edges = picture.figure.axes[0].patches
    assert len(edges) == MAX_EDGES
    assert edges[0].get_linewidth() == max(edge.get_linewidth() for edge in edges)
    ends = {to_hex(edge.get_edgecolor()): edge.get_path().vertices[-1, 0] % 1 for edge in edges}
    assert ends[KIND_COLORS["K"]] == 0
    assert 0 < ends[KIND_COLORS["V"]] < 0.5 < ends[KIND_COLORS["Q"]] < 1, "each kind enters a head at its own place"


def test_no_composition_is_said_to_be_none(study):
    (picture,) = draw("composition_graph", study(Model(composed=D_MODEL**-0.5)))
    assert picture.figure is None
    assert picture.sentence == "No picture: none of the 48 ways in which heads of 2L4H can compose is significant."


# Spectra


def test_spectra_are_beside_each_other_and_scored(results):
    two, one = draw("eigenvalue_spectra", results)
    assert two.sentence.startswith("In 2L4H, eigenvalues are clearly positive in OV of L1H3 (0.95); in QK of no head")
    assert "with keys that read the named earlier head alone, those of L1H3 (0.98)." in two.sentence
    axes = two.figure.axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [
        f"L{layer}H{h}" for layer in (0, 1) for h in range(4)
    ]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["OV", "QK", "K-composed"]
    assert len(axes.patches) == len(axes.collections) == 8 + 8 + 4
    assert [text.get_text() for text in axes.texts].count("via L0H0") == 4
    for circle, spectrum in zip(axes.patches, axes.collections, strict=True):
        distances = np.hypot(*(spectrum.get_offsets() - circle.center).T)
        assert distances.max() == pytest.approx(1)
    assert "K-composed" not in [tick.get_text() for tick in one.figure.axes[0].get_yticklabels()]


def test_of_many_heads_those_with_a_role_are_drawn(study):
    (picture,) = draw("eigenvalue_spectra", study(Model(n_heads=7)))
    heads = [tick.get_text() for tick in picture.figure.axes[0].get_xticklabels()]
    assert len(heads) == MAX_SPECTRA
    assert {"L0H0", "L1H6"} < set(heads)
    assert "6 heads without a role or with scores closer to 0 are not drawn." in picture.sentence


# Paths and scores


def test_paths_from_feed_forward_layers_have_no_order():
    assert [_order(n) for n in (NA, 0, 1, 2)] == [
        "feed-forward layers", "the direct path", "through 1 head", "through 2 heads",
    ]  # fmt: skip


def test_paths_have_bars_as_long_as_their_effects(results):
    two, one = draw("path_term_bars", results)
    assert two.sentence == (
        "Added order by order, the paths of 2L4H lower its loss by 2.00 nats (the direct path), 0.50 nats (through "
        "1 head) and 0.12 nats (through 2 heads). Of paths through heads the one that lowers it most is L0H0 (0.30); 0 "
        f"of 24 estimates are below 0. {24 - MAX_PATHS} paths with smaller effects are not drawn."
    )
    left, right = two.figure.axes
    assert [bar.get_width() for bar in left.patches] == [2, 0.5, 0.125]
    assert len(right.patches) == MAX_PATHS
    assert [tick.get_text() for tick in right.get_yticklabels()][:2] == ["L0H0", "L1H0"]
    assert [bar.get_width() for bar in one.figure.axes[1].patches] == pytest.approx([0.3, 0.25])


def test_parts_of_scores_add_up(results):
    (picture,) = draw("score_term_bars", results)
    assert picture.sentence == (
        "Of the later heads of 2L4H, L1H3 owes the largest share of the variance of its attention scores to earlier "
        "heads: 0.65; L0H0 in its keys contributes most (0.45). In 3 of 4, position alone accounts for over half."
    )
    axes = picture.figure.axes[0]
    parts = {container.get_label(): container.patches[3] for container in axes.containers}
    widths = {label: bar.get_width() * (-1 if bar.get_x() < 0 else 1) for label, bar in parts.items()}
    assert widths == pytest.approx(
        {
            PARTS["position"][0]: 0.2,
            PARTS["direct"][0]: 0.15,
            PARTS["Q"][0]: 0.2,
            PARTS["K"][0]: 0.5,
            PARTS["QK"][0]: -0.05,
        }
    )
    assert [text.get_text() for text in axes.texts] == ["L0H0 in keys: 0.45"]


def test_the_strongest_source_counts_both_sides():
    terms = DataFrame(
        [("L0H1", "embedding", 0.3), ("L0H1", "L0H2", 0.1), ("embedding", "L0H2", 0.25), ("L0MLP", "distance", 0.9)],
        columns=["query_source", "key_source", "share"],
    )
    assert strongest_source(terms) == ("L0H1", "queries", pytest.approx(0.4))
    assert strongest_source(terms[3:]) is None


# Formation and bigrams


def test_formation_has_all_of_the_circuit_on_one_axis(results):
    (picture,) = draw("circuit_formation", results)
    assert picture.sentence.startswith(
        "In 2L4H, previous_token of L0H0 rises from 0.01 at 4.1 k tokens to 0.64, over halfway from 1.2 M on; "
    )
    assert (
        "K-composition of L1H3 with it rises from 0.125 at 4.1 k tokens to 0.400, over halfway from 1.7 M on"
        in picture.sentence
    )
    assert (
        "induction_random_period of L1H3 rises from 0.01 at 4.1 k tokens to 0.35, over halfway from 2.3 M on. The band"
        in picture.sentence
    )
    attention, composition, loss = picture.figure.axes
    assert [line.get_ydata()[-1] for line in attention.lines] == pytest.approx([0.64, 0.525, 0.35])
    assert composition.lines[0].get_ydata()[-1] == pytest.approx(0.4)
    assert set(composition.lines[1].get_ydata()) == {D_MODEL**-0.5}
    assert loss.lines[0].get_ydata()[-1] == 2.3
    assert attention.get_xlim() == loss.get_xlim()
    assert attention.patches, "the phase change"


def test_missing_parts_of_a_formation_are_missing(study):
    (picture,) = draw("circuit_formation", study(TWO, without={"compositions"}))
    assert "K-composition of L1H3 with it is missing" in picture.sentence


def test_bigrams_have_a_dot_each_the_shallowest_model_first(results):
    (picture,) = draw("bigram_fit", results)
    assert "this share: 0.980 in 0L n_heads=4, 0.780 in 1L2H and 0.580 in 2L4H." in picture.sentence
    assert "the direct path's differs by -0.40 in 1L2H and -0.40 in 2L4H; any two parts of" in picture.sentence
    assert [axes.get_title(loc="left") for axes in picture.figure.axes] == ["0L n_heads=4", "1L2H", "2L4H"]
    dots = picture.figure.axes[0].collections[0]
    assert len(dots.get_offsets()) == 20
    assert dots.get_sizes()[0] == dots.get_sizes().max()
    assert picture.figure.axes[0].texts[0].get_text() == "explained 0.980\ncorrelation 0.900"


# What holds for all of them


def test_without_results_there_is_no_picture(study):
    results = study(TWO, without={*CIRCUITS, "heads"})
    for name in OF_CIRCUITS:
        for picture in draw(name, results):
            assert picture.figure is None
            assert picture.sentence.startswith("No picture: ")


def test_values_that_are_missing_leave_the_rest(study):
    without = {"compositions.significant", "bigrams.explained_share", "path_terms.removal_effect_nats"}
    without |= {"heads.previous_token", "heads.induction_random_period", "score_terms.share", "compositions.score"}
    results = study(TWO, ZERO, without=without)
    sentences = [picture.sentence for name in OF_CIRCUITS for picture in draw(name, results)]
    assert not [sentence for sentence in sentences if "nan" in sentence or "None" in sentence]
    assert any("this share: missing in 0L and missing in 2L4H" in sentence for sentence in sentences)


def test_large_studies_show_the_best_of_each_depth(study):
    models = [Model(n_layers=n, n_heads=h, induction=0.01 * h * n) for n in (1, 2, 3) for h in (1, 2)]
    results = study(*models, ZERO)
    labels = labels_best_first(results, {model.name for model in models})
    assert best_label_of_each_depth(results, labels) == (["3L2H", "2L2H", "1L2H"], 3)
    pictures = draw("eigenvalue_spectra", results)
    assert [picture.figure.get_suptitle() for picture in pictures] == ["3L2H", "2L2H", "1L2H"]
    assert pictures[0].sentence.endswith("3 more kinds of model are not shown: see the SQL.")
    assert "more kinds" not in pictures[-1].sentence
    assert [picture.folded for picture in pictures] == ["3L2H", "2L2H", "1L2H"]


def test_pieces_of_sentences():
    curve = DataFrame({"tokens": [1000, 2000, 3000], "x": [np.nan, 0.0, 1.0]})
    assert risen("x", curve, "x", 0.1) == "x rises from 0.00 at 2.0 k tokens to 1.00, over halfway from 3.0 k on"
    twice = DataFrame({"tokens": [1000, 2000, 3000, 4000], "x": [0.0, 0.6, 0.3, 1.0]})
    assert risen("x", twice, "x", 0.1).endswith("over halfway from 4.0 k on"), "what it lost again doesn't count"
    assert risen("x", curve, "x", 2) == "x does not clearly rise (0.00 to 1.00)"
    assert risen("x", curve[:1], "x", 0.1) == "x is missing"
    assert [counted(n, "head") for n in (0, 1, 2)] == ["0 heads", "1 head", "2 heads"]
    assert counted(np.int64(2), "head") == "2 heads"  # a sum over a frame


def test_no_edge_runs_through_a_head():
    start, end = (0.0, 0.0), (0.0, 2.0)
    assert np.array(curve_past(start, end, [], 0.2)) == pytest.approx(np.array([(0, 0), (0, 1.1), (0, 0.9), (0, 2)]))
    curve = curve_past(start, end, [(0.0, 1.0), (1.0, 1.0)], 0.2)
    middle = sum(weight * x for weight, (x, _) in zip((1, 3, 3, 1), curve, strict=True)) / 8
    assert 0.2 < middle < 0.8, "it passes between the two"


@pytest.mark.parametrize("n", [2, 6])
def test_every_writer_that_is_named_is_drawn(n):
    writers = [f"L0H{head}" for head in range(n)]
    assert in_rows(writers).split() == writers
