import csv
import io
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstream.tasks.results.output_formats import SHOWN_CHARACTERS, SHOWN_ROWS, format_table
from headstream.tasks.results.sql import run_sql
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage.store import Store


@pytest.fixture(scope="module")
def select(tmp_path_factory) -> Callable[[str], pa.Table]:
    """What a query of a user gives."""
    folder = tmp_path_factory.mktemp("warehouse")
    build_warehouse(Store(folder / "store"), folder / "warehouse.duckdb")
    return partial(run_sql, folder / "warehouse.duckdb", lossless=True)


A_UUID = "550e8400-e29b-41d4-a716-446655440000"
ROWS = pa.table(
    {
        "name": ["a|b", None],
        "n": pa.array([12, None]),
        "score": [0.123456, math.nan],
        "yes": [True, None],
        "counts": [[4, 2], None],
    }
)


def test_csv_is_exact(select):
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
    assert format_table(ROWS.slice(0, 0), "json") == "[]"


@pytest.mark.parametrize(
    ("value", "as_json", "as_csv"),
    [
        ("'nan'::DOUBLE", "null", "nan"),
        ("{'a': 'nan'::DOUBLE}", '{"a":null}', '{"a":null}'),
        ("MAP {'NaN': '-inf'::FLOAT, 'x': 1}", *['{"NaN":null,"x":1.0}'] * 2),
        ("[[1.5, 'inf'::DOUBLE], NULL]", *["[[1.5,null],null]"] * 2),
        ("union_value(x := 'nan'::DOUBLE)", *['{"x":null}'] * 2),
        ("[union_value(x := NULL::INTEGER)]", *['[{"x":null}]'] * 2),
        ("{'a': (1, 'b')}", *['{"a":[1,"b"]}'] * 2),
        ("42::VARIANT", *["42"] * 2),
        ("[sum(3), NULL]", *["[3,null]"] * 2),
        ("sum(3)", *["3"] * 2),
        ("[340282366920938463463374607431768211455::UHUGEINT]", *["[340282366920938463463374607431768211455]"] * 2),
        ("12345678901234567890123.456::DECIMAL(38, 3)", *["12345678901234567890123.456"] * 2),
        ("999999999999999.999::DECIMAL(18, 3)", *["999999999999999.999"] * 2),
        ("[DATE '2025-01-02']", *['["2025-01-02"]'] * 2),
        ("TIMESTAMP '2025-01-02 03:04:05.6'", '"2025-01-02 03:04:05.6"', "2025-01-02 03:04:05.6"),
        ("INTERVAL '1 year 2 days'", '"1 year 2 days"', "1 year 2 days"),
        ("UUID '550e8400-e29b-41d4-a716-446655440000'", f'"{A_UUID}"', A_UUID),
        ("'b'::ENUM ('a', 'b')", '"b"', "b"),
        (r"'\xAA\x00a'::BLOB", r'"\\xAA\\x00a"', r"\xAA\x00a"),
        ("'101'::BIT", '"101"', "101"),
        ('\'{"a": [1, "NaN"]}\'::JSON', *['{"a": [1, "NaN"]}'] * 2),
        ("union_value(x := 92080819784.90879::DECIMAL(18, 5))", *['{"x":92080819784.90879}'] * 2),
        ("true", "true", "true"),
        ("[]", "[]", "[]"),
        ("NULL", "null", ""),
    ],
)
def test_json_and_csv_spell_every_type(select, value, as_json, as_csv):
    found = select(f"SELECT {value} AS x, 0 AS y")
    assert format_table(found, "json") == f'[\n{{"x": {as_json}, "y": 0}}\n]'
    assert list(csv.reader(io.StringIO(format_table(found, "csv")))) == [["x", "y"], [as_csv, "0"]]


def test_columns_of_one_name_are_all_there(select):
    assert json.loads(format_table(select("SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a, 5 AS A"), "json")) == [
        {"a": 1, "a_2": 2, "a_1": 3, "a_3": 4, "A": 5}
    ]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def shifted(n: int, places: int) -> str:
    """A whole number with its point so many places to the left: DuckDB can't read exponents of large ones."""
    digits = str(abs(n)).zfill(places + 1)
    return f"{'-' * (n < 0)}{digits[:-places]}.{digits[-places:]}"


ENUM = "ENUM ('a', 'b''')"
LEAVES: dict[str, st.SearchStrategy[str]] = {
    "DOUBLE": st.floats().map(lambda x: f"'{x}'::DOUBLE"),
    "FLOAT": st.floats(width=32).map(lambda x: f"'{x}'::FLOAT"),
    "BIGINT": st.integers(-(2**63), 2**63 - 1).map(lambda n: f"'{n}'::BIGINT"),
    "HUGEINT": st.integers(-(2**127), 2**127 - 1).map(lambda n: f"'{n}'::HUGEINT"),
    "UHUGEINT": st.integers(0, 2**128 - 1).map(lambda n: f"'{n}'::UHUGEINT"),
    "DECIMAL(18, 5)": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: f"'{shifted(n, 5)}'::DECIMAL(18, 5)"),
    "DECIMAL(38, 7)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: f"'{shifted(n, 7)}'::DECIMAL(38, 7)"),
    "BOOLEAN": st.booleans().map(str),
    "VARCHAR": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(quoted),
    "BLOB": st.binary().map(lambda raw: f"unhex('{raw.hex()}')"),
    "UUID": st.uuids().map(lambda value: f"'{value}'::UUID"),
    "BIT": st.text("01", min_size=1).map(lambda bits: f"'{bits}'::BIT"),
    ENUM: st.sampled_from(["a", "b'"]).map(lambda value: f"{quoted(value)}::{ENUM}"),
    "DATE": st.integers(-2_000_000, 5_000_000).map(lambda days: f"(DATE '1970-01-01' + {days})"),
    "TIMESTAMP": st.integers(-(2**55), 2**57).map(lambda us: f"make_timestamp({us})"),
    "INTERVAL": st.integers(-(2**30), 2**30).map(lambda n: f"(to_months({n}) + to_microseconds({n}))"),
}


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> Any:
    """A strategy for values of one type in SQL: a leaf, or lists, structs, maps or unions of others."""
    match draw(st.sampled_from(["leaf", "leaf", "list", "struct", "map", "union"] if depth else ["leaf"])):
        case "leaf":
            kind = draw(st.sampled_from(sorted(LEAVES)))
            return LEAVES[kind] | st.just(f"NULL::{kind}")
        case "list":
            return st.lists(draw(values(depth - 1)), min_size=1, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        case "struct":
            pairs = st.tuples(draw(values(depth - 1)), draw(values(depth - 1)))
            return pairs.map(lambda pair: f"{{'a': {pair[0]}, 'B \"': {pair[1]}}}")
        case "map":
            items = st.dictionaries(st.text('aé"N\\'), draw(values(depth - 1)), min_size=1, max_size=3)
            return items.map(lambda found: f"MAP {{{', '.join(f'{quoted(key)}: {found[key]}' for key in found)}}}")
        case _:
            return draw(values(depth - 1)).map(lambda value: f"union_value(member := {value})")


@given(st.data())
def test_json_is_what_duckdb_writes_but_for_numbers_that_are_not_finite(select, tmp_path_factory, data):
    query = f"SELECT {data.draw(data.draw(values()))} AS x"
    copied = tmp_path_factory.getbasetemp() / "copied.json"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{copied}' (FORMAT json)")

    def exact(text: str) -> Any:
        return json.loads(text, parse_float=Decimal, parse_constant=lambda name: None)

    table, wanted = select(query), exact(copied.read_text())
    assert exact(format_table(table, "json")) == [wanted]
    _, (cell,) = csv.reader(io.StringIO(format_table(table, "csv")))
    if isinstance(wanted["x"], list | dict):
        assert exact(cell) == wanted["x"]


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
@pytest.mark.parametrize("value", [HOSTILE, [HOSTILE], {HOSTILE[:-1]: HOSTILE}, [{HOSTILE[:-1]: [HOSTILE]}]])
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
    ("query", "shown"),
    [
        ("SELECT 'infinity'::DATE", "infinity"),
        ("SELECT ['4000-01-01 (BC)'::DATE] AS dates", "4000-01-01 (BC)"),
        ("FROM test_all_types()", "340282366920938463463374607431768211455"),
    ],
)
def test_what_python_has_no_word_for_is_printed_all_the_same(select, query, shown, output):
    assert shown in format_table(select(query), output)


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
