"""The command `headstream explore`: writes or serves a study's explorer, and opens it."""

from pathlib import Path
from threading import Event

from headstream.tasks.machines.browser import open_in_browser
from headstream.tasks.steps.report_steps import explorer_again, served_explorer


def print_explorer(study: str, model: str | None, text: Path | None, show: bool) -> None:
    """Write the explorer of a study, print its path, and open it, at a model if one is named."""
    page = explorer_again(study, text)
    print(page)
    if show:
        open_in_browser(page.as_uri() + (f"#{model}/" if model else ""))


def serve_explorer(study: str, model: str | None, text: Path | None, port: int, show: bool) -> None:
    """Serve the explorer of a study to browsers on this machine until Ctrl-C, and run its models for it.

    Raises:
        UserError: the study has not run, the text can't be read, or the port is taken.
    """
    from headstream.tasks.watching.page_server import running
    from headstream.tasks.watching.run_server import RunServer

    page, files = served_explorer(study, text)
    with running(lambda port: RunServer(port, page, files), port) as server:
        address = server.address + (f"#{model}/" if model else "")
        print(f"Explorer: {address} on this machine alone, until Ctrl-C", flush=True)
        if show:
            open_in_browser(address)
        Event().wait()
