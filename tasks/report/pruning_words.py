"""How many heads there are and how many of them matter, in words with numbers."""

from collections.abc import Sequence

from headstream.tasks.report.differences import Difference, ValueBySeed, difference, extreme, mean_difference
from headstream.tasks.report.over_seeds import Group, mean_of, median_of, values_of
from headstream.tasks.report.sentences import counted
from headstream.tasks.results.study_results import StudyResults

HOW = "by iterative pruning on ablation_mean"


def pruning_line(results: StudyResults, label: str) -> str | None:
    """How many heads of a kind of model can be removed; None if it was not pruned."""
    pruned = [group for group in results.rows("heads_that_matter") if group["within_1_percent_median"] is not None]
    groups = {group["label"]: group for group in pruned}
    return _removable(groups[label]) if label in groups else None


def head_count_lines(results: StudyResults) -> list[str]:
    """What more heads gain and how many can be removed, if there are models that differ in their number alone."""
    rows = [row for row in results.rows("heads_that_matter") if row["n_head_counts"] > 1]
    groups = [row for row in rows if row["setting"] == rows[0]["setting"]]
    lines = [loss_line(groups)] if groups else []
    pruned = [group for group in groups if group["within_1_percent_median"] is not None]
    if pruned:
        *fewer, most = pruned
        counts = [f"{median_of(group, 'within_1_percent')} of {group['total_heads']}" for group in fewer]
        with_fewer = f" With fewer heads, {'; '.join(counts)} can be removed at under 1\u00a0%." * bool(fewer)
        lines.append(_removable(most) + with_fewer)
    return lines


def loss_line(groups: Sequence[Group]) -> str:
    """The loss at each number of heads, fewest first, which is lowest, and whether gains shrink."""
    setting = f" ({groups[0]['setting']})" if groups[0]["setting"] else ""
    losses = [f"{mean_of(group, 'validation_loss_nats')} with {group['total_heads']}" for group in groups]
    start = f"Validation loss by number of heads{setting}, nats per token: {'; '.join(losses)}."
    values = {counted(group["total_heads"], "head"): values_of(group, "validation_loss_nats") for group in groups}
    known = {n: of_seeds for n, of_seeds in values.items() if of_seeds}
    lowest = extreme(known, each=True)
    if not lowest or len(known) == 1:
        return start
    gains = f"; {_gains(list(known.values()))}" if lowest.is_tested else ""
    best = "With how many it is lowest can't be told"
    if lowest.says_something:
        best = f"It is lowest with {lowest.label}{lowest.reservation}"
    return f"{start} {best}{gains}."


def _gains(losses: Sequence[ValueBySeed]) -> str:
    """What the first and the last step gain, and whether the last gains less."""
    first, last = difference(losses[0], losses[1]), difference(losses[-2], losses[-1])
    if len(losses) == 2:
        return f"the step {_gain(first)}"
    a, b, c, d = losses[0], losses[1], losses[-2], losses[-1]
    seeds = a.keys() & b.keys() & c.keys() & d.keys()
    shrinking = mean_difference([(a[s] - b[s]) - (c[s] - d[s]) for s in seeds])
    trend = ": whether that is less can't be told"
    if shrinking and abs(shrinking.mean) > shrinking.ci95:
        trend = ", which is less" if shrinking.mean > 0 else ", which is more"
    if last and last.mean < 0:
        trend = ""
    return f"the first step {_gain(first)}, the last {_gain(last)}{trend}"


def _gain(gain: Difference | None) -> str:
    if gain is None:
        return "gains what can't be told"
    return f"{'loses' if gain.mean < 0 else 'gains'} {abs(gain.mean):.3f} ± {gain.ci95:.3f} nats"


def _removable(group: Group) -> str:
    n, one, five = group["total_heads"], *(median_of(group, f"within_{bar}_percent") for bar in (1, 5))
    over = " (median and range over seeds)" if len(group["within_1_percent_values"]) > 2 else ""
    chance = ""
    if group["random_within_1_percent_median"] is not None:
        chance = f"; random orders allow {median_of(group, 'random_within_1_percent')} at under 1\u00a0%"
    return (
        f"Of {n} head{'s' * (n != 1)} of {group['label']}, {one} can be removed at under 1\u00a0% more loss "
        f"and {five} at under 5\u00a0%, {HOW}{over}{chance}."
    )
