"""Seconds, FLOPs and bytes of a pass."""

ORDER = 130
