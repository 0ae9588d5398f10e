"""The command `headstream explore`: a study's explorer, written and opened."""

import os
import sys
import webbrowser
from pathlib import Path

from headstream.tasks.steps.report_steps import explorer_again


def print_explorer(study: str, model: str | None, text: Path | None, show: bool) -> None:
    """Write the explorer of a study, print its path, and open it at a model if one is named."""
    page = explorer_again(study, text)
    print(page)
    if show and _has_screen():
        webbrowser.open_new_tab(page.as_uri() + (f"#{model}/" if model else ""))


def _has_screen() -> bool:
    """Without one, a browser of the terminal would take the page's place."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
