"""What changed between two runs of a study, or between two studies: metrics beyond their error bars, claims, text."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import hypot
from typing import Any, NamedTuple

from tasks.results.study_results import StudyResults


class Metric(NamedTuple):
    """A metric of one kind of model: mean over seeds, half the width of its 95 % interval, models."""

    label: str
    metric: str
    mean: float
    ci95: float | None
    n_models: int


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
        """What `vars` of a summary were before they went through JSON."""
        return cls(**{**stored, "metrics": [Metric(*row) for row in stored["metrics"]]})


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
        metrics=[Metric(**row) for row in results.rows("summary")],
        verdicts={row["claim_id"]: row["verdict"] for row in results.rows("verdicts")},
        text=sorted(row["text_sha256"] or "" for row in results.rows("corpora")),
        config=dict(_flat(json.loads(study["config"] or "{}"))),
        finished_at=study["finished_at"].isoformat(timespec="minutes") if study["finished_at"] else "",
    )


def changes(before: Summary, after: Summary) -> list[Change]:
    """Everything that differs: settings and text, claims, metrics."""
    return [*config_changes(before, after), *claim_changes(before, after), *metric_changes(before, after)]


def metric_changes(before: Summary, after: Summary) -> list[Change]:
    """Metrics of the same kind of model that moved beyond their error bars, or moved and have none."""
    known = {(m.label, m.metric): m for m in before.metrics}
    changes = []
    for new in after.metrics:
        old = known.get((new.label, new.metric))
        if old and new.mean != old.mean and not _within(old, new):
            bars = old.ci95 is not None and new.ci95 is not None
            note = "beyond the error bars" if bars else "one model: no error bar"
            note += "; speed depends on the machine" if new.metric == "tokens_per_second" else ""
            changes.append(Change(f"{new.metric} of {new.label}", _printed(old), _printed(new), note))
    return changes


def claim_changes(before: Summary, after: Summary) -> list[Change]:
    """Claims whose verdict changed."""
    return list(_different(before.verdicts, after.verdicts, "claim "))


def config_changes(before: Summary, after: Summary) -> list[Change]:
    """Settings that differ, and text that does."""
    changes = list(_different(before.config, after.config, ""))
    if before.text != after.text:
        changes.append(Change("text (sha256)", ", ".join(before.text), ", ".join(after.text), ""))
    return changes


def _within(old: Metric, new: Metric) -> bool:
    return old.ci95 is not None and new.ci95 is not None and abs(new.mean - old.mean) <= hypot(old.ci95, new.ci95)


def _printed(metric: Metric) -> str:
    return _number(metric.mean, 4) + (f" ± {_number(metric.ci95, 2)}" if metric.ci95 is not None else "")


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
