"""Which heads matter, by ablation and by the scores that predict it."""

ORDER = 80
