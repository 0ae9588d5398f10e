"""Measuring trained models: one module a stage, and what stages share; also what passes cost."""
