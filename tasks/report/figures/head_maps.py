"""Figures of all heads at once: their scores when training is over, and how two of them came about."""

from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from tasks.report.figures.phase_changes import mark, strongest_change
from tasks.report.figures.score_panels import score_panels
from tasks.report.figures.sentences import listed, models_left_out, rise
from tasks.report.figures.style import (
    INDUCTION,
    LINE_LENGTH,
    PREVIOUS_TOKEN,
    WIDTH,
    Palette,
    Picture,
    scale_by_tokens,
)
from tasks.report.model_choice import labels_best_first
from tasks.results.study_results import StudyResults

MAX_MAPS = 3  # kinds of model that get one
MAX_TRAJECTORIES = 3
SMALLEST_RISE = 0.1  # that is worth a date
SCORES = (
    "induction_random_period",
    "induction_natural",
    "prefix_matching",
    "previous_token",
    "duplicate_token",
    "positional_share",
    "bos_attention",
    "entropy",
)


def head_maps(results: StudyResults, palette: Palette) -> list[Picture]:
    """Each score of each head at the last checkpoint, a map for each of the best kinds of model."""
    heads = results.frame("head_scores")
    labels = labels_best_first(results, heads.label)
    if not labels:
        return [Picture("head_map", "No picture: no model has heads with scores.", ("head_scores",))]
    pictures = []
    for i, label in enumerate(labels[:MAX_MAPS], start=1):
        of_model = heads[heads.label == label]
        sentence = _roles(label, of_model)
        if i == MAX_MAPS:
            sentence += models_left_out(len(labels) - MAX_MAPS)
        n_columns = 4 if of_model["head"].max() < 5 else 2
        figure = score_panels(label, of_model, SCORES, n_columns)
        pictures.append(Picture(f"head_map_{i}", sentence, ("head_scores",), figure))
    return pictures


def head_trajectories(results: StudyResults, palette: Palette) -> list[Picture]:
    """Over tokens, the heads that end as best induction and best previous-token head among the others."""
    name, queries = "head_trajectories", ("head_trajectories", "phase_changes")
    heads = results.frame("head_trajectories").dropna(subset=["induction_random_period", "previous_token"])
    labels = labels_best_first(results, heads.label)
    if not labels:
        return [Picture(name, "No picture: no model has heads with both scores.", queries)]
    shown = labels[:MAX_TRAJECTORIES]
    figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
    change = strongest_change(results, "prefix_matching")
    sentences = []
    for axes, label in zip(figure.subplots(1, len(shown), sharey=True, squeeze=False)[0], shown, strict=True):
        sentences.append(_draw_trajectories(axes, label, heads[heads.label == label]))
        scale_by_tokens(axes)
        axes.set_ylim(0, 1)
        mark(axes, change if change and change.label == label else None)
    lines = [Line2D([], [], color=color) for color in (INDUCTION, PREVIOUS_TOKEN)]
    titles = ["best induction head: induction_random_period", "best previous-token head: previous_token"]
    figure.legend(lines, titles, loc="outside upper left", ncols=2)
    sentence = f"{sentences[0]} Faint lines are the other heads.{models_left_out(len(labels) - len(shown))}"
    return [Picture(name, sentence, queries, figure)]


def _roles(label: str, heads: DataFrame) -> str:
    """Which heads of a model have a role, in one sentence."""
    with_role = heads[heads.role.notna() & (heads.role != "other")]
    if with_role.empty:
        return f"No head of {label} has a role: none of its scores reaches the threshold of one."
    named = [f"{head} ({role})" for head, role in zip(with_role.head_label, with_role.role, strict=True)]
    reach = "reaches" if len(named) == 1 else "reach"
    return f"{len(named)} of the {len(heads)} heads of {label} {reach} the threshold of a role: {listed(named)}."


def _draw_trajectories(axes: Axes, label: str, heads: DataFrame) -> str:
    """Draw one model's heads, and say when the best ones rose."""
    sentences = []
    for score, kind, color in (
        ("previous_token", "previous-token", PREVIOUS_TOKEN),
        ("induction_random_period", "induction", INDUCTION),
    ):
        final = heads.groupby("head_label")[score].last()
        best = str(final.idxmax())
        for head_label, line in heads.groupby("head_label"):
            style = {"marker": "o"} if head_label == best else {"linewidth": 0.8, "alpha": 0.4, "zorder": 1.5}
            axes.plot(line.tokens, line[score], color=color, **style)
        sentences.append(rise(f"best {kind} head, {best},", heads[heads.head_label == best], score, SMALLEST_RISE))
    axes.set_title(fill(label, LINE_LENGTH // MAX_TRAJECTORIES))
    return f"In {label} the {sentences[0]}; the {sentences[1]}."
