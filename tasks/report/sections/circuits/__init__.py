"""The induction circuit, composition, copying, paths and skip-trigrams."""

ORDER = 70
