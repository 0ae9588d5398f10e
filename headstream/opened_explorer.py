"""A study's explorer, opened from Python."""

import html
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from headstream.commands import run_command
from headstream.tasks import places
from headstream.tasks.machines.browser import open_in_browser
from headstream.tasks.report.explorer.model_files import EXPLORER


@dataclass(frozen=True)
class ExplorerPage:
    """An explorer at one model: the page, and its address in a browser.

    >>> model.explore(show=False).address
    """

    path: Path
    model_id: str

    @property
    def address(self) -> str:
        """The page's address, at the model.

        >>> model.explore(show=False).address
        """
        return f"{self.path.as_uri()}#{quote(self.model_id, safe='')}/"

    def __repr__(self) -> str:
        return self.address

    def _repr_html_(self) -> str:
        """A link, and the path: browsers may refuse to follow links from a notebook to a file."""
        return f'<a href="{html.escape(self.address)}">{html.escape(str(self.path))}</a>'


def opened_page(study: str, model_id: str, show: bool) -> ExplorerPage:
    """Open a study's explorer at a model; where it is missing, it is written first, as `headstream explore` does.

    Raises:
        WorkError: it can't be written.
    """
    page = ExplorerPage(places.report_folder(study) / EXPLORER, model_id)
    if not page.path.is_file():
        run_command(["explore", study, "--no-open"])
    if show:
        open_in_browser(page.address)
    return page
