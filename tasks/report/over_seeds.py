"""What the models of a group come to, in words: rows in which `x_values` are those of `seeds`."""

from collections.abc import Mapping
from typing import Any

from headstream.tasks.report.differences import ValueBySeed
from headstream.tasks.words.markdown import MISSING, with_spread

Group = Mapping[str, Any]  # models that differ only in their seed


def values_of(group: Group, name: str) -> ValueBySeed:
    """A quantity of each model that has it, by seed."""
    values = zip(group["seeds"], group[f"{name}_values"], strict=True)
    return {seed: value for seed, value in values if value is not None}


def mean_of(group: Group, name: str, digits: int = 2, unit: str = "") -> str:
    """A mean over seeds with its interval or range: `2.63 ± 0.04 nats`."""
    if group[f"{name}_mean"] is None:
        return MISSING
    spread = group.get(f"{name}_ci95"), group[f"{name}_values"]
    return with_spread(group[f"{name}_mean"], *spread, lambda value: f"{value:z.{digits}f}") + unit


def median_of(group: Group, name: str) -> str:
    """A count's median over seeds with its range: `3 (2 to 4)`; with a decimal where it is no whole number."""
    if group[f"{name}_median"] is None:
        return MISSING
    counts = group[f"{name}_values"]
    return with_spread(group[f"{name}_median"], None, counts, lambda count: f"{count:.1f}".removesuffix(".0"))
