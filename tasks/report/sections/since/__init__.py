"""What changed since the study last ran."""

ORDER = 10
