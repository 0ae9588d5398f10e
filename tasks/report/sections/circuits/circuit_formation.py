"""How the induction circuit forms: its reader and strongest writer, what joins them and the loss, over tokens."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from headstream.tasks.report.figures.phase_changes import scale_by_tokens, strongest_change
from headstream.tasks.report.figures.style import DOTTED, MUTED, ORANGE, PURPLE, TEAL, WIDTH, wrapped
from headstream.tasks.report.model_choice import best_label_of_each_depth
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import models_left_out, risen
from headstream.tasks.results.study_results import StudyResults

_NAME, _QUERIES = "circuit_formation", ("circuit_formation", "phase_changes")
LINES: Mapping[str, Mapping[str, dict[str, Any]]] = {  # by panel
    "attention": {
        "previous_token": {"color": TEAL, "label": "earlier head: attention to the token before"},
        "prefix_matching": {
            "color": PURPLE,
            "linestyle": DOTTED,
            "label": "later head: to what followed, fixed distance",
        },
        "induction_random_period": {"color": PURPLE, "label": "later head: to what followed, any distance"},
    },
    "K-composition": {
        "k_score": {"color": ORANGE, "label": "how much its keys read the earlier head"},
        "k_chance": {"color": ORANGE, "linestyle": DOTTED, "marker": "", "label": "the same of random heads"},
    },
    "loss, nats": {"validation_loss_nats": {"color": MUTED, "label": "validation loss"}},
}


def circuit_formation(results: StudyResults) -> list[Picture]:
    """Scores of both heads of the circuit, their K-composition and the loss, over tokens."""
    curves = results.frame("circuit_formation")
    shown, n_more = best_label_of_each_depth(results, curves.label)
    if not shown:
        return [
            Picture(
                _NAME,
                "No picture: no model has an induction head that reads previous-token heads by its keys.",
                _QUERIES,
            )
        ]
    figure = Figure((WIDTH, 5.4))
    panels = figure.subplots(len(LINES), len(shown), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 2, 2))
    change = strongest_change(results, "prefix_matching")
    for column, label in zip(panels.T, shown, strict=True):
        of_model = curves[curves.label == label]
        n_more_writers = of_model.n_writers.iloc[0] - 1
        more = f" and {n_more_writers} more" if n_more_writers else ""
        title = f"{label}: {of_model.reader.iloc[0]} reads {of_model.writer.iloc[0]}{more}"
        column[0].set_title(wrapped(title, len(shown)))
        for axes, (title, lines) in zip(column, LINES.items(), strict=True):
            for score, style in lines.items():
                axes.plot(of_model.tokens, of_model[score], **{"marker": "o"} | style)
            axes.set_ylabel(title)
            scale_by_tokens(axes, change, label)
            axes.label_outer()
    panels[0, 0].set_ylim(0, 1)
    handles = [Line2D([], [], **style) for lines in LINES.values() for style in lines.values()]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    sentence = _sentence(shown[0], curves[curves.label == shown[0]])
    band = f" {change.sentence}" if change and change.label in shown else ""
    look = "In which order the parts of the circuit form, and what becomes of the loss meanwhile."
    return [Picture(_NAME, f"{sentence}{band}{models_left_out(n_more)}", _QUERIES, figure, look)]


def _sentence(label: str, curves: DataFrame) -> str:
    """When each part of a model's circuit rose."""
    writer, reader = curves.writer.iloc[0], curves.reader.iloc[0]
    parts = [
        risen(f"previous_token of {writer}", curves, "previous_token", smallest=0.1),
        risen(f"K-composition of {reader} with it", curves, "k_score", smallest=0.01, digits=3),
        risen(f"induction_random_period of {reader}", curves, "induction_random_period", smallest=0.1),
    ]
    return f"In {label}, {'; '.join(parts)}."
