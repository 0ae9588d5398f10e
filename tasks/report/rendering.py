"""A study's report, rendered from the warehouse, and its explorer, which shows its models, too."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from headstream.tasks.errors import WorkError
from headstream.tasks.report.answer import answer_lines, answered_by
from headstream.tasks.report.comparison import Summary, by_chance, changes, not_compared, summarise
from headstream.tasks.report.explorer.head_links import prose_with_head_links
from headstream.tasks.report.explorer.model_files import EXPLORER, ModelFiles
from headstream.tasks.report.page import write_page
from headstream.tasks.report.pictures import Pictures
from headstream.tasks.results.study_results import open_results

DRAWERS = 2  # how many processes share the figures
FRACTION_OF_PARTS = 0.9  # of the time that a report takes, the rest being the page's

Parts = Sequence[partial[Pictures]]  # what `make_explorer` and `draw_figures` do
MakeParts = Callable[[Parts, Callable[[int, float], None]], Sequence[Pictures]]


def render_report(
    warehouse: Path,
    study: str,
    folder: Path,
    on_progress: Callable[[float], None],
    previous: Mapping[str, Any] | None,
    models: Mapping[str, ModelFiles],
    make_parts: MakeParts,
) -> dict[str, Any]:
    """Write `report.md`, `figures/`, `queries/` and `explorer.html` into the folder; equal results give equal bytes.

    `previous` is what the study's last run found, `models` where the weights are that the explorer takes in.
    `make_parts` makes the explorer and the figures, or has processes make them side by side. `on_progress` hears the
    fraction done. Returns facts: the lines of the answer, and what this run found.

    Raises:
        UserError: the study isn't in the warehouse.
        WorkError: the warehouse is damaged, or a part can't be made.
    """
    with _kept(warehouse, folder) as kept, open_results(kept, study) as results:
        draw = [partial(draw_figures, kept, study, folder, first, DRAWERS) for first in range(DRAWERS)]
        parts = [partial(make_explorer, kept, study, folder, dict(models)), *draw]
        done = [0.0] * len(parts)

        def hear(part: int, fraction: float) -> None:
            done[part] = fraction
            on_progress(FRACTION_OF_PARTS * sum(done) / len(parts))

        pictures = {name: shown for made in make_parts(parts, hear) for name, shown in made.items()}
        answer, now = answer_lines(results), summarise(results)
        before = Summary.from_json(previous) if previous else None
        since: dict[str, Any] = {}
        if before:
            apart = not_compared(before, now, "the run before", "this one")
            since = {"changes": changes(before, now), "not_compared": apart, "by_chance": by_chance(before, now)}
        model = answered_by(results)
        linked = [prose_with_head_links(line, model) for line in answer]
        write_page(results, pictures, folder, answer=linked, previous=before, **since)
    on_progress(1.0)
    return {"study": study, "answer": answer, "summary": vars(now)}


def draw_figures(
    warehouse: Path, study: str, folder: Path, first: int, every: int, on_progress: Callable[[float], None]
) -> Pictures:
    """Draw every so many-th figure, from the first on."""
    from headstream.tasks.report.drawing import draw  # matplotlib takes a second to import

    with open_results(warehouse, study) as results:
        return draw(results, folder, first, every, on_progress)


def make_explorer(
    warehouse: Path, study: str, folder: Path, models: Mapping[str, ModelFiles], on_progress: Callable[[float], None]
) -> Pictures:
    """Write the explorer, which adds no pictures to the page."""
    from headstream.tasks.report.explorer.explorer_contents import write_explorer

    with open_results(warehouse, study) as results:
        write_explorer(results, models, folder / EXPLORER, answer_lines(results), on_progress=on_progress)
    return {}


@contextmanager
def _kept(warehouse: Path, folder: Path) -> Iterator[Path]:
    """A name in the folder for the warehouse as it is now: another run may put a newer one in its place."""
    name = folder / ".warehouse.duckdb"
    try:
        os.link(warehouse, name)
    except OSError:  # there is none, or the disk knows no links
        yield warehouse
        return
    try:
        yield name
    except WorkError as error:
        raise type(error)(str(error).replace(str(name), str(warehouse))) from error
    finally:
        name.unlink()
