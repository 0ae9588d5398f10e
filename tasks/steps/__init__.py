"""The steps of a study: Prefect tasks that make the artifacts which the store lacks.

What decides an artifact is in artifact_specs.py; what a stage computes, in its own module, which knows neither the
store nor Prefect.
"""
