"""How each behaviour and its circuit form: the difference between prompts, what the circuit makes of it, its edges."""

from typing import Any

from matplotlib.figure import Figure
from pandas import DataFrame, Series, isna

from headstream.tasks.report.figures.by_model import best_models
from headstream.tasks.report.figures.phase_changes import PhaseChange, scale_by_tokens, strongest_change
from headstream.tasks.report.figures.style import AMBER, BRICK, CYAN, DASHED, GREY, INDIGO, MUTED, OLIVE, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import counted
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed
from headstream.tasks.words.markdown import short_count

_QUERIES = ("behaviours_over_training", "behaviour_formation_times")
_LOOK = (
    "Where the lines of the model and of its circuit part by more than their bands, other edges still carry, or"
    " disturb, the behaviour. The model's line is over all pairs, its circuit's over the half that it is judged on."
)
_WHOLE, _CIRCUIT = "the model", "its circuit"
_EDGE_COLORS = (OLIVE, CYAN, AMBER, GREY)  # of the edges with the largest scores, which are drawn


def behaviour_formation(results: StudyResults) -> list[Picture]:
    """A panel for each prompt set, of the best kind of model that can do it and has several checkpoints."""
    lines, times = (results.frame(query) for query in _QUERIES)
    pictures = []
    for prompts, own in lines.groupby("prompts", sort=True):
        (label, *_), _ = best_models(results, own.label)
        drawn = own[(own.label == label) & (own.tokens > 0)]
        about = times[(times.prompts == prompts) & (times.model == label)]
        change = strongest_change(results, "prefix_matching")
        figure = _panel(f"{prompts}: {label}, nats", drawn, about, change)
        pictures.append(
            Picture(f"behaviour_formation_{prompts}", _sentence(str(prompts), label, about), _QUERIES, figure, _LOOK)
        )
    why = "No picture: no circuit was followed over several checkpoints."
    return pictures or [Picture("behaviour_formation", why, _QUERIES)]


def _sentence(prompts: str, label: str, about: DataFrame) -> str:
    """When model, circuit and edges pass half of their last values, and whether that is within the phase change."""
    by_name = about.set_index("followed")
    whole, circuit = by_name.loc[_WHOLE], by_name.loc[_CIRCUIT]
    return (
        f"On {prompts}, the difference of {label} passes half of its last value, {whole.last_nats:.2f} nats,"
        f" {_when(whole)}; what its last circuit makes, {circuit.last_nats:.2f} nats, {_when(circuit)}."
        f"{_beside_phase(circuit)}{_of_edges(about[~about.followed.isin((_WHOLE, _CIRCUIT))], _when(circuit))}"
    )


def _of_edges(edges: DataFrame, when: str) -> str:
    """Edges that pass half of their last scores when the circuit does, and the first of the others."""
    if edges.empty:
        return ""
    own = edges.apply(_when, axis=1)
    others = edges[own != when]
    if others.empty:
        which = f"Each of its {len(edges)} edges" if len(edges) > 1 else "Its edge"
        return f" {which} passes half of its last score then, too."
    told = [f"{name} {at}" for name, at in zip(others.followed, own[own != when], strict=True)][: len(_EDGE_COLORS)]
    return (
        f" Of its {counted(len(edges), 'edge')}, {len(edges) - len(others)} pass half of their last scores then;"
        f" {listed(told)}.{' Others are in the table below.' if len(others) > len(told) else ''}"
    )


def _when(row: Series) -> str:
    if isna(row.below_half_tokens):  # it never was below
        return f"by {short_count(row.half_tokens)} tokens"
    return f"between {short_count(row.below_half_tokens)} and {short_count(row.half_tokens)} tokens"


def _beside_phase(row: Series) -> str:
    """Where that is beside the model's phase change, as far as checkpoints tell."""
    if isna(row.phase_end_tokens):
        return ""
    start, end = row.phase_start_tokens, row.phase_end_tokens
    window = f"({short_count(start)} to {short_count(end)} tokens)"
    if row.half_tokens <= start:
        return f" That is before prefix matching rises {window}."
    if row.below_half_tokens >= end:
        return f" That is after prefix matching rises {window}."
    return f" That is while prefix matching rises {window}, as far as checkpoints can tell."


def _panel(title: str, lines: DataFrame, about: DataFrame, change: PhaseChange | None) -> Figure:
    figure, axes = panel(3.4)
    edges = [name for name in about.followed if name not in (_WHOLE, _CIRCUIT)]
    looks: dict[str, dict[str, Any]] = {
        _WHOLE: {"color": INDIGO, "linewidth": 2.2},
        _CIRCUIT: {"color": BRICK, "linewidth": 2.2},
    }
    looks |= {name: {"color": color, "linestyle": DASHED} for name, color in zip(edges, _EDGE_COLORS, strict=False)}
    for name, look in looks.items():
        own = lines[lines.followed == name].sort_values("tokens")
        axes.plot(own.tokens, own.nats, label=name, **look)
        if own.low_nats.notna().any():
            axes.fill_between(own.tokens, own.low_nats, own.high_nats, color=look["color"], alpha=0.2, linewidth=0)
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.set_title(title)
    scale_by_tokens(axes, change, lines.label.iloc[0])
    figure.legend(loc="outside upper left", ncols=3)
    return figure
