"""The one page by which Prefect shows a run: what the study found, two figures, claims that changed, or what failed."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headstream.tasks.report.answer import FIGURES_OF_THE_ANSWER, N_FIGURES_OF_THE_ANSWER, answer_lines
from headstream.tasks.report.comparison import Summary, changes, claim_changes, summarise
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.markdown import Markdown, as_markdown, escaped, markdown_table


def page_of_results(
    results: StudyResults, report: Path, link: str, previous: Mapping[str, Any] | None, failure: str = ""
) -> Markdown:
    """The page of a study with results; `previous` is what its run before found, `failure` why the last one failed."""
    study, now = results.rows("study")[0], summarise(results)
    what = f"What follows is of the run that ended at {now.finished_at} UTC."
    parts = [
        *_opening(study["study"], failure, what),
        *([f"> {escaped(study['question'])}"] if study["question"] else []),
        "\n".join(f"- {escaped(line)}" for line in answer_lines(results)),
        *_failed_models(results),
        *_figures(report.parent / "figures"),
        _since(previous, now),
        f"[The whole report]({link})",
    ]
    return Markdown("\n\n".join(parts))


def page_of_failure(study: str, failure: str) -> Markdown:
    """The page of a study whose run failed before any had results."""
    return Markdown("\n\n".join(_opening(study, failure, "No run of this study has results yet.")))


def _opening(study: str, failure: str, what: str) -> list[str]:
    heading = f"# {escaped(study)}"
    return [heading, f"**The last run failed:** {escaped(failure)}", what] if failure else [heading]


def _failed_models(results: StudyResults) -> list[str]:
    rows = [(row["cell"], row["failure"]) for row in results.rows("failures")]
    return [f"Models that failed:\n\n{_table(('model', 'why'), rows)}"] if rows else []


def _figures(folder: Path) -> list[str]:
    """The figures of the answer, each in the text itself, since Prefect's pages reach no file."""
    found = [path for name in FIGURES_OF_THE_ANSWER if (path := folder / f"{name}.svg").exists()]
    return [
        f"![{path.stem.replace('_', ' ')}](data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()})"
        for path in found[:N_FIGURES_OF_THE_ANSWER]
    ]


def _since(previous: Mapping[str, Any] | None, now: Summary) -> str:
    if not previous:
        return "No earlier run had other results."
    before = Summary.from_json(previous)
    changed = claim_changes(before, now)
    others = len(changes(before, now)) - len(changed)
    more = f" {others} settings or metrics differ, too: see the report." if others else ""
    when = f"since the run of {escaped(before.finished_at)} UTC"
    if not changed:
        return f"No verdict on a claim has changed {when}.{more}"
    rows = [(change.what.removeprefix("claim "), change.before, change.after) for change in changed]
    return f"Verdicts that changed {when}:{more}\n\n{_table(('claim', 'then', 'now'), rows)}"


def _table(headings: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Markdown:
    return markdown_table(headings, [False] * len(headings), [[as_markdown(cell) for cell in row] for row in rows])
