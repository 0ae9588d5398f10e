"""Measures of what heads do, and of how much they matter."""
