"""How many heads there are and how many of them matter, in words with numbers; error bars are over seeds."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.markdown import MISSING
from tasks.results.study_results import StudyResults

HOW = "by iterative pruning on ablation_mean"

Group = Mapping[str, Any]  # a row of reports/queries/heads_that_matter.sql or pruned_heads.sql


def pruning_line(results: StudyResults, label: str) -> str | None:
    """How many heads of a kind of model can be removed; None if it was not pruned."""
    groups = {group["label"]: group for group in results.rows("pruned_heads")}
    return _removable(groups[label]) if label in groups else None


def head_count_lines(results: StudyResults) -> list[str]:
    """What more heads gain and how many can be removed, if there are models that differ in their number alone."""
    rows = results.rows("heads_that_matter")
    groups = [row for row in rows if row["setting"] == rows[0]["setting"]]
    lines = [loss_line(groups)] if groups else []
    pruned = [group for group in groups if group["within_1_percent_mean"] is not None]
    if pruned:
        *fewer, most = pruned
        counts = [f"{mean_of(group, 'within_1_percent')} of {group['total_heads']}" for group in fewer]
        lines.append(
            _removable(most)
            + (f" With fewer heads, {', '.join(counts)} can be removed at under 1\u00a0%." * bool(fewer))
        )
    return lines


def loss_line(groups: Sequence[Group]) -> str:
    """The loss at each number of heads, fewest first, and whether gains shrink."""
    setting = f" ({groups[0]['setting']})" if groups[0]["setting"] else ""
    losses = [f"{mean_of(group, 'validation_loss_nats', 3)} ({group['total_heads']})" for group in groups]
    start = f"Validation loss by number of heads{setting}: {', '.join(losses)} nats per token"
    known = [group for group in groups if group["validation_loss_nats_mean"] is not None]
    if len(known) < 2:
        return f"{start}."
    best = min(known, key=lambda group: group["validation_loss_nats_mean"])["total_heads"]
    means = [group["validation_loss_nats_mean"] for group in known]
    first, last = means[0] - means[1], means[-2] - means[-1]
    if len(known) == 2:
        return f"{start}; the step gains {first:.3f} nats."
    trend = "shrink" if last < first else "don't shrink"
    return f"{start}, lowest with {best}; the first step gains {first:.3f} nats, the last {last:.3f}: gains {trend}."


def mean_of(group: Mapping[str, Any], name: str, digits: int = 1, unit: str = "") -> str:
    """A mean and its error bar, if there are several seeds: `3.3 ± 1.4`, or `3` where it is a whole number."""
    mean, error_bar = group[f"{name}_mean"], group[f"{name}_ci95"]
    if mean is None:
        return MISSING
    if error_bar is None:
        return f"{mean:.{digits}f}".removesuffix(".0") + unit
    return f"{mean:.{digits}f} ± {error_bar:.{digits}f}{unit}"


def _removable(group: Group) -> str:
    n, one, five = group["total_heads"], *(mean_of(group, f"within_{bar}_percent") for bar in (1, 5))
    chance = ""
    if group["random_within_1_percent_mean"] is not None:
        chance = f"; random orders allow {mean_of(group, 'random_within_1_percent')} at under 1\u00a0%"
    return (
        f"Of {n} head{'s' * (n != 1)} of {group['label']}, {one} can be removed at under 1\u00a0% more loss "
        f"and {five} at under 5\u00a0%, {HOW}{chance}."
    )
