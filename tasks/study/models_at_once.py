"""The number of models that are made at once."""

import os

from headstream.tasks.study.resources_config import ResourcesConfig


def models_at_once(resources: ResourcesConfig) -> int:
    """Number of models that threads make at once: what the study says, or one per core."""
    return resources.jobs or os.cpu_count() or 1
