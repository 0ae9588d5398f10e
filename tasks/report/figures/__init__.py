"""What the figures of all sections share: their look, a picture for each model, maps of scores, phase changes."""
