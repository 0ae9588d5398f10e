"""BOS, the token that opens every sequence of a model; some models were trained without one."""

NO_BOS = -1  # stands for BOS's id in models that were trained without; no token has it


def n_bos(bos: int) -> int:
    """Number of tokens that BOS takes at the start of a sequence: 1, or 0 for a model without."""
    return int(bos != NO_BOS)
