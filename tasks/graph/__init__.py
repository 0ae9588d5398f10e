"""What a study consists of: the specs of its artifacts, the plan of a run, and how what is missing is made."""
