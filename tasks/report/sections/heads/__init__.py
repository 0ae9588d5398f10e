"""Scores of all heads, the roles that they have, and how these form."""

ORDER = 50
