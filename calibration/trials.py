"""How a detector or an interval is tried: on what, how often, and by which bar, which is set before anything runs.

What is measured is a share of tries, with its own exact interval. A trial holds if the share is on the right side of
its bar, and fails if the whole interval is on the wrong one. Between the two, its tries can't tell the share from one
that holds: it is within chance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from scipy.stats import binomtest

Kind = Literal["coverage", "false positives", "power"]

BARS: dict[Kind, float] = {
    "coverage": 0.93,  # at least, of intervals that say 0.95
    "false positives": 0.05,  # at most
    "power": 0.9,  # at least
}


@dataclass(frozen=True)
class Row:
    """What a trial came to: in how many of its tries an interval covered, or a detector found something."""

    kind: Kind
    what: str
    tried_on: str
    bar: float
    n: int
    hits: int

    @property
    def share(self) -> float:
        return self.hits / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the share's 95 % interval. Source: Clopper & Pearson 1934."""
        found = binomtest(self.hits, self.n).proportion_ci(method="exact")
        return found.low, found.high

    @property
    def verdict(self) -> Literal["holds", "within chance", "fails"]:
        holding = [self._is_right(share) for share in (self.share, *self.interval)]
        return "holds" if holding[0] else "within chance" if any(holding) else "fails"

    def _is_right(self, share: float) -> bool:
        return share <= self.bar if self.kind == "false positives" else share >= self.bar


class Trial(NamedTuple):
    """Something to try `n` times; `few` times tell whether it runs and isn't far off."""

    kind: Kind
    what: str
    tried_on: str
    count: Callable[[int], int]  # hits among so many tries, the same ones whenever it is called
    n: int
    few: int
    level: float | None = None  # of a detector that promises less than the bar of its kind

    def run(self, n: int | None = None) -> Row:
        """Try it as often as it should be, or `n` times."""
        tries = n or self.n
        return Row(self.kind, self.what, self.tried_on, self.level or BARS[self.kind], tries, self.count(tries))
