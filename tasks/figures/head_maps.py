"""Figures of all heads at once: their scores when training is over, and how two of them came about."""

from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from tasks.figures.phase_changes import mark, strongest_change
from tasks.figures.sentences import listed, models_left_out, rise
from tasks.figures.style import (
    GRID,
    INDUCTION,
    INK,
    LINE_LENGTH,
    PREVIOUS_TOKEN,
    SCORE,
    WIDTH,
    Palette,
    Picture,
    scale_by_tokens,
    tinted,
)
from tasks.shown_models import labels_best_first
from tasks.study_results import StudyResults

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
        pictures.append(Picture(f"head_map_{i}", sentence, ("head_scores",), _map(label, of_model)))
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


def _map(label: str, heads: DataFrame) -> Figure:
    """A panel for each score, a cell for each head."""
    n_layers, n_heads = heads.layer.max() + 1, heads["head"].max() + 1
    n_columns = 4 if n_heads <= 5 else 2
    with_numbers = n_heads <= 5 * 4 / n_columns
    n_rows = len(SCORES) // n_columns
    figure = Figure(figsize=(WIDTH, 0.3 + n_rows * (0.55 + 0.36 * n_layers)), layout="constrained")
    figure.suptitle(label, x=0.012, ha="left", fontsize=11, fontweight="bold")
    panels = figure.subplots(n_rows, n_columns, sharex=True, sharey=True)
    for axes, score in zip(panels.flat, SCORES, strict=True):
        values = np.full((n_layers, n_heads), np.nan)
        values[heads.layer, heads["head"]] = heads[score]
        axes.imshow(tinted(values, SCORE), interpolation="none", aspect="auto")
        axes.set_title(score, fontsize=9)
        numbered = range(0, n_heads, 1 + n_heads * n_columns // 40)  # as many as fit side by side
        axes.set_xticks(numbered, [f"H{head}" for head in numbered])
        axes.set_yticks(range(n_layers), [f"L{layer}" for layer in range(n_layers)])
        axes.tick_params(length=0)
        axes.grid(False)
        axes.hlines(np.arange(n_layers + 1) - 0.5, -0.5, n_heads - 0.5, color=GRID, linewidth=0.7)
        axes.vlines(np.arange(n_heads + 1) - 0.5, -0.5, n_layers - 0.5, color=GRID, linewidth=0.7)
        axes.spines[:].set_visible(False)
        for layer, head in zip(heads.layer, heads["head"], strict=True):
            if with_numbers:
                value = values[layer, head]
                text = "missing" if np.isnan(value) else f"{value:.2f}"
                axes.text(head, layer, text, ha="center", va="center", fontsize=9, color=INK)
    return figure


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
