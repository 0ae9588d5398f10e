"""How much text models are measured on where cost grows with text times heads, or other parts of a model."""

MIN_WINDOWS = 8  # whatever they cost: fewer tell next to nothing


def windows_within_budget(windows: int, max_reruns: int, n_parts: int) -> int:
    """How many of so many sequences are rerun for each head, or other part: in all no more than `max_reruns`, but 8.

    >>> [windows_within_budget(64, 1024, n_parts) for n_parts in (0, 16, 32, 1000)]
    [64, 64, 32, 8]
    """
    return min(windows, max(MIN_WINDOWS, max_reruns // max(1, n_parts)))
