"""A study's report, rendered from the warehouse, and its explorer, which shows its models, too."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tasks.report.answer import answer_lines, answered_by
from tasks.report.comparison import Summary, by_chance, changes, not_compared, summarise
from tasks.report.explorer.head_links import prose_with_head_links
from tasks.report.explorer.model_files import EXPLORER, ModelFiles
from tasks.results.study_results import open_results

INCIDENTAL_FILES = ("report.md",)  # it says when the study ran, and for how long
SHARE_OF_PAGE = 0.8  # of the time that a report takes, the rest being the explorer's


def render_report(
    warehouse: Path,
    study: str,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
    previous: Mapping[str, Any] | None = None,
    models: Mapping[str, ModelFiles] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write `report.md`, `figures/`, `queries/` and `explorer.html` into the folder; equal results give equal bytes.

    `previous` is what the study's last run found, `models` where the weights are that the explorer takes in.
    `on_progress` hears the fraction done. Returns facts: the lines of the answer, and what this run found.

    Raises:
        UserError: the study isn't in the warehouse.
    """
    # matplotlib and torch take seconds to import, and few processes need them.
    from tasks.report.explorer.explorer_contents import write_explorer
    from tasks.report.page import write_page

    with open_results(warehouse, study) as results:
        answer, now = answer_lines(results), summarise(results)
        before = Summary.from_json(previous) if previous else None
        since: dict[str, Any] = {}
        if before:
            apart = not_compared(before, now, "the run before", "this one")
            since = {"changes": changes(before, now), "not_compared": apart, "by_chance": by_chance(before, now)}
        on_page, on_explorer = _in_parts(on_progress)
        model = answered_by(results)
        linked = [prose_with_head_links(line, model) for line in answer]
        write_page(results, folder, on_page, answer=linked, previous=before, **since)
        write_explorer(results, models, folder / EXPLORER, answer, on_progress=on_explorer)
    return {"study": study, "answer": answer, "summary": vars(now)}


def _in_parts(hear: Callable[[float], None]) -> tuple[Callable[[float], None], Callable[[float], None]]:
    """Who hears how far the page is, and the explorer after it."""
    return (lambda part: hear(SHARE_OF_PAGE * part)), (lambda part: hear(SHARE_OF_PAGE + (1 - SHARE_OF_PAGE) * part))
