"""Circuits of behaviours compared: over training, over seeds, between prompt sets and over kinds of model."""

ORDER = 77
