"""Reads the rows of tables: cells between delimiters, which quotation marks may enclose."""

import csv
import io
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

CELL_LENGTH = 32 << 20  # characters: limits what an unclosed quotation mark can swallow


class Mistake(NamedTuple):
    """What a row must be, what it is, and what to do."""

    must: str
    got: str
    remedy: str = "Correct it"


class TableRow(NamedTuple):
    """A row that isn't blank: the number of its first line, and its cells or what is wrong with it."""

    line: int
    cells: list[str]
    mistake: Mistake | None


def table_rows(lines: Iterable[str], delimiter: str, *, quoted: bool) -> Iterator[TableRow]:
    """The rows of a table, each with as many cells as the first.

    A bad row is taken to end with its first line: what an unclosed quotation mark had swallowed is read again.
    """
    csv.field_size_limit(CELL_LENGTH)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    source = _Lines(lines)
    parsed = csv.reader(source, delimiter=delimiter, quoting=quoting, strict=True)
    width = 0
    while True:
        mistake = None
        try:
            cells = next(parsed)
        except StopIteration:
            return
        except csv.Error as error:
            cells, mistake = [], _without_an_end(error, quoted)
            parsed = csv.reader(source, delimiter=delimiter, quoting=quoting, strict=True)
        if mistake is None and cells not in ([], [""]):
            width = width or len(cells)
            if len(cells) != width:
                mistake = Mistake(f"a row must have {width} cells, like the first", str(len(cells)))
        if mistake or cells not in ([], [""]):
            yield TableRow(source.row_start, cells, mistake)
        source.end_row(at_first_line=mistake is not None)


def fitting_delimiter(lines: Iterable[str], delimiters: str, column: str, *, quoted: bool) -> tuple[str, Iterator[str]]:
    """The delimiter by which the first row of a table names a column, or else has the most cells; and all the lines."""
    *copies, rest = itertools.tee(lines, len(delimiters) + 1)
    named: dict[str, list[str]] = {}
    for delimiter, copy in zip(delimiters, copies, strict=True):
        first = next(table_rows(copy, delimiter, quoted=quoted), None)
        named[delimiter] = column_names(first) if first else []
    return max(delimiters, key=lambda delimiter: (column in named[delimiter], max(1, len(named[delimiter])))), rest


def column_names(first: TableRow) -> list[str]:
    """The names of a table's columns by its first row, without white space around them."""
    return [name.strip() for name in first.cells]


def _without_an_end(error: csv.Error, quoted: bool) -> Mistake:
    must = "a row must be cells between delimiters"
    if not quoted:
        return Mistake(must, str(error))
    got = f"a quotation mark that isn't closed, or isn't doubled within a cell ({error})"
    return Mistake(must, got, 'Correct it, or set quoting = "none" if quotation marks are part of the text')


class _Lines(Iterator[str]):
    """Lines without a BOM, cut where a carriage return alone ends one, and those that the current row has taken."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._source = _pieces(lines)
        self._returned: deque[str] = deque()
        self._taken: list[str] = []
        self.row_start = 1
        """The number of the first line of the current row."""

    def __next__(self) -> str:
        line = self._returned.popleft() if self._returned else next(self._source)
        self._taken.append(line)
        return line

    def end_row(self, *, at_first_line: bool) -> None:
        """End the current row with the last line taken, or with its first: the others are then read again."""
        n_lines = 1 if at_first_line else len(self._taken)
        self._returned.extendleft(reversed(self._taken[n_lines:]))
        self._taken.clear()
        self.row_start += n_lines


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        text = line if number else line.removeprefix("\ufeff")
        if "\r" in text[:-2]:
            yield from io.StringIO(text, newline="")
        else:
            yield text
