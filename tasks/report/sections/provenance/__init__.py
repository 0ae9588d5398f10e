"""Where everything comes from: code, text, trainings, imports, and the study as it was written."""

ORDER = 140
