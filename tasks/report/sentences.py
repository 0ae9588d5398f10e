"""Pieces of the sentences that a report is made of."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headstream.tasks.report.differences import ValueBySeed, extreme
from headstream.tasks.words.lists import listed
from headstream.tasks.words.markdown import short_count

if TYPE_CHECKING:
    from pandas import DataFrame


def extremes(groups: Mapping[str, ValueBySeed], unit: str = "") -> str:
    """Where a mean is highest and where lowest: `highest in 2L4H (1.50 nats) and lowest in 0L (0.00 nats)`.

    And which others can't be told from these; if they are most of all, only how high or low it is.
    """
    high, low = (extreme(groups, highest) for highest in (True, False))
    if not high or not low:
        return "missing"
    if f"{high.mean:z.2f}" == f"{low.mean:z.2f}":
        return f"{high.mean:z.2f}{unit} in {listed([label for label, values in groups.items() if values])}"
    if not high.is_tested:
        return f"highest in {high.told(unit)} and lowest in {low.told(unit)}{low.reservation}"
    ends = [
        f"{name} in {end.told(unit)}{end.reservation}" if end.says_something else f"{bound} {end.mean:z.2f}{unit}"
        for end, name, bound in ((high, "highest", "at most"), (low, "lowest", "at least"))
    ]
    return ", and ".join(ends)


def counted(n: int, what: str) -> str:
    """How many there are: `1 head`, `2 heads`."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def not_drawn(n: int, what: str, which: str) -> str:
    """What to say of things too many to draw: ` 2 heads with smaller effects are not drawn.`; nothing of none."""
    return f" {counted(n, what)} {which} {'is' if n == 1 else 'are'} not drawn." if n > 0 else ""


def models_left_out(n: int) -> str:
    """What to say of the kinds of model that a figure leaves out."""
    return f" {n} more {'kind of model is' if n == 1 else 'kinds of model are'} not shown: see the SQL." if n else ""


def risen(what: str, curve: "DataFrame", score: str, smallest: float, digits: int = 2) -> str:
    """How far and when a score rose: `it rises from 0.01 at 4.1 k tokens to 0.35, over halfway from 1.2 M on`."""
    known = curve.dropna(subset=[score])
    if known.empty:
        return f"{what} is missing"
    first, last = known[score].iloc[0], known[score].iloc[-1]
    if last - first < smallest:
        return f"{what} does not clearly rise ({first:z.{digits}f} to {last:z.{digits}f})"
    below = (known[score] < (first + last) / 2).to_numpy()
    half_way = known.tokens.iloc[below.nonzero()[0][-1] + 1]  # for good: a score may leap, fall, and rise once more
    start = f"{first:z.{digits}f} at {short_count(known.tokens.iloc[0])} tokens"
    return f"{what} rises from {start} to {last:z.{digits}f}, over halfway from {short_count(half_way)} on"
