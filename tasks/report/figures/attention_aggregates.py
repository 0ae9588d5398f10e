"""Attention aggregated over heads and layers, on a passage of real text."""

import numpy as np

from tasks.report.figures.pattern_panels import pattern_matrix, pattern_panels
from tasks.report.figures.sentences import listed
from tasks.report.figures.style import Picture
from tasks.results.study_results import StudyResults

NAME, QUERIES = "attention_aggregates", ("attention_aggregates",)
TITLES = {"mean": "mean over heads of L{}", "rollout": "rollout from L{}", "flow": "flow from L{}"}


def attention_aggregates(results: StudyResults) -> list[Picture]:
    """The mean pattern of the last layer, and attention through all layers by rollout and by flow."""
    weights = results.frame(NAME).dropna(subset=["weight"])
    if weights.empty:
        return [Picture(NAME, "No picture: no model has heads whose attention was aggregated.", QUERIES)]
    label, layer = weights.label.iloc[0], weights.layer.iloc[0]
    patterns = {str(method): pattern for method, pattern in weights.groupby("method", sort=False)}
    figure = pattern_panels(label, {TITLES[method].format(layer): patterns[method] for method in patterns})
    shares = {method: _shares(pattern_matrix(pattern)) for method, pattern in patterns.items()}
    told = [f"{own:.2f} and {first:.2f} ({method})" for method, (own, first) in shares.items()]
    own_and_bos = "the shares of attention that go to the query's own token and to BOS"
    sentence = f"Averaged over the queries of {label}, {own_and_bos} are {listed(told)}."
    return [Picture(NAME, sentence, QUERIES, figure)]


def _shares(weights: np.ndarray) -> tuple[float, float]:
    """Mean shares that queries other than BOS give to themselves and to BOS."""
    return float(weights.diagonal()[1:].mean()), float(weights[1:, 0].mean())
