"""Every kind of model, with its size and its losses."""

ORDER = 30
