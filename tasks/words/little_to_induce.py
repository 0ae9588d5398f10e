"""The sentence on a text that gives induction heads little to do, which plans and reports say."""

LITTLE_TO_INDUCE = 0.1  # of next tokens, between what formed induction heads and what didn't: reports/README.md


def little_to_induce(share: float) -> str:
    """A sentence on a share below LITTLE_TO_INDUCE."""
    return (
        f"The text gives an induction head little to do: of its next tokens, {100 * share:.1f}\u00a0% followed the last"
        " earlier occurrence of the current two and aren't what bigrams predict."
    )
