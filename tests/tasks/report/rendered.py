"""Reports whose parts are made in the test's own process."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from headstream.tasks.report import rendering


def one_after_another(parts, on_progress):
    return [make(on_progress=partial(on_progress, place)) for place, make in enumerate(parts)]


def render_report(
    warehouse: Path,
    study: str,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
    previous: Mapping[str, Any] | None = None,
    make_parts: rendering.MakeParts = one_after_another,
) -> dict[str, Any]:
    return rendering.render_report(warehouse, study, folder, on_progress, previous, {}, make_parts)
