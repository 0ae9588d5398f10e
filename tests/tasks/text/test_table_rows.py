import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstream.tasks.text import table_rows as module
from headstream.tasks.text.table_rows import fitting_delimiter, table_rows

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


def rows(content: str, *, quoted: bool = True, delimiter: str = ",") -> list[list[str] | int]:
    """The cells of each good row, and the number of the first line of each bad one."""
    lines = content.splitlines(keepends=True)
    return [row.line if row.mistake else row.cells for row in table_rows(lines, delimiter, quoted=quoted)]


@given(
    st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n"]),
)
def test_rows_are_what_was_written(written, delimiter, line_end):
    table = io.StringIO(newline="")
    csv.writer(table, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(written)
    lines = [f'"a"{delimiter}"b"\n', *table.getvalue().splitlines(keepends=True)]
    found, lines = fitting_delimiter(lines, ",;\t|", "b", quoted=True)
    assert found == delimiter
    assert [row.cells for row in table_rows(lines, delimiter, quoted=True)] == [["a", "b"], *written]


PLAIN = st.text('ab" ,', min_size=1).filter(str.strip)


@given(st.lists(st.tuples(PLAIN, PLAIN), min_size=1))
def test_without_quoting_rows_are_those_that_pandas_reads(written):
    content = "a\tb\n" + "".join(f"{one}\t{two}\n" for one, two in written)
    frame = pd.read_csv(io.StringIO(content), sep="\t", quoting=csv.QUOTE_NONE, dtype=str, keep_default_na=False)
    assert rows(content, quoted=False, delimiter="\t")[1:] == frame.to_numpy().tolist()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('a,b\n1,"x\n2,y\n3,z\n', [2, ["2", "y"], ["3", "z"]]),
        ('a,b\n1,x\n2,"y', [["1", "x"], 3]),  # the last row
        ('a,b\n1,"x\n2,"y\n3,z\n', [2, 3, ["3", "z"]]),  # two of them
        ('a,b\n1,"x\n2,"y\ny"\n3,z\n', [2, ["2", "y\ny"], ["3", "z"]]),  # before a cell of several lines
        ('a,b\n1,"x\n2,"y"\n\n3,"""z"""\n', [2, ["2", "y"], ["3", '"z"']]),
        ('a,b\r\n1,"x\r\n2,y\r\n', [2, ["2", "y"]]),
        ('a,b\r1,"x\r2,y\r', [2, ["2", "y"]]),
        ('\ufeff"a",b\n1,"x\n2,y\n', [2, ["2", "y"]]),
        ('a,b\n1,x,"c\n2,y\n3,z"\n4,w\n', [2, ["2", "y"], ["3", 'z"'], ["4", "w"]]),  # closed, with a cell too many
        ('a,b\n1,"x"x\n2,y\n', [2, ["2", "y"]]),
        ('a,b\n1,"""x\n2,y\n', [2, ["2", "y"]]),
        ('""\na,b\n1,x\n', [["1", "x"]]),  # a blank line first
    ],
)
def test_a_bad_row_swallows_no_others(content, expected):
    assert rows(content)[1:] == expected


@pytest.mark.parametrize(
    ("first", "column", "delimiter"),
    [
        ('text,"note; optional; free"\n', "text", ","),
        ("id,text,label (a;b;c;d)\n", "text", ","),
        ("id;text;a,b,c,d\n", "text", ";"),
        ("id;a,text,b;c;d;e\n", "text", ","),
        ("text\n", "text", ","),
        ("id|text\n", "text", "|"),
        ("text;id,text;a;b\n", "text", ";"),  # two would do: the one with more columns
        ("id;body;label\n", "text", ";"),  # none would: the one with most columns
        ('"a\n;b";text\n', "text", ";"),  # a line end in a name
        ('\n\n"text";id\n', "text", ";"),
        ('"text;id\n1;2\n', "text", ","),  # a first row that doesn't end
        ("", "text", ","),
    ],
)
def test_the_delimiter_is_the_one_that_names_the_column(first, column, delimiter):
    lines = [*first.splitlines(keepends=True), "1,2\n"]
    found, rest = fitting_delimiter(lines, ",;\t|", column, quoted=True)
    assert (found, [*rest]) == (delimiter, lines)


def test_a_quotation_mark_that_nothing_closes_does_not_fill_memory(monkeypatch):
    monkeypatch.setattr(module, "CELL_LENGTH", 1_000)
    _, bad, *others = table_rows(["text\n", '"one\n', *["two\n"] * 1_000], ",", quoted=True)
    assert "field larger than field limit (1000)" in bad.mistake.got
    assert [row.cells for row in others] == [["two"]] * 1_000
