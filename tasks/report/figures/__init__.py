"""What the figures of all sections share."""
