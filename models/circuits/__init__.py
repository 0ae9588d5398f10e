"""The mechanisms of heads: circuits and paths, from the weights and from one run."""
