"""Feed-forward layers without some of their neurons."""

ORDER = 120
