"""The matrix of faults: each test is a row, with what goes wrong and what must hold regardless."""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from headstream.tasks.studies.housekeeping import describe_machine

OPENING = """# Faults, and what held

`make faults` wrote this on {date}, on {machine}: {n} rows,
{minutes:.0f} minutes in all; a row says what its last run saw. In each row something goes wrong while the real command
runs in real processes, on the study [study.toml](study.toml), and afterwards what must hold is compared with a run
that nothing disturbed: the same artifacts byte for byte, weights included (less what records the clock), as many rows
in every table, nothing half-written, and nothing that `headstream check` finds fault with.
"""
HEAD = "| fault | must hold | | seconds | seen |\n| --- | --- | --- | ---: | --- |"
OUTCOMES = {"passed": "holds", "failed": "**fails**", "skipped": "skipped"}


@dataclass(frozen=True)
class Row:
    """A test as a row of the matrix: its group and its cells."""

    group: str
    cells: tuple[str, ...]


ROWS = pytest.StashKey[list[Row]]()


def pytest_addoption(parser) -> None:
    parser.addoption("--matrix", type=Path, help="Write the matrix to this file, too.")


def pytest_configure(config) -> None:
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
    """The rows that earlier runs wrote."""
    rows, group = [], ""
    for line in file.read_text().splitlines() if file.exists() else []:
        if line.startswith("## "):
            group = line.removeprefix("## ")
        elif line.startswith("| ") and not HEAD.startswith(line) and not line.startswith("| ---"):
            rows.append(Row(group, tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])))
    return rows


def _merged(earlier: list[Row], rows: list[Row]) -> list[Row]:
    """The latest outcome of every row, group by group."""
    latest = {(row.group, *row.cells[:2]): row for row in (*earlier, *rows)}
    return sorted(latest.values(), key=lambda row: row.group)
