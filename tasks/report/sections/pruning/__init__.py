"""How many heads are needed."""

ORDER = 90
