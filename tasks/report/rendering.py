"""A study's report, rendered from the warehouse, and its explorer, which shows its models, too."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tasks.report.answer import answer_lines, answered_by
from tasks.report.comparison import Summary, by_chance, changes, not_compared, summarise
from tasks.report.explorer.head_links import prose_with_head_links
from tasks.report.explorer.model_files import EXPLORER, ModelFiles
from tasks.report.page import write_page
from tasks.report.pictures import Pictures
from tasks.results.study_results import StudyResults, open_results

INCIDENTAL_FILES = ("report.md",)  # it says when the study ran, and for how long
SHARES = 2  # of the figures, each drawn by a process of its own
SHARE_OF_PARTS = 0.9  # of the time that a report takes, the rest being the page's

Part = Callable[..., Pictures]  # of StudyResults, a folder, and whom to tell of progress


def render_report(
    warehouse: Path,
    study: str,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
    previous: Mapping[str, Any] | None = None,
    models: Mapping[str, ModelFiles] = MappingProxyType({}),
    beside: Callable[..., Pictures] | None = None,
) -> dict[str, Any]:
    """Write `report.md`, `figures/`, `queries/` and `explorer.html` into the folder; equal results give equal bytes.

    `previous` is what the study's last run found, `models` where the weights are that the explorer takes in.
    `on_progress` hears the fraction done. Where there is `beside`, which does work in a process of its own, it makes
    the explorer and the figures at once. Returns facts: the lines of the answer, and what this run found.

    Raises:
        UserError: the study isn't in the warehouse.
    """
    with open_results(warehouse, study) as results:
        explorer = partial(write_models, models=dict(models))
        if beside:
            shares = [partial(draw_figures, first=first, every=SHARES) for first in range(SHARES)]
            make = partial(beside, warehouse=warehouse, study=study, folder=folder)
            pictures = _made_at_once([partial(make, make_part, part) for part in (explorer, *shares)], on_progress)
        else:
            pictures = explorer(results, folder) | draw_figures(results, folder)
        answer, now = answer_lines(results), summarise(results)
        before = Summary.from_json(previous) if previous else None
        since: dict[str, Any] = {}
        if before:
            left_out = not_compared(before, now, "the run before", "this one")
            since = {"changes": changes(before, now), "not_compared": left_out, "by_chance": by_chance(before, now)}
        model = answered_by(results)
        linked = [prose_with_head_links(line, model) for line in answer]
        write_page(results, pictures, folder, answer=linked, previous=before, **since)
    on_progress(1.0)
    return {"study": study, "answer": answer, "summary": vars(now)}


def _made_at_once(parts: Sequence[Callable[..., Pictures]], on_progress: Callable[[float], None]) -> Pictures:
    """The pictures of all parts of a report."""
    heard = [0.0] * len(parts)

    def hear(part: int, fraction: float) -> None:
        heard[part] = fraction
        on_progress(SHARE_OF_PARTS * sum(heard) / len(parts))

    with ThreadPoolExecutor(len(parts)) as threads:
        work = [threads.submit(make, on_progress=partial(hear, part)) for part, make in enumerate(parts)]
        return {name: pictures for part in work for name, pictures in part.result().items()}


def make_part(part: Part, warehouse: Path, study: str, folder: Path, on_progress: Callable[[float], None]) -> Pictures:
    """Make one part of a report in this process."""
    with open_results(warehouse, study) as results:
        return part(results, folder, on_progress)


# matplotlib and torch take seconds to import, and few processes need them.


def draw_figures(
    results: StudyResults, folder: Path, on_progress: Callable[[float], None] = lambda fraction: None, **which: int
) -> Pictures:
    """Draw the report's figures, or those of one share."""
    from tasks.report.drawing import draw

    return draw(results, folder, on_progress, **which)


def write_models(
    results: StudyResults,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
    *,
    models: Mapping[str, ModelFiles],
) -> Pictures:
    """Write the explorer, which has no pictures of the report's."""
    from tasks.report.explorer.explorer_contents import write_explorer

    write_explorer(results, models, folder / EXPLORER, answer_lines(results), on_progress=on_progress)
    return {}
