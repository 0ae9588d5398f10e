"""A progress bar in Prefect's pages for each model that trains."""

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import httpx
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.exceptions import PrefectException

log = logging.getLogger(__name__)


def shown_in_prefect(name: str, label: str) -> Callable[[float], None]:
    """A progress bar in Prefect's pages, moved at most every 5 seconds."""
    artifact: Any = None
    shown = -math.inf

    def show(fraction: float) -> None:
        nonlocal artifact, shown
        now = time.monotonic()
        if now - shown < 5 and fraction < 1:
            return
        shown = now
        percent = round(100 * fraction, 1)
        try:
            if artifact is None:
                key, description = f"training-{name.lower()}", f"Training {label}"
                artifact = create_progress_artifact(percent, key=key, description=description)
            else:
                update_progress_artifact(artifact, percent)
        except (httpx.HTTPError, PrefectException) as error:  # the training goes on without
            log.warning("the progress of %s can't be shown: %s", label, type(error).__name__)

    return show
