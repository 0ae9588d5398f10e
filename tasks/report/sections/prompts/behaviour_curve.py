"""How much of a behaviour circuits of each size make, beside random circuits of the same sizes."""

from matplotlib.figure import Figure
from pandas import DataFrame

from headstream.tasks.report.figures.by_model import best_models
from headstream.tasks.report.figures.style import BRICK, GREY, INDIGO, MUTED, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults

_QUERIES = ("behaviour_curves",)
_LOOK = "The sooner a line reaches 1, the fewer edges do what the whole model does; above 1, they beat it."
_LINES = {"absolute": ("largest effects, either sign", INDIGO), "signed": ("largest helping effects", BRICK)}


def behaviour_curve(results: StudyResults) -> list[Picture]:
    """A panel for each prompt set, of the best kind of model that can do it."""
    curves = results.frame("behaviour_curves")
    pictures = []
    for prompts, own in curves.groupby("prompts", sort=True):
        (label, *_), _ = best_models(results, own.label)
        drawn = own[own.label == label]
        title = f"{prompts}: {label}, share of the difference between prompts"
        figure, sentence = _panel(title, drawn), _sentence(str(prompts), label, drawn)
        pictures.append(
            Picture(f"behaviour_curve_{prompts}", sentence, _QUERIES, figure, _LOOK, folded=f"{prompts}, by size")
        )
    return pictures or [Picture("behaviour_curve", "No picture: no circuit was looked for.", _QUERIES)]


def _sentence(prompts: str, label: str, curves: DataFrame) -> str:
    found = curves[curves.edges_by == "absolute"]
    small = found[found.fraction <= 0.1].iloc[-1]
    signed = curves[(curves.edges_by == "signed")].faithfulness.max()
    random = curves[(curves.edges_by == "random") & (curves.fraction == small.fraction)].faithfulness
    return (
        f"On {prompts}, {small.fraction * 100:.0f} % of the edges of {label} make {small.faithfulness:.2f} of the "
        f"difference; as many random ones {random.mean():z.2f}, and all others than these "
        f"{small.completeness:z.2f}. With helping edges alone it is at most {signed:.2f}."
    )


def _panel(title: str, curves: DataFrame) -> Figure:
    figure, axes = panel(3.4)
    random = curves[curves.edges_by == "random"].groupby("fraction").faithfulness.agg(["min", "max"])
    axes.fill_between(random.index, random["min"], random["max"], color=GREY, alpha=0.35, linewidth=0, label="random")
    for kind, (name, color) in _LINES.items():
        own = curves[curves.edges_by == kind]
        axes.plot(own.fraction, own.faithfulness, color=color, marker="o", label=name)
    without = curves[(curves.edges_by == "absolute") & curves.completeness.notna()]
    axes.plot(
        without.fraction, without.completeness, color=MUTED, linestyle=(0, (1.5, 1.5)), label="without the circuit"
    )
    axes.axhline(1, color=MUTED, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.001, 0.01, 0.1, 1], ["0.1 %", "1 %", "10 %", "all"])
    axes.set_xlabel("fraction of all edges")
    axes.set_title(title)
    figure.legend(loc="outside upper left", ncols=4)
    return figure
