import csv
import io
import json
import math
import re

import duckdb
import pyarrow as pa
import pytest

from tasks.errors import UserError
from tasks.results.output_formats import SHOWN_CHARACTERS, SHOWN_ROWS, format_table


def select(query: str) -> pa.Table:
    return duckdb.sql(query).to_arrow_table()


ROWS = pa.table(
    {
        "name": ["a|b", None],
        "n": pa.array([12, None]),
        "score": [0.123456, math.nan],
        "yes": [True, None],
        "counts": [[4, 2], None],
    }
)


def test_csv_is_exact():
    found = select(
        """SELECT 'a,"b"' AS text, 0.1::DOUBLE + 0.2::DOUBLE AS x, true AS yes, NULL AS nothing, sum(3) AS total"""
    )
    assert format_table(found, "csv") == 'text,x,yes,nothing,total\n"a,""b""",0.30000000000000004,true,,3'


def test_csv_keeps_every_character():
    texts = ["line\nbreak", 'quote"', " space ", "\x1b[31m", "-"]
    read = csv.reader(io.StringIO(format_table(pa.table({"text": texts}), "csv")))
    assert [row[0] for row in read] == ["text", *texts]


def test_json_is_a_list_of_records():
    assert json.loads(format_table(ROWS, "json")) == [
        {"name": "a|b", "n": 12, "score": 0.123456, "yes": True, "counts": [4, 2]},
        {"name": None, "n": None, "score": None, "yes": None, "counts": None},
    ]
    query = "SELECT 1 AS a, 2 AS a, 1.5 AS half, 'inf'::DOUBLE AS inf, sum(3) AS total, DATE '2025-01-02' AS day"
    expected = {"a": 1, "a_1": 2, "half": 1.5, "inf": None, "total": 3, "day": "2025-01-02"}
    assert json.loads(format_table(select(query), "json")) == [expected]
    assert format_table(ROWS.slice(0, 0), "json") == "[]"


def test_markdown_is_escaped():
    text = "a|b\n<img> *x* `y` [z](u) __init__ model_id"
    found = format_table(pa.table({"model_id": [text], "n": [3.0]}), "markdown").splitlines()
    assert found[:2] == ["| model_id | n |", "| --- | ---: |"]
    assert found[2] == r"| a\|b\n&lt;img> \*x\* \`y\` \[z](u) \_\_init\_\_ model_id | 3.000 |"
    assert len(found) == 3


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.123456, "0.1235"),
        (12.3, "12.30"),
        (0.0, "0.000"),
        (-1.5e-7, "-1.500e-07"),
        (12345.678, "12346"),
        (1e300, "1.000e+300"),
    ],
)
def test_floats_have_four_significant_digits(number, text):
    assert format_table(pa.table({"x": [number]}), "table").split() == ["x", *["─" * len(text)], text]


def test_numbers_are_on_the_right_and_nothing_is_a_dash():
    lines = format_table(ROWS, "table").splitlines()
    assert lines[0] == "name    n    score   yes    counts"
    assert lines[2] == "a|b    12   0.1235   true   [4, 2]"
    assert lines[3] == "–       –      nan   –      –"


HOSTILE = "[bold]\x1b[31m\n\x07\x9b\u202e\x00"  # what colours, breaks, rings, moves, reorders


def test_control_characters_and_markup_are_shown_as_they_are():
    assert "[bold]\\x1b[31m\\n" in format_table(pa.table({"text": [HOSTILE]}), "table")


@pytest.mark.parametrize("output", ["table", "json", "markdown"])
@pytest.mark.parametrize("value", [HOSTILE, [HOSTILE], {HOSTILE: HOSTILE}, [{HOSTILE: [HOSTILE]}]])
def test_no_value_or_name_steers_a_terminal(value, output):
    for rows in (pa.table({HOSTILE: [value]}), pa.table({f"{HOSTILE}{i}": [value] * 2 for i in range(40)})):
        text = format_table(rows, output, 60)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
        if output == "json":
            assert next(iter(json.loads(text)[0].values())) == value
        else:
            assert "\u202e" not in text


def test_a_table_shows_its_first_rows_and_a_cell_its_first_characters():
    n = SHOWN_ROWS
    many = pa.table({"x": range(n + 2_000)})
    lines = format_table(many, "table").splitlines()
    assert [line.strip() for line in lines[n:]] == [
        "998",
        "999",
        "",
        "2,000 more rows are not shown: --format csv prints them all.",
    ]
    assert len(format_table(many.slice(0, n), "table").splitlines()) == n + 2
    assert len(format_table(many, "csv").splitlines()) == n + 2_001
    assert format_table(pa.table({"x": ["x" * 1_000_000]}), "table").endswith(f"\n{'x' * SHOWN_CHARACTERS}…")


@pytest.mark.parametrize("output", ["table", "csv", "json", "markdown"])
@pytest.mark.parametrize(
    "query", ["SELECT 'infinity'::DATE", "SELECT ['4000-01-01 (BC)'::DATE]", "FROM test_all_types()"]
)
def test_dates_that_python_lacks_are_refused(query, output):
    with pytest.raises(UserError, match="must lie in the years 1 to 9999"):
        format_table(select(query), output)


def test_long_text_is_cut_off_at_the_terminals_width():
    table = pa.table({"text": ["long words " * 30], "n": [123456]})
    lines = format_table(table, "table", width=40).splitlines()
    assert max(map(len, lines)) == 40
    assert lines[2].endswith("…   123456")
    assert "long words " * 29 in format_table(table, "table")


def test_a_table_of_too_many_columns_is_turned():
    wide = pa.table({f"column_{i}": [i, 10 + i] for i in range(9)})
    lines = format_table(wide, "table", width=40).splitlines()
    assert lines[0] == "column_0   0   10"
    assert len(lines) == 9


def test_a_table_of_too_many_columns_and_rows_is_printed_row_by_row():
    wide = pa.table({f"column_{i}": [f"{i}_{j}" for j in range(30)] for i in range(9)})
    lines = format_table(wide, "table", width=40).splitlines()
    assert lines[8:11] == ["column_8   8_0", "", "column_0   0_1"]
