"""Benchmarks: each prints ratios of two things measured in turns in one run, since machines are noisy."""
