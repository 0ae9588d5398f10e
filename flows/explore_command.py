"""The command `headstream explore`: writes a study's explorer, and opens it."""

from pathlib import Path

from headstream.tasks.machines.browser import open_in_browser
from headstream.tasks.steps.report_steps import explorer_again


def print_explorer(study: str, model: str | None, text: Path | None, show: bool) -> None:
    """Write the explorer of a study, print its path, and open it, at a model if one is named."""
    page = explorer_again(study, text)
    print(page)
    if show:
        open_in_browser(page.as_uri() + (f"#{model}/" if model else ""))
