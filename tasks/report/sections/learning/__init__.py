"""Losses over training, what context is worth, and phase changes."""

ORDER = 40
