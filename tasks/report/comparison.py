"""What changed between two runs of a study, or between two studies: metrics beyond chance, claims, text."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from headstream.tasks.report.differences import Difference, difference
from headstream.tasks.report.sentences import counted
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.markdown import with_spread

MAX_LISTED_CHANGES = 8
_IN_NAMES = ("n_layers", "n_heads")


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
    kinds: dict[str, dict[str, Any]] = field(default_factory=dict)  # settings of each label's models; none once
    axes: list[str] = field(default_factory=list)  # settings that the grid varies, seeds apart
    prompts: dict[str, str] = field(default_factory=dict)  # hashes of the pairs of each prompt set

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
    study, kinds = results.rows("study")[0], results.rows("kinds")
    named = sorted({*kinds[0]["axes"]} & {*kinds[0]}) if kinds else []
    return Summary(
        metrics=[Metric(*row.values()) for row in results.rows("summary")],
        verdicts={row["claim_id"]: row["verdict"] for row in results.rows("verdicts")},
        text=sorted(row["text_sha256"] or "" for row in results.rows("corpora")),
        config=dict(_flat(json.loads(study["config"] or "{}"))),
        finished_at=study["finished_at"].isoformat(timespec="minutes") if study["finished_at"] else "",
        kinds={kind["label"]: {k: v for k, v in kind.items() if k not in ("label", "axes")} for kind in kinds},
        axes=[axis for axis in named if len({str(kind[axis]) for kind in kinds}) > 1],
        prompts={row["prompts"]: row["pairs_md5"] for row in results.rows("prompt_texts")},
    )


def changes(before: Summary, after: Summary) -> list[Change]:
    """Everything that differs: settings and text, claims, metrics."""
    return [*config_changes(before, after), *claim_changes(before, after), *metric_changes(before, after)]


def metric_changes(before: Summary, after: Summary) -> list[Change]:
    """Metrics of the same kind of model that differ: beyond a 95 % interval, or with too few seeds for one.

    What differs by less than is printed is the same.
    """
    changes = []
    for label, old, new in _pairs(before, after):
        apart = new.minus(old)
        if _printed(new) != _printed(old) and not (apart and abs(apart.mean) <= apart.ci95):
            note = (
                f"by {_number(apart.mean, 3)} ± {_number(apart.ci95, 2)}" if apart else "under three seeds: no interval"
            )
            note += "; speed depends on the machine" if new.metric == "tokens_per_second" else ""
            changes.append(Change(f"{new.metric} of {label}", _printed(old), _printed(new), note))
    return changes


def n_compared(before: Summary, after: Summary) -> int:
    """How many metrics of kinds of models both have."""
    return sum(1 for _ in _pairs(before, after))


def by_chance(before: Summary, after: Summary) -> str:
    """How many metrics of equal models would differ beyond an interval; nothing if none has one."""
    n = sum(new.minus(old) is not None for _, old, new in _pairs(before, after))
    if not n:
        return ""
    by_chance_alone = f"by chance alone, at most {n / 20:.1f} of them would differ on average"
    return f"With 95 % intervals in both: {counted(n, 'metric')}; {by_chance_alone}."


def claim_changes(before: Summary, after: Summary) -> list[Change]:
    """Claims whose verdict changed."""
    return list(_different(before.verdicts, after.verdicts, "claim "))


def config_changes(before: Summary, after: Summary) -> list[Change]:
    """Settings that differ, text that does, and prompt sets of one name whose pairs do."""
    changes = list(_different(before.config, after.config, ""))
    if before.text != after.text:
        changes.append(Change("text (sha256)", ", ".join(before.text), ", ".join(after.text), ""))
    both = sorted({*before.prompts} & {*after.prompts})
    changes += [
        Change(f"pairs of {name} (md5)", before.prompts[name], after.prompts[name], "")
        for name in both
        if before.prompts[name] != after.prompts[name]
    ]
    return changes


def not_compared(before: Summary, after: Summary, first: str, second: str) -> list[str]:
    """What has nothing to be compared with: kinds of models that only one has, and metrics of those that both have."""
    kinds, pairs = list(_kinds(before, after).values()), [pair[1:] for pair in _pairs(before, after)]
    lines = []
    for mine, (name, summary) in enumerate(((first, before), (second, after))):
        compared = {(pair[mine].label, pair[mine].metric) for pair in pairs}
        alone = [labels[mine] for labels in kinds if labels[mine] and not labels[1 - mine]]
        lacking = [m.metric for m in summary.metrics if m.label not in alone and (m.label, m.metric) not in compared]
        for what, names in (("these models", alone), ("these metrics of models that both have", lacking)):
            if names:
                lines.append(f"Only {name} has {what}: {_listed(list(dict.fromkeys(names)))}.")
    return lines


def _pairs(before: Summary, after: Summary) -> Iterator[tuple[str, Metric, Metric]]:
    """Each metric that both have of the same kind of model, and what that is called."""
    olds = {(metric.label, metric.metric): metric for metric in before.metrics}
    news = {(metric.label, metric.metric): metric for metric in after.metrics}
    names = dict.fromkeys(metric for _, metric in news)
    for kind, (old, new) in _kinds(before, after).items():
        for metric in names:
            if (old, metric) in olds and (new, metric) in news:
                yield new if old == new else kind, olds[old, metric], news[new, metric]


def _kinds(before: Summary, after: Summary) -> dict[str, tuple[str, str]]:
    """The kinds of models of either study by what tells them apart, and what each calls them; empty where one has none.

    Grids that vary different settings label the same models differently, so it is the settings that are compared: those
    that one of the two grids varies. What neither varies may differ, as when all models are trained for longer.
    """
    axes = list(dict.fromkeys([*before.axes, *after.axes]))
    found: dict[str, list[str]] = {}
    for place, summary in enumerate((before, after)):
        for label in dict.fromkeys(metric.label for metric in summary.metrics):
            settings = summary.kinds.get(label)
            is_known = settings and before.kinds and after.kinds  # an earlier release kept none
            found.setdefault(_kind(settings, axes) if settings and is_known else label, ["", ""])[place] = label
    return {kind: (old, new) for kind, (old, new) in found.items()}


def _kind(settings: Mapping[str, Any], axes: Iterable[str]) -> str:
    """A kind of model by its short name, and by its settings on all axes that this doesn't say."""
    return " ".join([str(settings["name"]), *(f"{axis}={settings[axis]}" for axis in axes if axis not in _IN_NAMES)])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_LISTED_CHANGES
    return ", ".join(names[:MAX_LISTED_CHANGES]) + (f" and {more} more" if more > 0 else "")


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
    if place == "until_decided.so_far":
        if looks := sorted({*value.values()}):  # none before the first look
            yield "seeds of each kind so far", " to ".join(str(n) for n in dict.fromkeys((looks[0], looks[-1])))
    elif isinstance(value, dict):
        for key, inner in value.items():
            if place or key not in ("name", "question"):
                yield from _flat(inner, f"{place}.{key}" if place else key)
    else:
        yield place, value
