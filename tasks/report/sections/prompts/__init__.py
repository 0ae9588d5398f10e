"""Circuits of behaviours, found on pairs of prompts."""

ORDER = 75
