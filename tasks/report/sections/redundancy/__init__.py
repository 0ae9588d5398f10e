"""Heads that do the same."""

ORDER = 100
