from decimal import Decimal

import duckdb
import pandas as pd
import pytest

from headstream.tasks.results.exact_frames import exact_frame


def frame(query: str) -> pd.DataFrame:
    with duckdb.connect() as connection:
        return exact_frame(connection.sql(query))


@pytest.mark.parametrize(
    ("query", "value", "kind"),
    [
        ("sum(9007199254740993::bigint)", 9007199254740993, "int64"),
        ("sum(3)", 3, "int64"),
        ("sum(9223372036854775807::bigint) + 1", 2**63, "object"),
        ("170141183460469231731687303715884105727::hugeint", 2**127 - 1, "object"),
        ("340282366920938463463374607431768211455::uhugeint", 2**128 - 1, "object"),
        ("sum(0.5)", 0.5, "float64"),
        ("0.1 + 0.2", 0.3, "float64"),
        ("123456789012345678.5", Decimal("123456789012345678.5"), "object"),
        ("sum(12345678901234567890.123::decimal(38, 3))", Decimal("12345678901234567890.123"), "object"),
        ("timestamp 'infinity'", "infinity", "object"),
        ("timestamptz '-infinity'", "-infinity", "object"),
        ("date '-infinity'", "-infinity", "object"),
        ("timestamp_ns 'infinity'", "infinity", "object"),
        ("timestamp '2026-11-30'", pd.Timestamp("2026-11-30"), "datetime64[us]"),
        ("1e300", 1e300, "float64"),
        ("9007199254740993", 9007199254740993, "int64"),
    ],
)
def test_a_value_is_what_duckdb_says(query, value, kind):
    found = frame(f"SELECT {query} AS x")
    assert (found.x.tolist(), str(found.x.dtype)) == ([value], kind)


def test_missing_values_and_infinite_times_stand_beside_others():
    rows = "(1::hugeint, 0.5, timestamp 'infinity'), (NULL, NULL, NULL), (3, 0.25, timestamp '2020-01-01')"
    found = frame(f"SELECT n, d, t FROM (VALUES {rows}) rows(n, d, t)")
    assert found.n.dtype == "Int64"
    assert found.n.sum() == 4
    assert found.d.sum() == 0.75
    assert found.isna().sum().tolist() == [1, 1, 1]
    assert found.t[0] == "infinity"
    assert found.t[2] == pd.Timestamp("2020-01-01")


@pytest.mark.parametrize(
    "query", ["SELECT 1::hugeint AS x WHERE false", "SELECT NULL::decimal(4, 1) AS x, NULL::date AS y"]
)
def test_columns_without_values(query):
    assert "x" in frame(query)


def test_names_are_kept():
    assert list(frame('SELECT 1::hugeint AS "a""b", date \'2020-01-01\' AS x, 2::hugeint AS x')) == ['a"b', "x", "x_1"]
