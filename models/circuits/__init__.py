"""How heads do it: circuits and paths, from the weights and from one run."""
