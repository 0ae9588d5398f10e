"""Figures of learning: losses over training, and by how much context lowers the loss."""

from math import log
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from pandas import DataFrame, Series

from headstream.tasks.report.differences import ValueBySeed, extreme
from headstream.tasks.report.figures.phase_changes import scale_by_tokens, strongest_change
from headstream.tasks.report.figures.style import DOTTED, MUTED, WIDTH, Palette, label_ends, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import extremes
from headstream.tasks.results.study_results import StudyResults

MAX_TRAINING_CURVES = 12  # more would hide the validation losses
MAX_LINES_OF_A_KIND = 3  # of more models, thin lines and their mean
_THIN: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.4, "marker": "", "linestyle": "-"}


def learning_curves(results: StudyResults) -> list[Picture]:
    """Training and validation loss of every model over tokens, the phase change marked."""
    name, queries = "learning_curves", ("learning_curves", "phase_changes")
    curves = results.frame("learning_curves")
    validation, training = (curves[curves.split == split] for split in ("validation", "training"))
    if validation.empty:
        return [Picture(name, "No picture: validation losses are missing.", queries)]
    with_training = curves.model_id.nunique() <= MAX_TRAINING_CURVES
    (figure, axes), palette = panel(3.9), Palette.of(results)
    if with_training:
        _draw(axes, training, "tokens", "loss_nats", palette, linewidth=0.9, alpha=0.55, marker="")
    _draw(axes, validation, "tokens", "loss_nats", palette)
    axes.set_title(f"loss, nats per token ({'thin: training, dots: validation' if with_training else 'validation'})")
    change = strongest_change(results, "prefix_matching", "repeat_gain_nats")
    scale_by_tokens(axes, change)
    label_ends(axes, _ends(validation, "loss_nats"), palette)
    band = change.sentence if change else "No score rises enough to be called a phase change, so no band is drawn."
    final = _last(validation, "loss_nats")
    sentence = f"Final validation loss is {extremes(final, ' nats')}. {band}"
    lowest, trained = extreme(final), _last(training, "loss_nats")
    if with_training and lowest and lowest.label in trained:
        ends = list(trained[lowest.label].values())
        sentence += (
            f" Training loss of {lowest.label}, on the last batches logged, ends at {sum(ends) / len(ends):.2f} nats."
        )
    look = "The more text a model has read, the better it predicts what comes next: the lower its line."
    look += _about_lines(validation)
    return [Picture(name, sentence, queries, figure, look)]


def context_over_training(results: StudyResults) -> list[Picture]:
    """The gain from repeats and the best induction score of every model over tokens, phase changes marked."""
    name, queries = "context_over_training", ("context_over_training", "phase_changes")
    curves = results.frame("context_over_training")
    gains, scores = (curves.dropna(subset=column) for column in ("repeat_gain_nats", "best_induction_random_period"))
    if gains.empty:
        return [Picture(name, "No picture: repeat_gain is missing.", queries)]
    sentence = f"When training ends, repeat_gain is {extremes(_last(gains, 'repeat_gain_nats'), ' nats')}"
    figure, palette = Figure((WIDTH, 3.3)), Palette.of(results)
    left, *others = figure.subplots(1, 1 if scores.empty else 2, squeeze=False)[0]
    _draw(left, gains, "tokens", "repeat_gain_nats", palette)
    left.set_title("fall in loss on repeats (repeat_gain), nats")
    scale_by_tokens(left, strongest_change(results, "repeat_gain_nats"))
    label_ends(left, _ends(gains, "repeat_gain_nats"), palette)
    look = "Where a line leaps, that model begins to use what it read earlier in the same passage."
    for right in others:
        _draw(right, scores, "tokens", "best_induction_random_period", palette)
        right.set_ylim(bottom=0)
        right.set_title("best head's induction_random_period")
        scale_by_tokens(right, strongest_change(results, "prefix_matching"))
        label_ends(right, _ends(scores, "best_induction_random_period"), palette)
        final = _last(scores, "best_induction_random_period")
        sentence += f"; the best head's induction_random_period is {extremes(final)}"
        look = (
            "Left, how much better a model predicts random tokens when they come again; right, how well its best head "
            "finds them: where the right-hand line leaps, a head comes to do induction."
        )
    scores_of = zip((left, *others), ("repeat_gain", "prefix_matching"), strict=False)
    bands = [score for axes, score in scores_of if axes.patches]
    if bands:
        sentence += f". {'Bands mark phase changes' if len(bands) > 1 else 'The band marks the phase change'} of "
        sentence += " and, right, of ".join(bands)
    return [Picture(name, f"{sentence}.", queries, figure, look + _about_lines(gains))]


def loss_in_context(results: StudyResults) -> list[Picture]:
    """Loss by position in validation text, and by occurrence in repeated random tokens, after training."""
    name, queries = "loss_in_context", ("position_losses", "repeat_losses")
    positions, repeats = results.frame("position_losses"), results.frame("repeat_losses")
    if positions.empty or repeats.empty:
        return [Picture(name, "No picture: losses by position or by occurrence are missing.", queries)]
    figure, palette = Figure((WIDTH, 3.3)), Palette.of(results)
    left, right = figure.subplots(1, 2)
    _draw(left, positions, "place", "loss_nats", palette, marker="")
    _draw(right, repeats, "occurrence", "loss_nats", palette)
    left.set_title("validation loss, nats, by position")
    left.set_xlabel("position of the predicted token, from 1")
    left.set_xscale("log", base=2)
    left.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:g}"))
    left.xaxis.set_minor_locator(NullLocator())
    right.set_title("loss on repeated random tokens, nats")
    right.set_xlabel("occurrence of the predicted token")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    for vocabulary in repeats.vocabulary.dropna().unique():
        right.axhline(log(vocabulary), color=MUTED, linewidth=1, linestyle=DOTTED)
        right.text(right.get_xlim()[1], log(vocabulary), "guessing ", ha="right", va="bottom", color=MUTED, fontsize=9)
    label_ends(left, _ends(positions, "loss_nats"), palette)
    label_ends(right, _ends(repeats, "loss_nats"), palette)
    first_two = repeats[repeats.occurrence <= 2]
    sentence = (
        f"The fall in loss from the first position to where the line ends is {extremes(_fall(positions), ' nats')}; "
        f"that from a random token's first occurrence to its second is {extremes(_fall(first_two), ' nats')}. The "
        "dotted line is the loss of guessing among all tokens alike: above it, models are confidently wrong."
    )
    look = (
        "Left, all lines fall at first, where a token follows nothing but the start; those that go on falling are of "
        "models that predict better the more of a passage they have seen. Right, lines that fall are of models that "
        "predict better what has come before."
    )
    return [Picture(name, sentence, queries, figure, look + _about_lines(repeats))]


def _draw(axes: Axes, curves: DataFrame, x: str, y: str, palette: Palette, **style: Any) -> None:
    """A line for each model or, of a kind that has many, thin ones and their mean."""
    for label, of_label in curves.groupby("label"):
        line = palette.line(str(label)) | style
        are_many = _are_many(of_label)
        for _, curve in of_label.groupby("model_id"):
            axes.plot(curve[x], curve[y], **line | (_THIN if are_many else {}))
        if are_many:
            mean = of_label.groupby(x)[y].mean()
            axes.plot(mean.index, mean, **line)


def _are_many(of_label: DataFrame) -> bool:
    return int(of_label.model_id.nunique()) > MAX_LINES_OF_A_KIND


def _about_lines(curves: DataFrame) -> str:
    """What to say of lines, where some are means."""
    has_means = any(_are_many(of_label) for _, of_label in curves.groupby("label"))
    return " Thin lines are seeds, thick ones their means." if has_means else ""


def _ends(curves: DataFrame, column: str) -> dict[str, float]:
    """Where the lines of each label end, on average."""
    ends = curves.groupby(["label", "model_id"])[column].last().groupby("label").mean()
    return {str(label): float(end) for label, end in ends.items()}


def _last(curves: DataFrame, column: str) -> dict[str, ValueBySeed]:
    """A column's last value in each model, by label and seed."""
    return _by_seed(curves.groupby(["label", "seed"], dropna=False)[column].last())


def _fall(losses: DataFrame) -> dict[str, ValueBySeed]:
    """First minus last loss of each model, by label and seed."""
    of_models = losses.groupby(["label", "seed"], dropna=False).loss_nats
    return _by_seed(of_models.first() - of_models.last())


def _by_seed(values: Series) -> dict[str, ValueBySeed]:
    """ValueBySeed by label and seed, of which imported models have none."""
    return {str(label): of_label.droplevel("label").to_dict() for label, of_label in values.groupby("label")}
