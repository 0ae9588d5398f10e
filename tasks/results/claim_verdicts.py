"""From the values that seeds have to a verdict: for each configuration, and over all of them.

The unit is the seed. A configuration (models that differ in their seed alone) is decided from its seeds, never together
with others; configurations that agree decide the claim, those that don't make it depend on what they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, log
from statistics import mean, median
from typing import Any

import numpy as np

from headstream.tasks.results.claim_files import Claim, Rule
from headstream.tasks.results.claim_values import Value, nothing_in
from headstream.tasks.results.configurations import depends_on
from headstream.tasks.results.intervals import (
    OF_COUNTED,
    TAIL,
    Interval,
    Range,
    SeedValues,
    difference_of_shares,
    mean_interval,
    paired_difference_of_shares,
    share_interval,
)
from headstream.tasks.study.until_decided import LOOKS

AS_RANDOM = "holds, as for random weights"
BEYOND_SEEDS = "the error over the text, which all seeds share, is by itself enough for the interval to hold the bar"
MIN_CHANCE = 1e-9  # below which a p-value isn't told
MAX_SEEDS = 100  # that agreeing models are asked for, before a plan gives up

Row = dict[str, Any]


def of_the_worst(claim: Claim, rule: Rule, values: Sequence[Value]) -> Row:
    """The row of a claim about every model, or the like: the largest value decides, the whole of its interval."""
    if not values:
        return {"verdict": "not tested", "reason": claim.empty or nothing_in(claim)}
    worst = max(value.value for value in values)
    lowest = max(value.value if value.low is None else value.low for value in values)
    highest = max(value.value if value.high is None else value.high for value in values)
    verdict = rule.verdict(lowest, highest)
    if claim.kind == "self-check":
        verdict = verdict.replace("holds", "passes")
    found = {"verdict": verdict, "estimate": worst, "n": len(values), "over": f"{rule.every}s"}
    if lowest == highest:
        return found
    reason = "the interval holds the bar" if verdict == "undecided" else None
    return found | {"ci_low": lowest, "ci_high": highest, "reason": reason}


def of_configuration(
    claim: Claim, place: str, learned: Iterable[Value], every: Iterable[Value], at_most: int | None = None
) -> Row:
    """A configuration's row, with its place for its name.

    Where seeds are added until it is decided, `at_most` so many, claims are looked at whenever there are as many seeds
    as LOOKS says, each time with a part of the error; the first look that decides counts.
    """
    row: Row = {}
    for look in [None] if at_most is None or claim.rule is None else [n for n in LOOKS if n <= at_most]:
        if look is not None and row and max(value.seed for value in every if value.place == place) < look - 1:
            break
        row = _at_look(claim, place, learned, every, look)
        if row["verdict"] not in ("undecided", "not tested"):
            break
    return row


def _at_look(claim: Claim, place: str, learned: Iterable[Value], every: Iterable[Value], look: int | None) -> Row:
    """The row of a configuration of so many seeds; without a look, of all."""
    if look is not None:
        learned, every = ([value for value in values if value.seed < look] for values in (learned, every))
    own = [value for value in learned if value.place == place]
    n, n_undertrained = len(own), sum(value.place == place for value in every) - len(own)
    row: Row = {"place": place, "n": n, "n_undertrained": n_undertrained, "points": [value.value for value in own]}
    row |= {"look": look} if look else {}
    if not own:
        return row | {"verdict": "not tested", "reason": "undertrained"}
    values = np.array([value.value for value in own], float)
    counted = np.array([value.counted for value in own], float)
    controls = np.array([value.control for value in own], float) if claim.control else None
    more = values if controls is None or claim.rule is None else values - controls
    row["estimate"] = float(more.mean())
    row["control"] = None if controls is None else float(controls.mean())
    if claim.rule is None:
        return row | {"verdict": "described"}
    if n < claim.seeds:
        return row | {"verdict": "undecided", "reason": _seeds_needed(claim, claim.rule, counted)}
    measured = _Measured(claim, claim.rule, own, values, controls, counted)
    tail = LOOKS[look] / 2 if look else TAIL
    found, verdict = measured.interval(tail), measured.verdict(tail)
    reason = None
    if verdict == "undecided":
        beyond = measured.without_scatter(tail) == "undecided"
        reason = BEYOND_SEEDS if beyond else _why_undecided(claim, claim.rule, n, counted)
    ends = {"estimate": found.estimate, "ci_low": found.low, "ci_high": found.high}
    # Of an error that only a look's part may be spent of, a p-value is as much larger.
    chance = None if verdict == "undecided" else min(1.0, measured.chance(tail) * TAIL / tail)
    return row | ends | {"verdict": verdict, "reason": reason, "chance": chance}


@dataclass(frozen=True)
class _Measured:
    """What the seeds of a configuration give, and what comes of it with intervals as wide as asked for."""

    claim: Claim
    rule: Rule
    own: Sequence[Value]
    values: SeedValues
    controls: SeedValues | None
    counted: SeedValues

    def interval(self, tail: float = TAIL) -> Interval:
        """The interval that decides: of the values or, with a control, of how much they exceed it."""
        return with_error_over_text(self._over_seeds(tail), self.own, self.claim.within, tail)

    def verdict(self, tail: float = TAIL) -> str:
        """The verdict of intervals with this tail on each side."""
        found = self.interval(tail)
        verdict = self.rule.verdict(found.low, found.high)
        if verdict != "holds" and self.controls is not None:
            each = (self._of(measured, tail) for measured in (self.values, self.controls))
            if all(self.rule.verdict(own.low, own.high) == "holds" for own in each):
                return AS_RANDOM
        return verdict

    def without_scatter(self, tail: float = TAIL) -> str:
        """The verdict if any number of seeds came to the same: that of the error over text alone."""
        estimate = self._over_seeds(tail).estimate
        found = with_error_over_text(Interval(estimate, estimate, estimate), self.own, self.claim.within, tail)
        return self.rule.verdict(found.low, found.high)

    def chance(self, tail: float = TAIL) -> float:
        """Of how many intervals that miss the truth the widest still gives this verdict: its p-value, two-sided."""
        verdict, least, enough = self.verdict(tail), log(MIN_CHANCE / 2), log(tail)
        while enough - least > 0.01:
            middle = (least + enough) / 2
            least, enough = (least, middle) if self.verdict(exp(middle)) == verdict else (middle, enough)
        return 2 * exp(enough)

    def _over_seeds(self, tail: float) -> Interval:
        if self.controls is None:
            return self._of(self.values, tail)
        if self.claim.quantity == "share":
            return paired_difference_of_shares(self.values, self.controls, self.counted, tail)
        return mean_interval(self.values - self.controls, tail=tail)

    def _of(self, values: SeedValues, tail: float) -> Interval:
        if self.claim.quantity == "mean":
            return mean_interval(values, self.claim.within, tail)
        return OF_COUNTED[self.claim.quantity](values, self.counted, tail)


def over_configurations(claim: Claim, parts: Sequence[Row], names: Mapping[str, str]) -> Row:
    """The claim's own row: what its configurations agree on, or what they depend on."""
    looked_at = [part for part in parts if part["n"]]
    undertrained = [_left_out(part, names[part["place"]]) for part in parts if part["n_undertrained"]]
    named_so = f"undertrained: {', '.join(undertrained)}" if undertrained else None
    if not looked_at:
        return {"verdict": "not tested", "reason": named_so or claim.empty or nothing_in(claim)}
    estimates = [part["estimate"] for part in looked_at]
    controls = [part["control"] for part in looked_at if part["control"] is not None]
    row = {
        "n": min(part["n"] for part in looked_at),
        "over": "seeds",
        "n_configurations": len(looked_at),
        "estimate_low": min(estimates),
        "estimate_high": max(estimates),
        "control": median(controls) if controls else None,
    }
    if claim.rule is None:
        row["estimate"] = median(estimates)
    elif len(looked_at) == 1:
        row |= {name: looked_at[0].get(name) for name in ("estimate", "ci_low", "ci_high")}
    verdict, reason = _agreement(looked_at)
    row["look"] = max((part["look"] for part in looked_at if part.get("look")), default=None)
    row["chance"] = agreement_chance(looked_at, verdict)
    return row | {"verdict": verdict, "reason": "; ".join(filter(None, [reason, named_so])) or None}


def _left_out(part: Row, name: str) -> str:
    """The undertrained models of a configuration: all of them, or some seeds."""
    n = part["n_undertrained"]
    return f"{n} of {n + part['n']} seeds of {name}" if part["n"] else name


def models_to_hold(rule: Rule, claim: Claim) -> int:
    """The fewest models with which a share of models holds, if all of them agree."""
    for n in range(claim.seeds, MAX_SEEDS):
        all_do, none_does = (share_interval(np.full(n, share), np.ones(n)) for share in (1.0, 0.0))
        found = difference_of_shares(all_do, none_does) if claim.control else all_do
        if rule.verdict(found.low, found.high) == "holds":
            return n
    return MAX_SEEDS


def _seeds_needed(claim: Claim, rule: Rule, counted: SeedValues) -> str:
    needed = f"needs {claim.seeds} seeds"
    return f"{needed}, and {models_to_hold(rule, claim)} to hold" if _is_of_models(claim, counted) else needed


def _why_undecided(claim: Claim, rule: Rule, n: int, counted: SeedValues) -> str:
    if _is_of_models(claim, counted):
        to_hold = models_to_hold(rule, claim)
        if n < to_hold:
            return f"{n} seeds can't show it of a share of models, even if all agree; {to_hold} could"
    return "the interval holds the bar"


def _is_of_models(claim: Claim, counted: SeedValues) -> bool:
    return claim.quantity == "share" and bool((counted == 1).all())


def with_error_over_text(found: Interval, own: Sequence[Value], within: Range, tail: float = TAIL) -> Interval:
    """An interval over seeds, as wide as it is if the text that they share might have been another one.

    Other seeds don't make up for it: the two errors are independent, and add as squares.
    """
    from scipy.special import ndtri

    width = float(ndtri(tail) / ndtri(TAIL))  # of an interval with this tail, over one of 95 %
    below = [value.value - value.low for value in own if value.low is not None]
    above = [value.high - value.value for value in own if value.high is not None]
    if not below or not above:
        return found
    low = found.estimate - hypot(found.estimate - found.low, width * mean(below))
    high = found.estimate + hypot(found.high - found.estimate, width * mean(above))
    return Interval(found.estimate, max(low, within[0]), min(high, within[1]))


def agreement_chance(parts: Sequence[Row], verdict: str) -> float | None:
    """The p-value of a verdict over configurations; None of what isn't decided.

    That more than half of them agree is told from the p-value of the last that it takes (Benjamini and Heller 2008,
    partial conjunction). That some hold and some fail is as certain as the less certain of the two.
    """
    of_verdict: dict[str, list[float]] = {}
    for part in parts:
        if part.get("chance") is not None:
            of_verdict.setdefault(part["verdict"], []).append(part["chance"])
    n, needed = len(parts), len(parts) // 2 + 1
    if verdict == "depends":
        return min(1.0, n * max(min(chances) for chances in of_verdict.values()))
    chances = sorted(of_verdict.get(verdict, []))
    return min(1.0, (n - needed + 1) * chances[needed - 1]) if len(chances) >= needed else None


def _agreement(parts: Sequence[Row]) -> tuple[str, str | None]:
    """The verdict that configurations come to, and why."""
    decided = [part for part in parts if part["verdict"] != "undecided"]
    verdicts = {part["verdict"] for part in decided}
    where = depends_on({part["place"]: part["verdict"] for part in parts}) if decided else None
    if len(verdicts) > 1:
        return "depends", where
    if verdicts and 2 * len(decided) > len(parts):
        return verdicts.pop(), None if len(decided) == len(parts) else where
    reasons = sorted({part["reason"] for part in parts if part["reason"]})
    if where:
        reasons.append(where)
    return "undecided", "; ".join(reasons)
