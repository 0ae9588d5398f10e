"""The figures of a study's report, drawn one at a time in Python."""

import base64
import html
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from headstream.arguments import text_of
from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import open_results
from headstream.tasks.study.mistakes import nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plot:
    """A figure of the report, which a notebook shows: `figure` is matplotlib's, `figures` are all, if it has several.

    Printed, it says what to see in it.

    >>> plot = results.plot("context_over_training")
    >>> plot.figure.savefig("context_over_training.pdf")
    """

    def __init__(self, name: str, pictures: list[Picture]) -> None:
        self.name, self.pictures = name, pictures

    @property
    def figures(self) -> "list[Figure]":
        """Matplotlib's figures, one for each picture.

        >>> results.plot("learning_curves").figures[0].axes
        """
        return [picture.figure for picture in self.pictures if picture.figure]

    @property
    def figure(self) -> "Figure":
        """Matplotlib's figure, the first of several.

        >>> results.plot("learning_curves").figure.set_size_inches(5, 3)
        """
        return self.figures[0]

    def __repr__(self) -> str:
        told = [" ".join(filter(None, [picture.look, picture.sentence])) for picture in self.pictures]
        return "\n".join([f"Figure {self.name} of the report", *dict.fromkeys(told)])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The figure as SVG for light and dark pages; several, each with what to see in it."""
        drawn = [_svg(figure) for figure in self.figures]
        if len(drawn) == 1:
            return {"image/svg+xml": drawn[0], "text/plain": repr(self)}
        parts = [
            f'<p><img src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"'
            f' alt="{html.escape(picture.name)}"><br>{html.escape(picture.sentence)}</p>'
            for svg, picture in zip(drawn, self.pictures, strict=True)
        ]
        return {"text/html": "".join(parts), "text/plain": repr(self)}


def figure_names() -> list[str]:
    """The names of all figures that reports have."""
    from headstream.tasks.report.sections import figures  # matplotlib takes a second to import

    return list(figures())


def drawn_figure(study: str, name: str) -> Plot:
    """A figure of a study's report.

    Raises:
        UserError: reports have no such figure, or this study has nothing for it to show.
    """
    from headstream.tasks.report.figures.style import house_style
    from headstream.tasks.report.sections import figures

    drawings = figures()
    if text_of(name, "a figure's name") not in drawings:
        hint = nearest(name, drawings).removesuffix(f" Known: {', '.join(drawings)}.")
        raise UserError(f"there is no figure {name!r}.{hint} There are {', '.join(drawings)}.")
    with open_results(places.warehouse_file(), study) as results, house_style():
        pictures = drawings[name](results)
    shown = [picture for picture in pictures if picture.figure]
    if not shown:
        why = " ".join(picture.sentence for picture in pictures) or "The study has nothing for it to show."
        raise UserError(f"{name} can't be drawn. {why}")
    return Plot(name, shown)


def _svg(figure: "Figure") -> str:
    from headstream.tasks.report.figures.style import house_style, save

    with TemporaryDirectory() as folder, house_style():
        save(figure, file := Path(folder) / "figure.svg")
        return file.read_text(encoding="utf-8")
