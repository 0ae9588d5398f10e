"""Pieces of the sentences under figures."""

from collections.abc import Mapping, Sequence


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
