"""What more parameters and more compute bring: the loss of all models of a study over both."""

from math import log10

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from headstream.tasks.report.figures.style import WIDTH, Palette, label_ends
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.markdown import short_count

_NAME, _QUERIES = "loss_over_size", ("loss_over_size",)
EXPONENTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def loss_over_size(results: StudyResults) -> list[Picture]:
    """Validation loss over parameters, a dot for each model, and over training compute, a line for each."""
    losses = results.frame(_NAME)
    last = losses[losses.is_last].dropna(subset=["parameters"])
    if last.parameters.nunique() < 2:
        return [Picture(_NAME, "No picture: no two models of different sizes have a validation loss.", _QUERIES)]
    trained = losses[losses.training_flops > 0]
    figure, palette = Figure((WIDTH, 3.3)), Palette.of(results)
    left, *others = figure.subplots(1, 1 if trained.empty else 2, sharey=True, squeeze=False)[0]
    for label, of_label in last.groupby("label"):
        left.plot(of_label.parameters, of_label.validation_loss_nats, **palette.dots(label))
    for right in others:
        for (label, _), line in trained.groupby(["label", "model_id"]):
            right.plot(line.training_flops, line.validation_loss_nats, **palette.line(label) | {"marker": ""})
        right.set_xlabel("training compute so far, floating-point operations")
        right.tick_params(labelleft=True)
    left.set_xlabel("parameters")
    left.set_ylabel("validation loss, nats per token")
    for axes in (left, *others):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    for right in others:
        right.xaxis.set_major_formatter(FuncFormatter(_power_of_ten))
        ends = trained.groupby(["label", "model_id"]).validation_loss_nats.last().groupby("label").mean()
        label_ends(right, {str(label): float(loss) for label, loss in ends.items()}, palette)
    spans_decades = last.parameters.max() > 10 * last.parameters.min()
    left.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if spans_decades else MaxNLocator(4))
    left.xaxis.set_major_formatter(FuncFormatter(lambda count, _: short_count(count).replace(".0 ", " ")))
    best = last.loc[last.validation_loss_nats.idxmin()]
    sentence = (
        f"The lowest loss of a single model is {best.validation_loss_nats:.2f} nats, that of {best.label} with "
        f"{short_count(best.parameters)} parameters and {best.training_flops:.1e} floating-point operations."
    )
    look = "Each dot and line is a model: the lower, the better it predicts; the farther left, the less it took."
    return [Picture(_NAME, sentence, _QUERIES, figure, look)]


def _power_of_ten(value: float, place: int | None = None) -> str:
    return f"10{f'{log10(value):.0f}'.translate(EXPONENTS)}"
