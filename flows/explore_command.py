"""The command `headstream explore`: writes a study's explorer, and opens it."""

import os
import sys
import webbrowser
from pathlib import Path

from headstream.tasks.steps.report_steps import explorer_again


def print_explorer(study: str, model: str | None, text: Path | None, show: bool) -> None:
    """Write the explorer of a study, print its path, and open it, at a model if one is named."""
    page = explorer_again(study, text)
    print(page)
    if show and _has_screen():
        webbrowser.open_new_tab(page.as_uri() + (f"#{model}/" if model else ""))


def _has_screen() -> bool:
    """True if there is a screen to open a page on: without one, a text browser would take over the terminal."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
