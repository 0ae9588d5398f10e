"""Attention patterns on a passage of real text."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from tasks.figures.style import INDUCTION, INK, MUTED, PREVIOUS_TOKEN, WIDTH, Palette, Picture, tinted
from tasks.markdown import visible
from tasks.study_results import StudyResults

MAP_SIDE = 7.2  # inches at most
LARGEST_CELL = 0.28
LABEL_LENGTH = 14  # characters
LABEL_PITCH = 0.145  # inches between the labels of tokens at least
COLORS = {"induction": INDUCTION, "previous token": PREVIOUS_TOKEN}
EXPECTED = {"induction": "what followed earlier copies of the current token", "previous token": "the token before"}


def attention(results: StudyResults, palette: Palette) -> list[Picture]:
    """Where the best induction and the best previous-token head look in the sample passage."""
    weights = results.frame("attention")
    if weights.empty:
        return [Picture("attention", "No picture: no model has heads whose attention was kept.", ("attention",))]
    return [_picture(str(role), pattern) for role, pattern in weights.groupby("role")]


def expected_keys(role: str, tokens: Sequence[str]) -> np.ndarray:
    """Whether a head of that role should look from a query at a key, as [query, key]."""
    n = len(tokens)
    if role == "previous token":
        return np.eye(n, k=-1, dtype=bool)
    copies = np.array([[earlier == token for earlier in tokens] for token in tokens])
    following = np.zeros((n, n), dtype=bool)
    following[:, 1:] = np.tril(copies, -1)[:, :-1]
    return following


def _picture(role: str, pattern: DataFrame) -> Picture:
    n = pattern["query"].max() + 1
    weights = np.zeros((n, n))
    weights[pattern["query"], pattern["key"]] = pattern.weight
    tokens = pattern.drop_duplicates("query").sort_values("query").query_token.fillna("?").map(visible).tolist()
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
