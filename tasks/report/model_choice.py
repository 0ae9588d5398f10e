"""Which kinds of model a report shows where it can't show all."""

from collections.abc import Iterable
from typing import Any

from headstream.tasks.results.study_results import StudyResults

MAX_DEPTHS = 3
_MEASURED = ("validation_loss_nats_mean", "repeat_gain_nats_mean", "best_induction_random_period_mean")


def measured_groups(results: StudyResults) -> list[dict[str, Any]]:
    """Rows of reports/queries/answer.sql of the kinds of model whose loss or heads were measured."""
    return [row for row in results.rows("answer") if any(row[name] is not None for name in _MEASURED)]


def labels_best_first(results: StudyResults, present: Iterable[str]) -> list[str]:
    """Labels of the kinds of model that are present, the best induction first."""
    labels = set(present)
    return [row["label"] for row in results.rows("answer") if row["label"] in labels]


def best_label_of_each_depth(results: StudyResults, present: Iterable[str]) -> tuple[list[str], int]:
    """Labels of the best kind of model at each depth, of those present, best first; and how many others there are."""
    depths = {row["label"]: row["n_layers"] for row in results.rows("answer")}
    labels = labels_best_first(results, present)
    best = {depths[label]: label for label in reversed(labels)}
    shown = [label for label in labels if label in best.values()][:MAX_DEPTHS]
    return shown, len(labels) - len(shown)
