"""What the study says of statements from the literature."""

ORDER = 20
