"""Limits on the text that models are measured on where cost grows with text times heads, or other parts of a model."""

MIN_WINDOWS = 8  # whatever they cost: fewer tell next to nothing


def windows_within_budget(windows: int, max_reruns: int, n_parts: int) -> int:
    """The number of sequences to rerun for each head, or other part: `max_reruns` in all, but at least 8 each.

    >>> [windows_within_budget(64, 1024, n_parts) for n_parts in (0, 16, 32, 1000)]
    [64, 64, 32, 8]
    """
    return min(windows, max(MIN_WINDOWS, max_reruns // max(1, n_parts)))
