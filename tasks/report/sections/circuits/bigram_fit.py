"""How well the direct path predicts the bigrams of the training text: its logits over their log probabilities."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, Series

from headstream.tasks.report.figures.style import MUTED, WIDTH, Palette
from headstream.tasks.report.model_choice import best_label_of_each_depth
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import models_left_out
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed
from headstream.tasks.words.markdown import readable

_NAME, _QUERIES = "bigram_fit", ("bigram_samples", "bigram_fits")
MAX_DOT = 60  # square points


def bigram_fit(results: StudyResults) -> list[Picture]:
    """Logits of the direct path for frequent bigrams, the shallowest kind of model first."""
    samples, fits = results.frame("bigram_samples"), results.frame("bigram_fits").set_index("model")
    shown, n_more = best_label_of_each_depth(results, samples.label)
    if not shown:
        return [Picture(_NAME, "No picture: no model's direct path was compared with bigrams.", _QUERIES)]
    depths = samples.groupby("label").n_layers.first()
    shown.sort(key=depths.__getitem__)
    figure, palette = Figure((WIDTH, 3.4)), Palette.of(results)
    panels = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    for axes, label in zip(panels, shown, strict=True):
        _draw(axes, label, samples[samples.label == label], fits.loc[label], palette)
    figure.supxlabel("log probability in the training text minus its mean, nats", color=MUTED)
    figure.supylabel("logit of the direct path minus its mean", color=MUTED)
    with_heads = [label for label in shown if depths[label]]
    sentence = f"{_sentence(fits.loc[shown], fits.loc[with_heads])}{models_left_out(n_more)}"
    look = (
        "Each dot is a pair of neighbouring tokens: the nearer to the dashed line, the better the model knows how "
        "often they follow each other."
    )
    return [Picture(_NAME, sentence, _QUERIES, figure, look)]


def _sentence(fits: DataFrame, fits_with_heads: DataFrame) -> str:
    """How much of bigrams the direct path captures and, where there are heads, how it differs where they do."""
    shares = [f"{readable(share)} in {label}" for label, share in fits.explained_share.items()]
    gaps = [f"{value:.2f} in {label}" for label, value in fits_with_heads.gap_coefficient.dropna().items()]
    sentence = (
        f"Of what bigrams tell beyond token frequencies, the direct path alone captures this share: "
        f"{listed(shares)}. A perfect fit would lie on the dashed line."
    )
    if not gaps:
        return sentence
    return (
        f"{sentence} Among equally likely bigrams, where all else gives one logit more, the direct path's differs by"
        f" {listed(gaps)}; any two parts of logits that fit bigrams together make up for each other."
    )


def _draw(axes: Axes, label: str, samples: DataFrame, fit: Series, palette: Palette) -> None:
    """A dot for each bigram, as large as it is frequent."""
    sizes = MAX_DOT * samples.n_pairs / samples.n_pairs.max()
    color = palette.color(label)
    axes.axline((0, 0), slope=1, color=MUTED, linewidth=0.9, linestyle=(0, (5, 3)))
    dots: dict[str, Any] = {"color": color, "alpha": 0.55, "linewidth": 0}
    dots["rasterized"] = True  # as vectors they would be half a megabyte
    axes.scatter(samples.log_probability_nats, samples.direct_logit, s=sizes, **dots)
    axes.set_title(label)
    text = f"explained {readable(fit.explained_share)}\ncorrelation {readable(fit.correlation)}"
    axes.text(0.03, 0.97, text, transform=axes.transAxes, va="top", fontsize=9)
