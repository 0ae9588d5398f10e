"""How the FLOPs and seconds of a pass grow with the context and with the width."""

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from pandas import DataFrame

from headstream.tasks.report.figures.style import DOTTED, INDIGO, MUTED, OLIVE, WIDTH
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed
from headstream.tasks.words.markdown import short_count

_NAME, _QUERIES = "costs", ("costs", "cost_exponents")
_QUANTITIES: dict[str, tuple[str, Callable[[float], str]]] = {
    "flops": ("FLOPs", lambda flops: short_count(flops).replace(".0 ", " ")),
    "seconds": ("seconds", lambda seconds: f"{seconds:g}"),
}
_COLORS = {"full": INDIGO, "local": OLIVE}
DASHES: dict[str, Any] = {"forward": "solid", "forward_backward": (0, (4, 1.5))}
SLOPES = {"n_ctx": {"full": ("n²", 2), "local": ("n", 1)}, "d_model": {"full": ("d²", 2)}}  # name and power


def cost_curves(results: StudyResults) -> list[Picture]:
    """What a pass costs over n_ctx and over d_model, beside lines with the slopes that it should have."""
    rows = results.frame("costs")
    grow = [axis for axis in SLOPES if axis in set(rows.axis)]
    if not grow:
        return [Picture(_NAME, "No picture: no costs were measured as n_ctx or d_model grows.", _QUERIES)]
    figure = Figure((WIDTH, 0.4 + 2.8 * len(grow)))
    grid = figure.subplots(len(grow), len(_QUANTITIES), squeeze=False)
    for axis, panels in zip(grow, grid, strict=True):
        for axes, (quantity, (title, _)) in zip(panels, _QUANTITIES.items(), strict=True):
            _draw(axes, axis, rows[rows.axis == axis], quantity)
            axes.set_title(f"{title} over {axis}")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
    look = (
        "The steeper a line, the faster the cost of a pass grows with the length of the text or the width of the model."
    )
    return [Picture(_NAME, _sentence(results.frame("cost_exponents")), _QUERIES, figure, look)]


def _draw(axes: Axes, axis: str, rows: DataFrame, quantity: str) -> None:
    """A line for each pattern and pass, and a guide through the last point of each pattern's forward pass."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for (attention, name), line in rows.groupby(["attention", "pass"]):
        style = {"color": _COLORS[attention], "linestyle": DASHES[name]}
        axes.plot(line["size"], line[quantity], marker="o", label=f"{attention}, {name.replace('_', ' + ')}", **style)
    limits = axes.get_ylim()
    for attention, (name, power) in SLOPES[axis].items():
        forward = rows[(rows.attention == attention) & (rows["pass"] == "forward")]
        if not forward.empty:
            last = forward.iloc[-1]
            guide = last[quantity] * (forward["size"] / last["size"]) ** power
            axes.plot(forward["size"], guide, color=MUTED, linewidth=1.2, linestyle=DOTTED, zorder=1)
            at = (last["size"], last[quantity])
            axes.annotate(name, at, xytext=(5, -3), textcoords="offset points", color=MUTED, fontsize=9)
    axes.set_ylim(limits)
    sizes = sorted(set(rows["size"]))
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _QUANTITIES[quantity][1](value)))
    axes.minorticks_off()


def _sentence(exponents: DataFrame) -> str:
    """The exponents of the forward pass at the large end."""
    known = exponents[exponents["pass"] == "forward"].dropna(subset=["flops_exponent", "seconds_exponent"])
    powers = [
        f"{row.grows}^{row.flops_exponent:.2f} with {row.attention} attention ({row.grows}^{row.seconds_exponent:.2f})"
        for row in known.itertuples()
    ]
    if not powers:
        return "A single size gives no exponent."
    growth = f"At the large end, the FLOPs (seconds) of a forward pass grow as {listed(powers)}."
    return f"{growth} Dotted lines have the slopes that they are named after."
