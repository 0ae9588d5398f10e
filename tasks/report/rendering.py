"""A study's report: markdown and figures, rendered from the warehouse and nothing else."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tasks.report.answer import answer_lines
from tasks.report.comparison import Summary, by_chance, changes, not_compared, summarise
from tasks.results.study_results import open_results

INCIDENTAL_FILES = ("report.md",)  # it says when the study ran, and for how long


def render_report(
    warehouse: Path,
    study: str,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
    previous: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write `report.md` and `figures/` into the folder; the same warehouse gives the same bytes.

    `previous` is what the study's last run found. `on_progress` hears the fraction done after each figure. Returns
    facts: the lines of the answer, and what this run found.

    Raises:
        UserError: the study isn't in the warehouse.
    """
    from tasks.report.page import write_page  # matplotlib takes a second to import, and few processes need it

    with open_results(warehouse, study) as results:
        answer, now = answer_lines(results), summarise(results)
        before = Summary.from_json(previous) if previous else None
        since: dict[str, Any] = {}
        if before:
            apart = not_compared(before, now, "the run before", "this one")
            since = {"changes": changes(before, now), "not_compared": apart, "by_chance": by_chance(before, now)}
        write_page(results, folder, on_progress, answer=answer, previous=before, **since)
    return {"study": study, "answer": answer, "summary": vars(now)}
