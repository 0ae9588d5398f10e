"""How much text models are measured on where cost grows with text times heads."""

LEAST_WINDOWS = 8  # whatever they cost: fewer tell next to nothing


def affordable(windows: int, max_reruns: int, n_heads: int) -> int:
    """How many of so many sequences are rerun for each head: no more than `max_reruns` in all, but 8 at least.

    >>> [affordable(64, 1024, n_heads) for n_heads in (0, 16, 32, 1000)]
    [64, 64, 32, 8]
    """
    return min(windows, max(LEAST_WINDOWS, max_reruns // max(1, n_heads)))
