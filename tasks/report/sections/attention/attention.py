"""Attention on a passage of real text: of heads with a role, of others worth a look, and aggregated over layers."""

from collections.abc import Collection, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from headstream.models.heads.attended_keys import induction_keys, previous_token_keys
from headstream.tasks.report.figures.style import (
    BLUE,
    GRID,
    MUTED,
    ROLE_COLORS,
    WIDTH,
    as_map,
    cells,
    panel,
    panel_grid,
    tint,
)
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed
from headstream.tasks.words.plain_text import terminal_safe

MAP_SIDE = 7.2  # inches at most
_MAX_CELL = 0.28
LABEL_LENGTH, SHORT_LABEL = 14, 7  # characters
LABEL_PITCH = 0.145  # inches between the labels of tokens at least
_N_COLUMNS = 3  # of small patterns
EXCERPT = 16  # tokens of a passage whose names have room beside a small pattern
_TITLE = 0.95  # inches above and below a small pattern, its labels included
LAST_SCORE = 3  # place of the last head in the gallery that is there for a score, and not as one of a pair
_LOOK = (
    "Each row is a token that looks back, each column a token that it may look at: the fuller the colour, the more of "
    "the row's attention goes there. A · is a space, \\n the end of a line."
)
LOOK_OF_GALLERY = "Other heads worth a look, each where it attends most, two that are alike on the same tokens."
LOOK_OF_AGGREGATES = (
    "What all heads of the last layer attend to on average, and where that leads through all layers down to the tokens."
)
EXPECTED = {  # by role: which keys a head should attend to, what they are, and the score for doing so
    "induction": (induction_keys, "what followed earlier copies of the current token", "induction_random_period"),
    "previous token": (previous_token_keys, "the previous token", "previous_token"),
}
TITLES = {"mean": "mean over heads of L{}", "rollout": "rollout from L{}", "flow": "flow from L{}"}


def attention(results: StudyResults) -> list[Picture]:
    """Attention of the best induction and previous-token heads on the sample passage and, smaller, of other heads."""
    weights, others = results.frame("attention"), results.frame("attention_gallery")
    large = [_large(str(role), pattern) for role, pattern in weights.groupby("role")]
    pictures = [*large, *_gallery(others, set(weights.head_label))]
    why = "No picture: no head whose attention was kept has a role or another reason to be looked at."
    return pictures or [Picture("attention", why, ("attention", "attention_gallery"))]


def attention_aggregates(results: StudyResults) -> list[Picture]:
    """The mean pattern of the last layer, and attention through all layers by rollout and by flow."""
    name = "attention_aggregates"
    found = results.frame(name).dropna(subset=["weight"])
    if found.empty:
        return [Picture(name, "No picture: no model has heads whose attention was aggregated.", (name,))]
    label, layer = found.label.iloc[0], found.layer.iloc[0]
    patterns = {str(method): pattern for method, pattern in found.groupby("method", sort=False)}
    figure = _aggregates(label, {TITLES[method].format(layer): patterns[method] for method in patterns})
    told = []
    for method, pattern in patterns.items():
        weights = _matrix(pattern)
        told.append(f"{weights.diagonal()[1:].mean():.2f} and {weights[1:, 0].mean():.2f} ({method})")
    sentence = (
        "Rollout multiplies the mean patterns, each mixed half and half with the identity; flow is the maximum flow "
        f"through them. Averaged over the queries of {label} after the first, the shares of attention that go to the"
        f" query's own token and to the first token are {listed(told)}. Colour goes by the square root of weights, so"
        " that small ones are seen."
    )
    return [Picture(name, sentence, (name,), figure, LOOK_OF_AGGREGATES)]


def expected_keys(role: str, tokens: Sequence[str]) -> np.ndarray:
    """Whether a head of that role should attend from a query to a key, as [query, key]; the first token is BOS."""
    numbers = torch.from_numpy(np.unique(tokens, return_inverse=True)[1])[None]
    return EXPECTED[role][0](numbers, bos=int(numbers[0, 0]))[0].numpy()


def _large(role: str, pattern: DataFrame) -> Picture:
    weights = _matrix(pattern)
    tokens = _tokens(pattern)
    expected = expected_keys(role, tokens)
    _, keys, score = EXPECTED[role]
    head = f"{pattern.head_label.iloc[0]} of {pattern.label.iloc[0]}, the head with the highest {score},"
    queries = expected.any(axis=1)
    if queries.any():
        share = (weights * expected).sum(axis=1)[queries].mean()
        sentence = (
            f"{head} gives {share:.2f} of its attention to {keys} (outlined), "
            f"on average over the {queries.sum()} queries that have such a key other than BOS."
        )
    else:
        sentence = f"{head} has no query in this passage that could attend to {keys}."
    figure = _map(weights, tokens, expected, ROLE_COLORS[role])
    return Picture(f"attention_{role.replace(' ', '_')}", sentence, ("attention",), figure, _LOOK)


def _gallery(weights: DataFrame, drawn: Collection[str]) -> list[Picture]:
    """Heads that are not drawn yet and have the highest score of a kind, or are the two most alike."""
    chosen = weights.drop_duplicates(["place", "head_label"])
    if chosen[~chosen.head_label.isin(drawn)].empty:
        return []
    highest, alike = chosen[chosen.place <= LAST_SCORE], chosen[chosen.place > LAST_SCORE]
    told = [
        f"{head} has the highest {score} ({value:.2f}{', shown above' if head in drawn else ''})"
        for score, head, value in zip(highest.score, highest.head_label, highest.value, strict=True)
    ]
    if not alike.empty:
        told.append(f"{' and '.join(alike.head_label)} are {alike.score.iloc[0]} (distance {alike.value.iloc[0]:.2f})")
    panels = {}
    for head, of_head in weights[~weights.head_label.isin(drawn)].groupby("head_label", sort=False):
        scores = of_head.drop_duplicates("place")
        reasons = [
            f"{score}{', distance' if place > LAST_SCORE else ''} {value:.2f}"
            for place, score, value in zip(scores.place, scores.score, scores.value, strict=True)
        ]
        panels["\n".join([f"{head}: {reasons[0]}", *reasons[1:]])] = of_head[of_head.place == scores.place.iloc[0]]
    label, tokens = weights.label.iloc[0], _tokens(weights)
    name, figure = "attention_gallery", _excerpts(label, panels, tokens)
    return [Picture(name, f"In {label}, {'; '.join(told)}.", (name,), figure, LOOK_OF_GALLERY)]


def _tokens(pattern: DataFrame) -> list[str]:
    """The passage, token by token."""
    by_place = pattern.drop_duplicates("query").sort_values("query")
    return [terminal_safe(token) for token in by_place.query_token.fillna("?")]


def _matrix(pattern: DataFrame) -> np.ndarray:
    """The weights of a pattern as [query, key]; keys that come after the query have 0."""
    n = pattern["query"].max() + 1
    weights = np.zeros((n, n))
    weights[pattern["query"], pattern["key"]] = pattern.weight
    return weights


def _excerpts(label: str, patterns: Mapping[str, DataFrame], tokens: Sequence[str]) -> Figure:
    """A panel for each pattern, by its title: the stretch of the passage in which it attends most to other tokens."""
    n = min(EXCERPT, len(tokens))
    n_lines = max(title.count("\n") for title in patterns)
    height = ceil(len(patterns) / _N_COLUMNS) * (WIDTH / _N_COLUMNS - 0.75 + _TITLE + 0.17 * n_lines)
    figure, panels = panel_grid(label, len(patterns), _N_COLUMNS, 0.3 + height)
    alike = [_matrix(pattern) for pattern in patterns.values() if pattern.place.iloc[0] > LAST_SCORE]
    for axes, (title, pattern) in zip(panels, patterns.items(), strict=True):
        weights = _matrix(pattern)
        of_a_pair = pattern.place.iloc[0] > LAST_SCORE
        shown = _busiest(np.sum(alike, axis=0) if of_a_pair else weights, n)  # a pair is compared on the same tokens
        cells(axes, tint(weights[shown, shown], BLUE))
        axes.set_title(title, fontsize=9)
        _name_tokens(axes, tokens[shown], range(n), SHORT_LABEL, fontsize=7)
        axes.xaxis.tick_bottom()
        axes.spines[:].set(visible=True, color=GRID)
    return figure


def _busiest(weights: np.ndarray, n: int) -> slice:
    """The stretch of n tokens with most attention to other tokens of it; attention to BOS says little."""
    others = np.tril(weights, -1)
    others[:, 0] = 0
    starts = range(len(weights) - n + 1)
    start = max(starts, key=lambda start: others[start : start + n, start : start + n].sum())
    return slice(start, start + n)


def _aggregates(label: str, patterns: Mapping[str, DataFrame]) -> Figure:
    """A panel for each pattern, by its title; colour by the square root, since mixtures are pale."""
    figure, panels = panel_grid(label, len(patterns), len(patterns), 0.75 + WIDTH / len(patterns))
    for axes, (title, pattern) in zip(panels, patterns.items(), strict=True):
        cells(axes, tint(np.sqrt(_matrix(pattern)), BLUE))
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("key: attended to")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(4, integer=True))
        axes.grid(False)
        axes.spines[:].set(visible=True, color=GRID)
    panels[0].set_ylabel("query: attends")
    return figure


def _map(weights: np.ndarray, tokens: Sequence[str], expected: np.ndarray, color: str) -> Figure:
    n = len(tokens)
    cell = min(_MAX_CELL, MAP_SIDE / n)
    figure, axes = panel(n * cell + 1.35, min(WIDTH, n * cell + 1.6))
    cells(axes, tint(weights, color))
    query, key = np.nonzero(expected)
    axes.scatter(key, query, s=(72 * cell) ** 2, marker="s", facecolor="none", edgecolor=MUTED, linewidth=0.8)
    _name_tokens(axes, tokens, range(0, n, ceil(LABEL_PITCH / cell)), LABEL_LENGTH)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("key: attended to")
    axes.set_ylabel("query: attends")
    axes.text(
        n - 0.5, 0, "no colour: 0, full: 1", ha="right", va="center", color=MUTED, fontsize=9
    )  # in the empty half
    return figure


def _name_tokens(axes: Axes, tokens: Sequence[str], places: Sequence[int], longest: int, **style: Any) -> None:
    """Name those places of both axes by their tokens."""
    names = [tokens[i] if len(tokens[i]) <= longest else f"{tokens[i][: longest - 1]}…" for i in places]
    axes.set_xticks(places, names, rotation=90, family="monospace", **style)
    axes.set_yticks(places, names, family="monospace", **style)
    as_map(axes)
