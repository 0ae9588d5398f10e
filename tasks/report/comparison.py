"""What changed between two runs of a study, or between two studies: metrics beyond chance, claims, text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from tasks.markdown import with_spread
from tasks.report.differences import Difference, difference
from tasks.results.study_results import StudyResults


class Metric(NamedTuple):
    """A metric of one kind of model, and its value for each seed."""

    label: str
    metric: str
    seeds: Sequence[int]
    values: Sequence[float]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    def minus(self, other: "Metric") -> Difference | None:
        """The difference of means and its interval, by the same seeds where both have them."""
        mine, others = (dict(zip(metric.seeds, metric.values, strict=True)) for metric in (self, other))
        return difference(mine, others)


@dataclass(frozen=True)
class Summary:
    """What a run found, as far as it is compared with others."""

    metrics: list[Metric]
    verdicts: dict[str, str]  # of claims by their id
    text: list[str]  # hashes of the corpora
    config: dict[str, Any]  # the study file's fields by their place, like `training.tokens`
    finished_at: str

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Summary":
        """What `vars` of a summary were before they went through JSON.

        Metrics in the form that an earlier release kept are left out.
        """
        rows = [row for row in stored["metrics"] if len(row) == len(Metric._fields)]
        return cls(**{**stored, "metrics": [Metric(*row) for row in rows]})


@dataclass(frozen=True)
class Change:
    """Something that differs."""

    what: str
    before: Any
    after: Any
    note: str


def summarise(results: StudyResults) -> Summary:
    """What a study in the warehouse found."""
    study = results.rows("study")[0]
    return Summary(
        metrics=[Metric(*row.values()) for row in results.rows("summary")],
        verdicts={row["claim_id"]: row["verdict"] for row in results.rows("verdicts")},
        text=sorted(row["text_sha256"] or "" for row in results.rows("corpora")),
        config=dict(_flat(json.loads(study["config"] or "{}"))),
        finished_at=study["finished_at"].isoformat(timespec="minutes") if study["finished_at"] else "",
    )


def changes(before: Summary, after: Summary) -> list[Change]:
    """Everything that differs: settings and text, claims, metrics."""
    return [*config_changes(before, after), *claim_changes(before, after), *metric_changes(before, after)]


def metric_changes(before: Summary, after: Summary) -> list[Change]:
    """Metrics of the same kind of model that differ: beyond a 95 % interval, or with too few seeds for one."""
    changes = []
    for old, new in _pairs(before, after):
        apart = new.minus(old)
        if new.mean != old.mean and not (apart and abs(apart.mean) <= apart.ci95):
            note = (
                f"by {_number(apart.mean, 3)} ± {_number(apart.ci95, 2)}" if apart else "under three seeds: no interval"
            )
            note += "; speed depends on the machine" if new.metric == "tokens_per_second" else ""
            changes.append(Change(f"{new.metric} of {new.label}", _printed(old), _printed(new), note))
    return changes


def by_chance(before: Summary, after: Summary) -> str:
    """How many metrics of equal models would differ beyond an interval; nothing if none has one."""
    n = sum(new.minus(old) is not None for old, new in _pairs(before, after))
    return f"Metrics with 95 % intervals: {n}; by chance alone, {n / 20:.1f} of them would differ." if n else ""


def claim_changes(before: Summary, after: Summary) -> list[Change]:
    """Claims whose verdict changed."""
    return list(_different(before.verdicts, after.verdicts, "claim "))


def config_changes(before: Summary, after: Summary) -> list[Change]:
    """Settings that differ, and text that does."""
    changes = list(_different(before.config, after.config, ""))
    if before.text != after.text:
        changes.append(Change("text (sha256)", ", ".join(before.text), ", ".join(after.text), ""))
    return changes


def _pairs(before: Summary, after: Summary) -> Iterator[tuple[Metric, Metric]]:
    """Each metric that both have of the same kind of model."""
    known = {(metric.label, metric.metric): metric for metric in before.metrics}
    for new in after.metrics:
        if old := known.get((new.label, new.metric)):
            yield old, new


def _printed(metric: Metric) -> str:
    return with_spread(metric.mean, None, metric.values, lambda value: _number(value, 4))


def _number(value: float, digits: int) -> str:
    """A number with so many significant digits, or all digits of its integer part."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def _different(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str) -> Iterator[Change]:
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield Change(f"{prefix}{name}", old, new, "")


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts by their place; the name and the question aren't settings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if place or key not in ("name", "question"):
                yield from _flat(inner, f"{place}.{key}" if place else key)
    else:
        yield place, value
