"""README.md of this folder: the table of what was tried and what was measured."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from calibration.trials import BARS, Kind, Row

PAGE = Path(__file__).parent / "README.md"
OPENING = """# Calibration: how often intervals cover, and detectors are wrong

`make calibrate` wrote this on {date}: {n} trials, {tries:,} tries. Everything is simulated, with fixed seeds, so the
truth is known. Intervals must hold it; detectors must find what was planted, and nothing where there is nothing. Bars
were set before running.

A trial **holds** if what was measured is on the right side of its bar. It **fails** if the whole 95 % interval of what
was measured (exact, Clopper and Pearson's) is on the wrong side. In between it is *within chance*: so many tries can't
tell it from one that holds. Here {verdicts}.
"""
SECTIONS: dict[Kind, str] = {
    "coverage": "## Intervals\n\nHow often an interval that says 95 % holds the truth, at the sizes it is used at:"
    " {bar:g} or more.",
    "false positives": "## Where there is nothing\n\nHow often a detector finds something all the same, in a model or"
    " trajectory: {bar:g} at most, or the detector's own level.",
    "power": "## Where something was planted\n\nHow often a detector finds it, and names it right: {bar:g} or more.",
}
HEAD = "| what | tried on | tries | bar | measured | 95 % interval | |\n| --- | --- | ---: | ---: | ---: | ---: | --- |"
VERDICTS = {"holds": "hold", "within chance": "are within chance", "fails": "fail"}
SIGNS: dict[Kind, str] = {"coverage": "≥", "false positives": "≤", "power": "≥"}


def page(rows: Sequence[Row]) -> str:
    """The whole page."""
    counted = Counter(VERDICTS[row.verdict] for row in rows)
    verdicts = ", ".join(f"{n} {words}" for words, n in counted.most_common())
    opening = OPENING.format(date=date.today(), n=len(rows), tries=sum(row.n for row in rows), verdicts=verdicts)
    parts = [opening.rstrip()]
    for kind, title in SECTIONS.items():
        parts += ["", title.format(bar=BARS[kind]), "", HEAD, *(table_line(row) for row in rows if row.kind == kind)]
    return "\n".join([*parts, ""])


def table_line(row: Row) -> str:
    """A row of the table."""
    low, high = row.interval
    verdict = "**fails**" if row.verdict == "fails" else row.verdict
    cells = (row.what, row.tried_on, f"{row.n:,}", f"{SIGNS[row.kind]} {row.bar:g}", f"{row.share:.3f}")
    return f"| {' | '.join(cells)} | {low:.3f} to {high:.3f} | {verdict} |"
