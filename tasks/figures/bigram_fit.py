"""The direct path against the bigrams of the training text."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, Series

from tasks.figures.labels import labels_with_rows
from tasks.figures.sentences import listed, models_left_out
from tasks.figures.style import MUTED, WIDTH, Palette, Picture
from tasks.markdown import readable
from tasks.study_results import StudyResults

NAME, QUERIES = "bigram_fit", ("bigram_samples", "bigram_fits")
MAX_COLUMNS = 3  # kinds of model
LARGEST_DOT = 60  # square points


def bigram_fit(results: StudyResults, palette: Palette) -> list[Picture]:
    """What the direct path says of frequent bigrams, in the best kind of model of the smallest depths."""
    samples, fits = (results.frame(query) for query in QUERIES)
    labels = labels_with_rows(results, samples)
    if not labels:
        return [Picture(NAME, "No picture: what the direct path says of bigrams is missing.", QUERIES)]
    depths = samples.groupby("label").n_layers.first()
    best_of_depths = {depths[label]: label for label in reversed(labels)}
    shown = [best_of_depths[depth] for depth in sorted(best_of_depths)][:MAX_COLUMNS]
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    fit_of = {label: fits[fits.model == label].iloc[0] for label in shown}
    for axes, label in zip(
        figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0], shown, strict=True
    ):
        _draw(axes, label, samples[samples.label == label], fit_of[label], palette)
    figure.supxlabel("log probability in the training text, nats, less its mean", fontsize=9.5, color=MUTED)
    figure.supylabel("logit of the direct path, less its mean", fontsize=9.5, color=MUTED)
    shares = [f"{readable(fit.explained_share)} in {label}" for label, fit in fit_of.items()]
    sentence = (
        "Of what bigrams tell beyond the frequencies of tokens, the direct path alone has this share: "
        f"{listed(shares)}. On the line, it would be the bigrams themselves."
    )
    return [Picture(NAME, f"{sentence}{models_left_out(len(labels) - len(shown))}", QUERIES, figure)]


def _draw(axes: Axes, label: str, samples: DataFrame, fit: Series, palette: Palette) -> None:
    """A dot for each bigram, as large as it is frequent."""
    sizes = LARGEST_DOT * samples.n_pairs / samples.n_pairs.max()
    color = palette.line(label)["color"]
    axes.axline((0, 0), slope=1, color=MUTED, linewidth=0.9, linestyle=(0, (5, 3)))
    axes.scatter(samples.log_probability_nats, samples.direct_logit, s=sizes, color=color, alpha=0.55, linewidth=0)
    axes.set_title(label)
    text = f"explained {readable(fit.explained_share)}\ncorrelation {readable(fit.correlation)}"
    axes.text(0.03, 0.97, text, transform=axes.transAxes, va="top", fontsize=9)
