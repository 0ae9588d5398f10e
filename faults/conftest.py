"""The matrix of faults: each test is a row, with what went wrong and what must hold all the same."""

import itertools
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import httpx
import pytest
from tiny import tiny_text

from faults.home import Home, environment_for
from tasks.device import describe_machine

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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
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
    """A copy of that home, to be spoilt."""
    return reference.copy(tmp_path / "home")


OPENING = """# Faults, and what held

`make faults` wrote this on {date}, on {machine}: {n} rows, {minutes:.0f} minutes in all; a row says what its last run
saw. In each row something goes wrong
while the real command runs in real processes, on the study [study.toml](study.toml), and afterwards what must hold is
compared with a run that nothing disturbed: the same artifacts byte for byte, weights included (less what records the
clock), as many rows in every table, nothing half-written, and nothing that `headstream check` finds fault with.
"""
HEAD = "| fault | must hold | | seconds | seen |\n| --- | --- | --- | ---: | --- |"
OUTCOMES = {"passed": "holds", "failed": "**fails**", "skipped": "skipped"}


@dataclass(frozen=True)
class Row:
    """One test: its group, the cells of its row, and whether it came out."""

    group: str
    cells: tuple[str, ...]


ROWS = pytest.StashKey[list[Row]]()


def pytest_addoption(parser) -> None:
    parser.addoption("--matrix", type=Path, help="Write the matrix to this file, too.")


def pytest_configure(config) -> None:
    config.addinivalue_line("markers", "fault(what, holds): a row of the matrix: the fault, and what must hold")
    config.stash[ROWS] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    mark = item.get_closest_marker("fault")
    if mark and (report.when == "call" or report.outcome != "passed"):
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        what, holds = (text.format(**parameters) for text in mark.args)
        seen = [str(value) for _, value in report.user_properties]
        if report.skipped:
            seen.append(report.longrepr[2].removeprefix("Skipped: "))
        cells = (what, holds, OUTCOMES[report.outcome], f"{report.duration:.0f}", ", ".join(seen).replace("|", "\\|"))
        item.config.stash[ROWS].append(Row(item.module.__doc__.splitlines()[0], cells))
    return report


def pytest_terminal_summary(terminalreporter, config) -> None:
    rows = config.stash[ROWS]
    terminalreporter.write_line("\n".join(_grouped(rows)))
    if file := config.getoption("--matrix"):
        rows = _merged(_written(file), rows)
        minutes = sum(float(row.cells[3]) for row in rows) / 60
        opening = OPENING.format(date=date.today(), machine=describe_machine(), n=len(rows), minutes=minutes)
        file.write_text("\n".join([opening.rstrip(), *_grouped(rows), ""]))


def _grouped(rows: Iterable[Row]) -> list[str]:
    lines: list[str] = []
    for group, found in itertools.groupby(rows, key=lambda row: row.group):
        lines += ["", f"## {group}", "", HEAD, *(f"| {' | '.join(row.cells)} |" for row in found)]
    return lines


def _written(file: Path) -> list[Row]:
    """The rows of earlier runs."""
    rows, group = [], ""
    for line in file.read_text().splitlines() if file.exists() else []:
        if line.startswith("## "):
            group = line.removeprefix("## ")
        elif line.startswith("| ") and not HEAD.startswith(line) and not line.startswith("| ---"):
            rows.append(Row(group, tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])))
    return rows


def _merged(earlier: list[Row], rows: list[Row]) -> list[Row]:
    """Every row as it came out last, group by group."""
    latest = {(row.group, *row.cells[:2]): row for row in (*earlier, *rows)}
    return sorted(latest.values(), key=lambda row: row.group)
