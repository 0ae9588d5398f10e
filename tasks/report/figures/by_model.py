"""Figures with a picture for each of the best kinds of model, and which those are."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from matplotlib.figure import Figure
from pandas import DataFrame

from headstream.tasks.report.model_choice import best_label_of_each_depth, labels_best_first
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import models_left_out
from headstream.tasks.results.study_results import StudyResults

MAX_MODELS = 3


def best_models(results: StudyResults, present: Iterable[str]) -> tuple[list[str], int]:
    """Of the kinds of model present, the best of any depth, best first; and how many more there are."""
    labels = labels_best_first(results, present)
    return labels[:MAX_MODELS], len(labels[MAX_MODELS:])


@dataclass(frozen=True)
class FigureOfEachModel:
    """A figure that has a picture for each of some kinds of model."""

    name: str
    queries: tuple[str, ...]  # that its pictures show
    look: str  # what to see in it
    why_none: str  # why there may be no picture at all
    choose: Callable[[StudyResults, Iterable[str]], tuple[list[str], int]] = best_label_of_each_depth

    def pictures(
        self, results: StudyResults, rows: DataFrame, draw: Callable[[str, DataFrame], tuple[str, Figure | None]]
    ) -> list[Picture]:
        """What `draw` makes of each label's rows: a sentence, maybe a figure. The first says how many are left out."""
        shown, n_more = self.choose(results, rows.label)
        if not shown:
            return [Picture(self.name, f"No picture: {self.why_none}.", self.queries)]
        drawn = [draw(label, rows[rows.label == label]) for label in shown]
        drawn[0] = drawn[0][0] + models_left_out(n_more), drawn[0][1]
        return [
            Picture(f"{self.name}_{i}", sentence, self.queries, figure, self.look, folded=label)
            for i, (label, (sentence, figure)) in enumerate(zip(shown, drawn, strict=True), start=1)
        ]
