"""Sizes of the blocks of queries that attention takes at a time, which decide how many scores it computes."""

MIN_BLOCK = 16  # queries in a block of a window: smaller matrix products cost as much
QUERY_BLOCKS, MIN_QUERY_BLOCK = 4, 32  # of full attention


def query_block(n: int) -> int:
    """Number of queries that full attention over n positions takes at a time, so that most future keys are skipped."""
    return max(MIN_QUERY_BLOCK, -(-n // QUERY_BLOCKS))


def window_block(n_seen: int, stride: int, n: int) -> int:
    """Number of queries of one remainder that `windowed_attention` takes at a time, if each of n sees n_seen keys."""
    return min(max(n_seen, MIN_BLOCK), -(-n // stride))
