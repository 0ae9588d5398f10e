"""The page that a report is: what its templates can ask for, and how they become markdown and figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tasks.markdown import Markdown, as_markdown, code_block, escaped, table_with_spreads
from tasks.places import ROOT
from tasks.report.circuit_words import induction_paragraphs, skip_trigram_sentence
from tasks.report.figures import FIGURES
from tasks.report.figures.style import house_style, save
from tasks.results.study_results import StudyResults
from tasks.storage.provenance import package_version

TEMPLATES = ROOT / "reports" / "templates"
VERSIONS = ("headstream", "torch", "duckdb", "prefect", "matplotlib")  # that numbers and figures depend on
MAX_ROWS = 24  # of a table


def write_page(results: StudyResults, folder: Path, on_progress: Callable[[float], None], **said: Any) -> None:
    """Write `report.md` and `figures/` into the folder; `on_progress` hears the fraction done after each figure.

    `said` is what templates can ask for by name, beside `page`.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        finalize=as_markdown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    with house_style():
        page = _Page(results, folder, on_progress)
        text = environment.get_template("report.md.jinja").render(
            page=page,
            induction_circuits=induction_paragraphs(results),
            skip_trigrams=skip_trigram_sentence(results),
            versions=", ".join(f"{package} {package_version(package)}" for package in VERSIONS),
            **said,
        )
    (folder / "report.md").write_text(text, encoding="utf-8")


class _Page:
    """What templates can ask for."""

    def __init__(self, results: StudyResults, folder: Path, on_progress: Callable[[float], None]) -> None:
        self.rows = results.rows  # of a SELECT of reports/queries
        self._results, self._folder, self._on_progress = results, folder, on_progress
        self._n_drawn = 0

    def table(self, query: str, max_rows: int = MAX_ROWS) -> Markdown:
        """The rows of a SELECT as a table, and the SELECT; what is left out is counted."""
        rows = self.rows(query)
        if not rows:
            return Markdown(f"There are none.\n\n{self.sql(query)}")
        more = f"\n\n{len(rows) - max_rows} more rows are not shown: see the SQL." if len(rows) > max_rows else ""
        return Markdown(f"{table_with_spreads(rows[:max_rows])}{more}\n\n{self.sql(query)}")

    def figure(self, name: str) -> Markdown:
        """A figure's pictures, each with its sentence, and the SELECTs they are made of."""
        pictures = FIGURES[name](self._results)
        blocks = []
        for picture in pictures:
            if picture.figure:
                path = self._folder / "figures" / f"{picture.name}.svg"
                path.parent.mkdir(exist_ok=True)
                save(picture.figure, path)
                blocks.append(f"![{picture.name.replace('_', ' ')}](figures/{path.name})")
            blocks.append(escaped(picture.sentence))
        queries = dict.fromkeys(query for picture in pictures for query in picture.queries)
        self._n_drawn += 1
        self._on_progress(self._n_drawn / len(FIGURES))
        return Markdown("\n\n".join([*blocks, self.sql(*queries)]) if pictures else "")

    def sql(self, *queries: str) -> Markdown:
        """SELECTs of reports/queries, folded away, as they can be pasted into `headstream sql`."""
        blocks = [code_block(self._results.sql(query), "sql") for query in queries]
        return Markdown("\n\n".join(["<details><summary>SQL</summary>", *blocks, "</details>"]))

    def study_file(self) -> Markdown:
        """The study as it was written; all its fields where an earlier release kept no more than those."""
        study = self.rows("study")[0]
        text = study["written"] or study["config"] or "{}"
        return code_block(text, "json" if text.startswith("{") else "toml")
