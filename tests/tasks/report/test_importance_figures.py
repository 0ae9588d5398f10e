"""Figures of importance, pruning, redundancy, probes and aggregated attention, of invented studies."""

import re
from contextlib import ExitStack

import numpy as np
import pytest
from invented_importance import IMPORTANCE, METHODS, N_DRAWS, effect, increase
from invented_study import Model, write_measurements
from matplotlib.colors import to_hex
from painted_cells import painted

from headstream.tasks.report.figures.style import BLUE, GREY, ORANGE, house_style, save
from headstream.tasks.report.sections import figures
from headstream.tasks.report.sections.importance.ablations import MAX_HEADS
from headstream.tasks.report.sections.redundancy.head_similarity import places_on_a_map
from headstream.tasks.results.study_results import StudyResults, open_results

NAMES = ("importance_maps", "importance_agreement", "ablations", "heads_that_matter", "pruning_curves")
NAMES += ("head_similarity", "probe_accuracies", "attention_aggregates")
TWO, ONE, ZERO = Model(), Model(n_layers=1, n_heads=2, induction=0.02, loss=2.8), Model(n_layers=0, loss=4.0)
SINGLE = Model(n_layers=1, n_heads=1, spare=0)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A function that opens a study of invented models."""
    with ExitStack() as stack:

        def opened(*models: Model, without=()) -> StudyResults:
            path = write_measurements(tmp_path_factory.mktemp("study") / "w.duckdb", *models, without=without)
            return stack.enter_context(open_results(path, "invented"))

        yield opened


@pytest.fixture(scope="module")
def results(study):
    return study(TWO, ONE, ZERO)


@pytest.fixture(scope="module")
def wide(study):
    """A study of a model with more heads than fit."""
    return study(Model(n_heads=9))


@pytest.fixture(scope="module")
def seeds(study):
    """A study of head counts, three seeds each."""
    return study(
        *(
            Model(n_layers=1, n_heads=n, seed=seed, loss=2 + 0.5 / n, spare=n // 2, induction=0.1 * n)
            for n in (2, 4)
            for seed in range(3)
        )
    )


@pytest.fixture(scope="module")
def partial(study):
    """A study in which columns are missing that a picture can do without."""
    without = {
        "ablations.ci_low_nats", "importance.normalised", "head_similarity.is_redundant", "head_clusters",
        "probes.accuracy", "heads.copying_eigenvalues", "pruning.loss_nats", "attention_aggregates.key_token",
    }  # fmt: skip
    return study(TWO, without=without)


def draw(name: str, results) -> list:
    with house_style():
        return figures()[name](results)


def lines(axes) -> dict[str, list[float]]:
    """The heights of the named lines of a panel."""
    return {line.get_label(): list(line.get_ydata()) for line in axes.lines if not line.get_label().startswith("_")}


# Importance


def test_maps_have_a_panel_for_each_method(results):
    two, one = draw("importance_maps", results)
    n_alike = two.sentence.split(" by ")[-1].split()[0]
    assert two.sentence == (
        "By ablation_mean, the head of 2L4H that matters most is L0H0; it is also ranked first by "
        f"{n_alike} of {len(METHODS) - 3} scores that aren't ablations."
    )
    maps, bar = two.figure.axes
    titles = [text.get_text() for text in maps.texts if not re.match(r"[-\d]|H\d", text.get_text())]
    assert titles[0] == "ablation_mean"
    assert sorted(titles) == sorted(METHODS)
    image = painted(maps)
    norm = np.sqrt(sum(effect(TWO, k) ** 2 for k in range(4)))
    above = 2 if len(METHODS) % 4 else 1
    assert image[above + 1, 0, 3] == pytest.approx(effect(TWO, 0) / norm, abs=0.005)
    row, column = divmod(titles.index("taylor_signed"), 4)
    assert to_hex(image[above + (2 + above) * row, 5 * column + 3, :3]) == ORANGE
    assert to_hex(image[above, 0, :3]) == BLUE
    assert bar.texts[0].get_text().endswith("  -1")
    assert one.figure.get_suptitle() == "1L2H"


def test_many_heads_have_no_numbers(wide):
    (picture,) = draw("importance_maps", wide)
    maps = picture.figure.axes[0]
    texts = [text.get_text() for text in maps.texts]
    assert {text for text in texts if text not in METHODS} == {f"H{head}" for head in range(9)}


def test_methods_are_sorted_by_their_agreement(results, seeds, study):
    (picture,) = draw("importance_agreement", results)  # of 8 heads; those of the other kind are too few
    axes = picture.figure.axes[0]
    dots = next(line for line in axes.lines if len(line.get_xdata()) == len(METHODS) - 1)
    assert list(dots.get_xdata()) == sorted(dots.get_xdata(), reverse=True)
    assert "ablation_mean" not in [tick.get_text() for tick in axes.get_yticklabels()]
    start = "In 2L4H, the rank correlation of scores that aren't ablations with ablation_mean over 8 heads{} is "
    assert picture.sentence.startswith(start.format(""))
    assert "which other seeds may change (an interval needs three)" in picture.sentence
    assert not re.search(r"ablation_(zero|resample)", picture.sentence)
    assert draw("importance_agreement", seeds)[0].figure is None  # of four heads at most
    (picture,) = draw("importance_agreement", study(*(Model(seed=seed) for seed in range(3))))
    assert picture.sentence.startswith(start.format(", mean of 3 seeds,"))
    assert "chance" not in picture.sentence


def test_bars_of_ablation_have_intervals(results):
    two, _ = draw("ablations", results)
    assert two.sentence == (
        "Of the heads of 2L4H, L0H0 costs most if its mean replaces its output: 0.500 nats (0.490 to 0.510; no "
        "other interval overlaps). For 2 of 8 heads, the 95 % interval of the cost reaches down to 0 or below."
    )
    axes = two.figure.axes[0]
    by_method = {bars.get_label(): bars for bars in axes.containers if bars.get_label() in ("zero", "mean", "resample")}
    assert {method: bars.patches[0].get_height() for method, bars in by_method.items()} == pytest.approx(
        {"zero": 0.75, "mean": 0.5, "resample": 0.6}
    )
    ends = [path.vertices[:, 1] for path in axes.collections[0].get_paths()]
    assert ends[0] == pytest.approx([0.74, 0.76])


def test_intervals_of_a_single_sequence_are_missing(partial):
    (two,) = draw("ablations", partial)
    assert two.sentence.endswith("replaces its output: 0.500 nats; intervals are missing.")


def test_heads_that_cost_least_are_left_out(wide):
    (picture,) = draw("ablations", wide)
    assert picture.sentence.endswith(f" {18 - MAX_HEADS} heads with smaller effects are not drawn.")
    heads = [tick.get_text() for tick in picture.figure.axes[0].get_xticklabels()]
    assert len(heads) == MAX_HEADS
    assert {"L0H0", "L1H8"} < set(heads)
    assert "L0H1" not in heads


# Pruning


def test_curves_of_procedures_stand_beside_random_orders(results):
    two, _ = draw("pruning_curves", results)
    assert two.sentence == (
        "Of 8 heads of 2L4H, 3 can be removed at under 1\u00a0% more loss and 4 at under 5\u00a0%, by iterative "
        "pruning on ablation_mean; random orders allow 0.2 at under 1\u00a0%. Left, procedures are compared by "
        "michel_paper (the indigo dashed line is by ablation_mean): without 4 heads, loss is higher by "
        f"{100 * increase(4, 2):.1f}\u00a0% one shot, "
        f"{100 * increase(4, 3):.1f}\u00a0% iterative and {100 * increase(4, 4):.1f}\u00a0% retrained in between. "
        "The grey band spans all random orders. Under three seeds, means have no interval."
    )
    left, right = two.figure.axes
    drawn = lines(left)
    assert drawn.keys() == {
        "random orders, mean", "iterative, ablation_mean", "one shot", "iterative", "retrained in between", "gates",
    }  # fmt: skip
    assert left.get_title(loc="left") == "2L4H: by procedure, on michel_paper"
    assert drawn["retrained in between"] == pytest.approx([increase(n, 4) for n in range(9)])
    assert drawn["iterative, ablation_mean"] == pytest.approx([increase(n, 3) for n in range(9)])
    assert drawn["random orders, mean"] == pytest.approx([0.008 * 3 * n for n in range(9)])
    assert len(drawn["gates"]) == 3
    band = left.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(0.008 * N_DRAWS * 8)
    assert {"ablation_mean", "weight_norm", "attention_variance", "michel_paper", "other scores"} < lines(right).keys()
    assert left.get_yscale() == "symlog"
    assert left.get_ylim()[0] < 0 < increase(8, 1) < left.get_ylim()[1]


def test_seeds_have_bands(seeds):
    (picture,) = draw("pruning_curves", seeds)
    assert picture.sentence.startswith("Of 4 heads of 1L4H, 2 can be removed")
    assert "of iterative pruning and of one shot by ablation_mean. 1 more kind of model" in picture.sentence


def test_loss_and_removable_heads_over_the_number_of_heads(seeds, results):
    assert draw("heads_that_matter", results) == [], "the number of heads is not all that varies"
    (picture,) = draw("heads_that_matter", seeds)
    left, right = picture.figure.axes
    drawn = [line.get_ydata().tolist() for line in (*left.lines[:2], *right.lines[:4])]
    assert drawn[::2] == [[2.25, 2.125], [1, 2], [2, 3]]
    assert drawn[1::2] == [[2.25] * 3 + [2.125] * 3, [1] * 3 + [2] * 3, [2] * 3 + [3] * 3], "a dot for each seed"
    assert len(left.containers) == 1, "intervals of the loss alone"
    assert picture.sentence.startswith("Dots are seeds and lines join their means (left) and medians (right)")
    assert picture.sentence.endswith("The thin line is where every head could be removed.")


# Similar heads


def test_similar_heads_are_neighbours(results):
    two, one = draw("head_similarity", results)
    assert two.sentence == (
        "In 2L4H, L0H1 and L0H2 attend most alike (distance 0.10). Its 8 heads fall into 7 clusters (those of "
        "two or more are outlined). Redundant pairs (in orange): 1 of 8 tried; each head alone costs "
        "under 1\u00a0%, as such a pair needs, in 1 of the pairs tried."
    )
    axes = two.figure.axes[0]
    heads = [tick.get_text() for tick in axes.get_yticklabels()]
    assert heads == ["L0H1", "L0H2", "L0H3", "L1H0", "L1H1", "L1H2", "L1H3", "L0H0"]
    alphas = painted(axes)[..., 3]
    assert alphas[0, 1] == alphas[1, 0] == pytest.approx(0.9)
    assert (alphas.diagonal() == 1).all()
    frames = {color: [p for p in axes.patches if to_hex(p.get_edgecolor()) == color] for color in (ORANGE,)}
    assert sorted(frame.get_xy() for frame in frames[ORANGE]) == [(-0.5, 0.5), (0.5, -0.5)]
    assert len([p for p in axes.patches if not p.get_gid()]) == 1 + 2, (
        "the one cluster of two heads, and the redundant pair, twice"
    )
    assert "Redundant pairs (in orange): 0 of 1 tried; each head alone costs " in one.sentence


def test_heads_that_attend_alike_lie_close_on_the_map(results):
    corners = np.array([[3, 1], [3, -1], [-3, 1], [-3, -1.0]])
    distances = np.linalg.norm(corners[:, None] - corners, axis=-1)
    places = places_on_a_map(distances)
    assert np.linalg.norm(places[:, None] - places, axis=-1) == pytest.approx(distances), "a plane holds a rectangle"
    distances[0, 1] = distances[1, 0] = np.nan
    assert np.isfinite(places_on_a_map(distances)).all()
    two, _ = draw("head_similarity", results)
    plane = two.figure.axes[1]
    dots = dict(zip([text.get_text() for text in plane.texts], plane.collections[0].get_offsets(), strict=True))
    assert len(dots) == 8
    near = np.linalg.norm(dots["L0H1"] - dots["L0H2"])
    assert near < min(np.linalg.norm(dots["L0H1"] - dots[head]) for head in ("L0H0", "L1H3"))


def test_heads_without_clusters_are_in_their_own_order(partial):
    (two,) = draw("head_similarity", partial)
    assert two.sentence.endswith("(distance 0.10). Whether pairs are redundant was not measured.")
    axes = two.figure.axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()][:2] == ["L0H0", "L0H1"]
    assert all(patch.get_gid() for patch in axes.patches), "no frames"


# Probes


def test_probes_stand_beside_their_baselines(results):
    two, _ = draw("probe_accuracies", results)
    assert two.sentence == (
        "In the model that stands for 2L4H, the best head tells lexical_class, bracket_depth and seen_before better "
        "than the baselines, of 3 tasks. Of lexical_class a probe of L1H3 is right for 0.90 of tokens, 0.30 (0.28 to "
        "0.32) more than the best "
        "baseline, 0.60; the best place in the stream, R2, gains 0.33 (0.31 to 0.35)."
    )
    axes, right = two.figure.axes
    tasks = ["lexical class", "bracket depth", "seen before"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == tasks
    assert right.get_yticklabels()[0].get_text() == "L1H3: 0.30 (0.28 to 0.32)"
    drawn = {line.get_label(): list(line.get_xdata()) for line in axes.lines}
    assert len(drawn["every head"]) == 3 * 8
    assert sorted(drawn["best place in the stream"]) == pytest.approx([0.08, 0.18, 0.33])
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0.3, 0.15, 0.05])
    assert {to_hex(bar.get_facecolor()) for bar in axes.patches} == {BLUE}


def worse(results, by):
    """The same study with gains that much lower."""

    class Worse:
        def frame(self, query: str):
            frame = results.frame(query)
            if query != "probes":
                return frame
            lower = ["accuracy", "gain", "gain_low", "gain_high"]
            return frame.assign(**{column: frame[column] - by for column in lower})

        def rows(self, query: str) -> list:
            return results.rows(query)

    return Worse()


def test_probes_that_tell_no_more_than_the_baselines_are_said_to(results):
    two, _ = draw("probe_accuracies", worse(results, 0.29))
    assert [to_hex(bar.get_facecolor()) for bar in two.figure.axes[0].patches] == [GREY, ORANGE, ORANGE]
    assert two.sentence == (
        "No head of 2L4H is shown to tell more than the baselines: of 3 tasks the largest gain of a best head is that "
        "of L1H3 in lexical_class, 0.01 (-0.01 to 0.03), and no interval is above 0. Of bracket_depth and seen_before "
        "the best head tells less than a baseline."
    )


def test_probes_of_the_stream_alone_are_no_picture(results):
    class WithoutHeads:
        def frame(self, query: str):
            frame = results.frame(query)
            return frame[frame["head"].isna()] if query == "probes" else frame

        def rows(self, query: str) -> list:
            return results.rows(query)

    (none,) = draw("probe_accuracies", WithoutHeads())
    assert none.sentence == "No picture: no model has heads that were probed."
    assert none.figure is None


# Attention


def test_the_gallery_has_heads_that_are_not_drawn_yet(results):
    *_, gallery = draw("attention", results)
    assert gallery.sentence == (
        "In 2L4H, L1H3 has the highest copying_eigenvalues (0.95, shown above); L0H0 has the highest "
        "ablation_mean (0.50, shown above); L0H1 and L0H2 are redundant (distance 0.10)."
    )
    panels = [axes for axes in gallery.figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == [
        "L0H1: redundant, distance 0.10",
        "L0H2: redundant, distance 0.10",
    ]
    weights = painted(panels[0])[..., 3]
    assert weights.sum(axis=1).tolist() == pytest.approx([1] * len(TWO.passage), abs=0.08)
    assert [tick.get_text() for tick in panels[0].get_yticklabels()][:3] == ["<|bos|>", "def", "·"]


def test_aggregated_attention_has_a_panel_for_each_way(results):
    (picture,) = draw("attention_aggregates", results)
    n = len(TWO.passage)
    own = [kept + (1 - kept) * np.mean([1 / q for q in range(2, n + 1)]) for kept in (0.5, 0.75, 0.25)]
    assert [axes.get_title(loc="left") for axes in picture.figure.axes] == [
        "mean over heads of L1",
        "rollout from L1",
        "flow from L1",
    ]
    for name, share in zip(("mean", "rollout", "flow"), own, strict=True):
        assert re.search(rf"{share:.2f} and \d\.\d\d \({name}\)", picture.sentence)


# What holds for all of them


def check(results) -> list:
    """Every picture of a study: it can be saved, and nothing leaks out of Python."""
    pictures = [picture for name in NAMES for picture in draw(name, results)]
    for picture in pictures:
        assert picture.queries
        assert re.fullmatch(r"[A-Z0-9].*\.", picture.sentence)
        assert not re.search(r"\b(nan|NaN|None|NULL|NA)\b", picture.sentence)
    return pictures


def test_equal_results_give_equal_bytes(seeds, tmp_path):
    for name in ("a", "b"):
        (picture,) = draw("heads_that_matter", seeds)
        with house_style():
            save(picture.figure, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_study_from_before_these_tables_has_no_pictures(study):
    results = study(TWO, ZERO, without=set(IMPORTANCE))
    for picture in check(results):
        assert picture.figure is None
        assert picture.sentence.startswith("No picture: ")
    assert [picture.name for picture in draw("attention", results)] == [
        "attention_induction",
        "attention_previous_token",
    ]


def test_one_head_has_no_pairs_and_no_agreement(study):
    pictures = {picture.name: picture for picture in check(study(SINGLE))}
    assert pictures["similarity"].sentence == "No picture: no model has two heads that were compared."
    assert pictures["importance_agreement"].sentence.startswith("No picture: no model has eight heads")
    assert pictures["importance_1"].sentence.startswith(
        "By ablation_mean, the head of 1L1H that matters most is L0H0; "
    )
    assert pictures["pruning_1"].sentence.startswith(
        "Of 1 head of 1L1H, 0 can be removed at under 1\u00a0% more loss and 1 at"
    )


def test_values_that_are_missing_leave_the_rest(partial):
    assert len([picture for picture in check(partial) if picture.figure]) == len(NAMES) - 1
