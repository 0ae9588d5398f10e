"""Axes of tokens seen, and the phase change on them: a band where a score rises fastest."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from headstream.tasks.report.figures.style import MUTED
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.markdown import short_count


@dataclass(frozen=True)
class PhaseChange:
    """The tokens between which a score of a model rises fastest."""

    label: str
    score: str
    start_tokens: float
    end_tokens: float
    has_ended: bool

    @property
    def sentence(self) -> str:
        return (
            f"The band marks the phase change of {self.label}: its {self.score.removesuffix('_nats')} "
            f"rises fastest between {short_count(self.start_tokens)} and {short_count(self.end_tokens)} tokens"
            f"{'' if self.has_ended else ', and was still rising fast when training ended'}."
        )


def strongest_change(results: StudyResults, *scores: str) -> PhaseChange | None:
    """The largest phase change in the first of these scores that has any."""
    changes = [row for row in results.rows("phase_changes") if row["window_end_tokens"] is not None]
    for score in scores:
        for row in changes:
            if row["score"] == score:
                start, end, has_ended = (
                    row[name] for name in ("window_start_tokens", "window_end_tokens", "has_ended")
                )
                return PhaseChange(row["model"], score, start or 0, end, has_ended)
    return None


def scale_by_tokens(axes: Axes, change: PhaseChange | None, label: str | None = None) -> None:
    """Give drawn lines a logarithmic axis of tokens and, behind them, the phase change if it is that label's."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tokens, _: short_count(tokens).replace(".0 ", " ")))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("tokens seen")
    if change and label in (None, change.label):
        left, right = axes.get_xlim()
        start = max(change.start_tokens, left)
        axes.axvspan(start, change.end_tokens, color=MUTED, alpha=0.15, linewidth=0)
        axes.set_xlim(left, right)
        style: dict[str, Any] = {
            "ha": "right",
            "va": "top",
            "fontsize": 8,
            "color": MUTED,
            "transform": axes.get_xaxis_transform(),
        }
        axes.text(start, 0.99, "phase change ", **style)
