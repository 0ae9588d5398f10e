"""The graph of a study: the specs of its artifacts, the plan of a run, and the making of what is missing."""
