"""The page that a report is: what its templates can ask for, and how they become markdown and queries."""

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from headstream.tasks.report import sections
from headstream.tasks.report.answer import FIGURES_OF_THE_ANSWER, N_FIGURES_OF_THE_ANSWER
from headstream.tasks.report.circuit_words import induction_paragraphs, skip_trigram_sentence
from headstream.tasks.report.differences import ONE_SEED
from headstream.tasks.report.explorer.head_links import prose_with_head_links, with_head_links
from headstream.tasks.report.glossary import with_glossary
from headstream.tasks.report.pictures import Picture, Pictures
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.storage.provenance import package_version
from headstream.tasks.words.markdown import (
    Markdown,
    as_markdown,
    code_block,
    escaped,
    heading,
    missing_columns,
    table_with_spreads,
)
from headstream.tasks.words.plain_text import terminal_safe

VERSIONS = ("headstream", "torch", "duckdb", "prefect", "matplotlib")  # that numbers and figures depend on
MAX_ROWS = 24  # of a table


def write_page(results: StudyResults, pictures: Pictures, folder: Path, **said: Any) -> None:
    """Write `report.md` and `queries/` into the folder; `pictures` has those of every figure.

    `said` is what templates can ask for by name, beside `page`.
    """
    environment = Environment(
        loader=FileSystemLoader(sections.__path__),
        finalize=as_markdown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    text = environment.get_template("report.md.jinja").render(
        page=_Page(results, pictures, folder),
        sections=sections.section_names(),
        induction_circuits=[prose_with_head_links(text, model) for model, text in induction_paragraphs(results)],
        skip_trigrams=skip_trigram_sentence(results),
        versions=", ".join(f"{package} {package_version(package)}" for package in VERSIONS),
        **said,
    )
    page = said_once(without_dead_links(with_glossary(text)), ONE_SEED)
    (folder / "report.md").write_text(page, encoding="utf-8")


def said_once(text: str, reservation: str) -> str:
    """A page that makes a reservation only where it first stands.

    >>> said_once("1, or so. 2, or so. 3.", ", or so")
    '1, or so. 2. 3.'
    """
    before, said, after = text.partition(reservation)
    return before + said + after.replace(reservation, "")


def without_dead_links(text: str) -> str:
    """A page whose links to headings that it doesn't have are plain text."""
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall("(?m)^#+ (.*)$", text)}
    return re.sub(r"\[([^][]*)\]\(#([^) ]*)[^)]*\)", lambda link: link[0] if link[2] in anchors else link[1], text)


class _Page:
    """What templates can ask for."""

    def __init__(self, results: StudyResults, pictures: Pictures, folder: Path) -> None:
        self.rows = results.rows  # of a SELECT
        self.left_out: list[str] = []  # why pictures are not there
        self._results, self._pictures, self._folder = results, pictures, folder
        self._n_shown = 0  # tables, pictures and paragraphs
        self._asked: set[str] = set()  # figures

    def part(self, heading: str, caller: Callable[[], str]) -> Markdown:
        """A heading and what stands below it; nothing if that shows no table, no picture and nothing else of the data.

        Templates call it around the text: `{% call page.part("## Probes") %}`.
        """
        before = self._n_shown
        body = re.sub(r"\n{3,}", "\n\n", caller()).strip()
        return Markdown(f"{heading}\n\n{body}\n\n" if self._n_shown > before else "")

    def shown(self, text: str) -> Markdown:
        """A sentence that says something of the data, so that its part has content."""
        self._n_shown += 1
        return as_markdown(text)

    def table(self, query: str, max_rows: int = MAX_ROWS) -> Markdown:
        """The rows of a SELECT as a table, how many are left out, and where the SELECT is; nothing if it has none."""
        rows = self.rows(query)
        if not rows:
            return Markdown("")
        self._n_shown += 1
        n_more = len(rows) - max_rows
        more = f"And {n_more:,} more: " if n_more > 0 else ""
        missing = missing_columns(rows)
        kept = [{name: value for name, value in row.items() if name not in missing} for row in rows[:max_rows]]
        linked = [with_head_links(row) for row in kept]
        absent = f"Missing in all rows: {', '.join(map(heading, missing))}. " if missing else ""
        return Markdown(f"{table_with_spreads(linked)}\n\n{absent}{more}{self.sql(query)}")

    def folded(self, summary: str, query: str, max_rows: int = MAX_ROWS) -> Markdown:
        """A table that few readers need, behind its summary."""
        table = self.table(query, max_rows)
        return _folded(summary, table) if table else table

    def figure(self, name: str) -> Markdown:
        """A figure's pictures, each with what to see in it, and where the SELECTs are that they are made of.

        All but the first are folded. Nothing if the figure was shown before, or has nothing to show: `left_out` says
        why.
        """
        if name in self._asked:
            return Markdown("")
        self._asked.add(name)
        blocks: list[Markdown] = []
        said: set[str] = set()
        for picture in self._pictures[name]:
            if picture.file:
                block = self._picture(picture, look="" if picture.look in said else picture.look)
                said.add(picture.look)
                blocks.append(_folded(picture.folded, block) if blocks and picture.folded else block)
            else:
                self.left_out.append(picture.sentence)
        self._n_shown += len(blocks)
        return Markdown("\n\n".join(blocks))

    def figures_of_the_answer(self) -> Markdown:
        """The figures that show what the answer says."""
        shown: list[str] = []
        for name in FIGURES_OF_THE_ANSWER:
            if len(shown) < N_FIGURES_OF_THE_ANSWER and (figure := self.figure(name)):
                shown.append(figure)
        return Markdown("\n\n".join(shown))

    def sql(self, *queries: str) -> Markdown:
        """Where SELECTs are, each in a file beside the report that can be pasted as it is."""
        folder = self._folder / "queries"
        folder.mkdir(exist_ok=True)
        for query in queries:
            (folder / f"{query}.sql").write_text(self._results.sql(query) + "\n", encoding="utf-8")
        names = [f"[{'SQL' if len(queries) == 1 else query}](queries/{query}.sql)" for query in queries]
        return Markdown(names[0] if len(queries) == 1 else f"SQL: {', '.join(names)}")

    def study_file(self) -> Markdown:
        """The study as it was written; all its fields where an earlier release kept no more than those."""
        study = self.rows("study")[0]
        text = study["written"] or study["config"] or "{}"
        return code_block(text, "json" if text.startswith("{") else "toml")

    def _picture(self, picture: Picture, look: str) -> Markdown:
        """The picture, what to see in it if that was not said yet, what it says in numbers, and its SELECTs."""
        image = f"![{picture.name.replace('_', ' ')}]({picture.file})"
        text = " ".join(escaped(sentence) for sentence in (look, picture.sentence) if sentence)
        return Markdown(f"{image}\n\n{text} {self.sql(*picture.queries)}")


def _folded(summary: str, content: str) -> Markdown:
    shown = html.escape(terminal_safe(summary), quote=False).replace("$", "&#36;")
    return Markdown(f"<details><summary>{shown}</summary>\n\n{content}\n\n</details>")
