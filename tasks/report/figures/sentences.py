"""Pieces of the sentences under figures."""

from collections.abc import Mapping, Sequence

from pandas import DataFrame

from tasks.markdown import short_count


def extremes(values: Mapping[str, float], unit: str = "") -> str:
    """Where a value is highest and where lowest: `highest in 2L4H (1.50 nats), lowest in 0L (0.00 nats)`."""
    shown = {label: f"{label} ({value:.2f}{unit})" for label, value in values.items() if value == value}
    if not shown:
        return "missing"
    high, low = (pick(shown, key=values.__getitem__) for pick in (max, min))
    return f"in {shown[high]}" if high == low else f"highest in {shown[high]}, lowest in {shown[low]}"


def listed(items: Sequence[str]) -> str:
    """Items as prose lists them: `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def counted(n: int, what: str) -> str:
    """How many there are: `1 head`, `2 heads`."""
    return f"{n} {what}{'s' * (n != 1)}"


def models_left_out(n: int) -> str:
    """What to say of the kinds of model that a figure leaves out."""
    return f" {n} more kinds of model are not shown: see the SQL." if n else ""


def rise(what: str, curve: DataFrame, score: str, smallest: float, digits: int = 2) -> str:
    """When a score over tokens rose: `L1H2 is half-way from 0.01 to 0.35 at 1.2 M tokens`."""
    known = curve.dropna(subset=[score])
    if known.empty:
        return f"{what} is missing"
    first, last = known[score].iloc[0], known[score].iloc[-1]
    if last - first < smallest:
        return f"{what} hardly changes ({first:.{digits}f} to {last:.{digits}f})"
    half_way = known.tokens[known[score] >= (first + last) / 2].iloc[0]
    return f"{what} is half-way from {first:.{digits}f} to {last:.{digits}f} at {short_count(half_way)} tokens"
