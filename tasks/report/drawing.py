"""The figures of a report as files, drawn before its page is written."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headstream.tasks.report.figures.style import house_style, save
from headstream.tasks.report.pictures import Picture, Pictures
from headstream.tasks.report.sections import figures
from headstream.tasks.results.study_results import StudyResults


def draw(results: StudyResults, folder: Path, first: int, every: int, on_progress: Callable[[float], None]) -> Pictures:
    """Draw every `every`-th figure, from the `first` on, into `figures/` in the folder; returns what the page says.

    `on_progress` hears the fraction done.
    """
    drawings = figures()
    names = list(drawings)[first::every]
    pictures: Pictures = {}
    with house_style():
        for name in names:
            pictures[name] = [_drawn(picture, folder) for picture in drawings[name](results)]
            on_progress(len(pictures) / len(names))
    return pictures


def _drawn(picture: Picture, folder: Path) -> Picture:
    if picture.figure is None:
        return picture
    file = f"figures/{picture.name}.svg"
    (folder / file).parent.mkdir(exist_ok=True)
    save(picture.figure, folder / file)
    return replace(picture, figure=None, file=file)
