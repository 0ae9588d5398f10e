"""The phase change as figures mark it: a band over the tokens in which a score takes off."""

from dataclasses import dataclass

from matplotlib.axes import Axes

from tasks.markdown import short_count
from tasks.report.figures.style import MUTED
from tasks.results.study_results import StudyResults


@dataclass(frozen=True)
class PhaseChange:
    """The tokens between which a score of a model rises fastest."""

    label: str
    score: str
    start_tokens: float
    end_tokens: float

    @property
    def sentence(self) -> str:
        return (
            f"The band marks the phase change of {self.label}: its {self.score.removesuffix('_nats')} "
            f"takes off between {short_count(self.start_tokens)} and {short_count(self.end_tokens)} tokens."
        )


def strongest_change(results: StudyResults, *scores: str) -> PhaseChange | None:
    """The largest phase change in the first of these scores that has any."""
    changes = [row for row in results.rows("phase_changes") if row["window_end_tokens"] is not None]
    for score in scores:
        for row in changes:
            if row["score"] == score:
                return PhaseChange(row["model"], score, row["window_start_tokens"] or 0, row["window_end_tokens"])
    return None


def mark(axes: Axes, change: PhaseChange | None) -> None:
    """Draw a phase change as a vertical band behind the lines that are there already."""
    if change:
        left, right = axes.get_xlim()
        axes.axvspan(max(change.start_tokens, left), change.end_tokens, color=MUTED, alpha=0.15, linewidth=0)
        axes.set_xlim(left, right)
