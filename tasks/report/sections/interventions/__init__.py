"""What interventions in training changed, beside the same models without them."""

ORDER = 78
