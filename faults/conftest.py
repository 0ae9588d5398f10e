"""Homes for faults to strike, and one that nothing disturbed."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tiny import tiny_text

from faults.home import Home, environment_for
from headstream.tasks.machines.services import free_port

ROOT = Path(__file__).parents[1]
PREFECT = str(Path(sys.executable).parent / "prefect")


@pytest.fixture(scope="session")
def study(tmp_path_factory) -> Path:
    """The file of a small study with every stage: two models, a few seconds of training each."""
    file = tmp_path_factory.mktemp("study") / "faulty.toml"
    file.write_text((ROOT / "faults" / "study.toml").read_text().replace("TEXT", str(tiny_text())))
    return file


@pytest.fixture(scope="session")
def api(tmp_path_factory) -> Iterator[str]:
    """The address of a Prefect server."""
    folder = tmp_path_factory.mktemp("prefect")
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [PREFECT, "server", "start", "--port", str(port)],
            env=environment_for(folder, url),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        for _ in range(600):
            try:
                if httpx.get(f"{url}/health", timeout=5).is_success:
                    break
            except httpx.HTTPError:
                time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def home(tmp_path, api) -> Home:
    """A home in which nothing has run."""
    return Home(tmp_path / "home", environment_for(tmp_path, api))


@pytest.fixture(scope="session")
def reference(tmp_path_factory, api, study) -> Home:
    """A home in which the study ran undisturbed."""
    folder = tmp_path_factory.mktemp("reference")
    home = Home(folder / "home", environment_for(folder, api))
    home.run_well("run", str(study))
    return home


@pytest.fixture
def finished(tmp_path, reference) -> Home:
    """A copy of the undisturbed home, which a test may damage."""
    return reference.copy(tmp_path / "home")
