"""Who attends to what, in one passage and over the text."""

ORDER = 60
