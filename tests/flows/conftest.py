"""One Prefect server for all flow tests, and a home of its own for what they write."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"


RUNNING: list[ExitStack] = []  # what holds the server, if anything does


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items) -> None:
    """What needs Prefect's server, or a run of a study by the command line, is for `make test` alone."""
    for item in items:
        if {"prefect_server", "smoke"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker("process")


@pytest.fixture(scope="module")
def prefect_server(tmp_path_factory) -> None:
    from prefect_database import shared_folder
    from shared_server import held_server

    if not RUNNING:
        RUNNING.append(ExitStack())
        RUNNING[0].enter_context(held_server(shared_folder(tmp_path_factory.getbasetemp()) / "prefect"))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem) -> None:
    """Let go of the server before tests elsewhere: idle, it would take a part of a core from them."""
    if RUNNING and (nextitem is None or Path(__file__).parent not in nextitem.path.parents):
        RUNNING.pop().close()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSTREAM_HOME", str(folder))
        yield folder
