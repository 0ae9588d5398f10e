"""How the induction circuit forms: both of its heads, what joins them and the loss, on one axis of tokens."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from tasks.figures.labels import labels_with_rows
from tasks.figures.phase_changes import mark, strongest_change
from tasks.figures.sentences import models_left_out, rise
from tasks.figures.style import INDUCTION, KINDS, MUTED, PREVIOUS_TOKEN, WIDTH, Palette, Picture, scale_by_tokens
from tasks.study_results import StudyResults

NAME, QUERIES = "circuit_formation", ("circuit_formation", "phase_changes")
MAX_COLUMNS = 3  # kinds of model
STYLES = {
    "previous_token": {"color": PREVIOUS_TOKEN, "label": "previous_token of the head that is read"},
    "prefix_matching": {
        "color": INDUCTION,
        "label": "prefix_matching of the one that reads",
        "linestyle": (0, (1.5, 1.5)),
    },
    "induction_random_period": {"color": INDUCTION, "label": "its induction_random_period"},
    "k_score": {"color": KINDS["K"], "label": "their K-composition"},
    "k_chance": {"color": KINDS["K"], "label": "that of random heads", "linestyle": (0, (1.5, 1.5)), "marker": ""},
    "validation_loss_nats": {"color": MUTED, "label": "validation loss"},
}
ROWS = {  # what is drawn in one panel
    "attention": ("previous_token", "prefix_matching", "induction_random_period"),
    "K-composition": ("k_score", "k_chance"),
    "loss, nats": ("validation_loss_nats",),
}
SMALLEST_RISES = {"previous_token": 0.1, "k_score": 0.01, "induction_random_period": 0.1}  # that are worth a date


def circuit_formation(results: StudyResults, palette: Palette) -> list[Picture]:
    """Over tokens, the earlier head, its K-composition with the later one, the later head and the loss."""
    lines = results.frame("circuit_formation")
    labels = labels_with_rows(results, lines)
    if not labels:
        return [Picture(NAME, "No picture: no model has a pair of heads that could be an induction circuit.", QUERIES)]
    shown = labels[:MAX_COLUMNS]
    figure = Figure(figsize=(WIDTH, 5.4), layout="constrained")
    panels = figure.subplots(len(ROWS), len(shown), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 2, 2))
    change = strongest_change(results, "prefix_matching")
    for column, label in zip(panels.T, shown, strict=True):
        of_model = lines[lines.label == label]
        column[0].set_title(f"{label}: {of_model.reader.iloc[0]} reads {of_model.writer.iloc[0]}")
        for axes, (title, names) in zip(column, ROWS.items(), strict=True):
            for name in names:
                axes.plot(of_model.tokens, of_model[name], **{"marker": "o"} | STYLES[name])
            axes.set_ylabel(title)
            scale_by_tokens(axes)
            mark(axes, change if change and change.label == label else None)
            axes.label_outer()
    for axes in panels[0]:
        axes.set_ylim(0, 1)
    handles = [Line2D([], [], **style) for style in STYLES.values()]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, columnspacing=1.4)
    sentence = _sentence(shown[0], lines[lines.label == shown[0]])
    if change and change.label == shown[0]:
        sentence += f" {change.sentence}"
    return [Picture(NAME, f"{sentence}{models_left_out(len(labels) - len(shown))}", QUERIES, figure)]


def _sentence(label: str, lines: DataFrame) -> str:
    """When each part of the best model's circuit rose."""
    writer, reader = lines.writer.iloc[0], lines.reader.iloc[0]
    names = (
        f"previous_token of {writer}",
        f"K-composition of {reader} with it",
        f"induction_random_period of {reader}",
    )
    rises = [
        rise(what, known, score, smallest, digits=3 if score == "k_score" else 2)
        if len(known := lines.dropna(subset=[score]))
        else f"{what} is missing"
        for what, (score, smallest) in zip(names, SMALLEST_RISES.items(), strict=True)
    ]
    return f"In {label}, {'; '.join(rises)}."
