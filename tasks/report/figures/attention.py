"""Attention patterns on a passage of real text."""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from pandas import DataFrame

from models.heads.attended_keys import induction_keys, previous_token_keys
from tasks.plain_text import terminal_safe
from tasks.report.figures.pattern_panels import pattern_matrix, pattern_panels
from tasks.report.figures.sentences import listed
from tasks.report.figures.style import INDUCTION, INK, MUTED, PREVIOUS_TOKEN, SCORE, WIDTH, Palette, Picture, tinted
from tasks.results.study_results import StudyResults

MAP_SIDE = 7.2  # inches at most
LARGEST_CELL = 0.28
LABEL_LENGTH = 14  # characters
LABEL_PITCH = 0.145  # inches between the labels of tokens at least
COLORS = {"induction": INDUCTION, "previous token": PREVIOUS_TOKEN}
KEYS = {"induction": induction_keys, "previous token": previous_token_keys}
LAST_SCORE = 3  # place of the last head in the gallery that is there for a score, and not as one of a pair
EXPECTED = {"induction": "what followed earlier copies of the current token", "previous token": "the token before"}


def attention(results: StudyResults, palette: Palette) -> list[Picture]:
    """Where the best induction and previous-token heads look in the sample passage and, smaller, other heads."""
    weights = results.frame("attention")
    if weights.empty:
        return [Picture("attention", "No picture: no model has heads whose attention was kept.", ("attention",))]
    large = [_picture(str(role), pattern) for role, pattern in weights.groupby("role")]
    return [*large, *_gallery(results.frame("attention_gallery"), set(weights.head_label))]


def expected_keys(role: str, tokens: Sequence[str]) -> np.ndarray:
    """Whether a head of that role should look from a query at a key, as [query, key]; the first token is BOS."""
    numbers = torch.from_numpy(np.unique(tokens, return_inverse=True)[1])[None]
    return KEYS[role](numbers, bos=int(numbers[0, 0]))[0].numpy()


def _picture(role: str, pattern: DataFrame) -> Picture:
    weights = pattern_matrix(pattern)
    tokens = pattern.drop_duplicates("query").sort_values("query").query_token.fillna("?").map(terminal_safe).tolist()
    expected = expected_keys(role, tokens)
    head = f"{pattern.head_label.iloc[0]} of {pattern.label.iloc[0]}, the best {role.replace(' ', '-')} head,"
    queries = expected.any(axis=1)
    if queries.any():
        share = (weights * expected).sum(axis=1)[queries].mean()
        sentence = (
            f"{head} gives {share:.2f} of its attention to {EXPECTED[role]} (outlined), "
            f"on average over the {queries.sum()} queries that have such a key."
        )
    else:
        sentence = f"{head} has no query in this passage that could look at {EXPECTED[role]}."
    return Picture(
        f"attention_{role.replace(' ', '_')}", sentence, ("attention",), _map(weights, tokens, expected, COLORS[role])
    )


def _gallery(weights: DataFrame, drawn: Collection[str]) -> list[Picture]:
    """Heads that are not drawn yet and have the highest score of a kind, or are the two most alike."""
    chosen = weights.drop_duplicates(["place", "head_label"])
    if chosen[~chosen.head_label.isin(drawn)].empty:
        return []
    highest, alike = chosen[chosen.place <= LAST_SCORE], chosen[chosen.place > LAST_SCORE]
    told = [
        f"the highest {score} has {head} ({value:.2f}{', above' if head in drawn else ''})"
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
    label = weights.label.iloc[0]
    figure = pattern_panels(label, panels, SCORE)
    return [Picture("attention_gallery", f"In {label}, {listed(told)}.", ("attention_gallery", "attention"), figure)]


def _map(weights: np.ndarray, tokens: Sequence[str], expected: np.ndarray, color: str) -> Figure:
    n = len(tokens)
    cell = min(LARGEST_CELL, MAP_SIDE / n)
    figure = Figure(figsize=(min(WIDTH, n * cell + 1.4), n * cell + 1.1), layout="constrained")
    axes = figure.subplots()
    axes.imshow(tinted(weights, color), interpolation="none")
    query, key = np.nonzero(expected)
    axes.scatter(key, query, s=(72 * cell) ** 2, marker="s", facecolor="none", edgecolor=MUTED, linewidth=0.8)
    labelled = range(0, n, int(np.ceil(LABEL_PITCH / cell)))
    names = [tokens[i] if len(tokens[i]) <= LABEL_LENGTH else f"{tokens[i][: LABEL_LENGTH - 1]}…" for i in labelled]
    axes.set_xticks(labelled, names, rotation=90, family="monospace")
    axes.set_yticks(labelled, names, family="monospace")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelcolor=INK)
    axes.spines[:].set_visible(False)
    axes.grid(False)
    return figure
