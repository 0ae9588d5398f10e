"""Data frames of queries' results, in which no number loses its last digits and no time is invented."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd

TIMES = {"date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"}


def exact_frame(rows: duckdb.DuckDBPyRelation) -> pd.DataFrame:
    """The rows of a relation, which pandas would partly round.

    Sums of whole numbers are Python's own where 64 bits are too few, decimals where a float is; infinite times are the
    words `infinity` and `-infinity`.
    """
    kinds = [kind.id for kind in rows.types]
    wide = {place: NUMBERS[kind] for place, kind in enumerate(kinds) if kind in NUMBERS}
    times = [place for place, kind in enumerate(kinds) if kind in TIMES]
    if not wide and not times:
        return rows.df()
    frame = rows.project(", ".join(_columns(rows, wide, times))).df()
    infinite = frame.iloc[:, len(kinds) :]
    names = frame.columns[: len(kinds)]
    columns = [frame.iloc[:, place] for place in range(len(kinds))]
    for place, numbers in wide.items():
        columns[place] = numbers(columns[place])
    for place, (_, words) in zip(times, infinite.items(), strict=True):
        if words.notna().any():
            columns[place] = columns[place].astype(object).where(words.isna(), words)
    return pd.concat(columns, axis=1, keys=names) if columns else frame


def _columns(rows: duckdb.DuckDBPyRelation, wide: Any, times: Sequence[int]) -> list[str]:
    """SQL for all columns, wide numbers as text and finite times alone, and then for the words of infinite times."""
    columns = []
    for place, name in enumerate(rows.columns):
        column = f"#{place + 1}"
        if place in wide:
            column = f"CAST({column} AS VARCHAR)"
        elif place in times:
            column = f"CASE WHEN NOT isinf({column}) THEN {column} END"
        quoted = name.replace('"', '""')
        columns.append(f'{column} AS "{quoted}"')
    words = [f"CASE WHEN isinf(#{place + 1}) THEN CAST(#{place + 1} AS VARCHAR) END" for place in times]
    return columns + [f'{column} AS "infinite {place}"' for place, column in enumerate(words)]


def _whole(texts: pd.Series) -> pd.Series:
    """Whole numbers in 64 bits, if there is room for all."""
    values = [None if pd.isna(text) else int(text) for text in texts]
    limits = np.iinfo(np.int64)
    if all(value is None or limits.min <= value <= limits.max for value in values):
        return pd.Series(values, dtype="Int64" if None in values else "int64")
    return pd.Series(values, dtype=object)


def _decimal(texts: pd.Series) -> pd.Series:
    """Decimals as floats, if these have all their digits."""
    values = [None if pd.isna(text) else Decimal(text) for text in texts]
    if all(value is None or Decimal(repr(float(value))) == value for value in values):
        return pd.Series([np.nan if value is None else float(value) for value in values], dtype="float64")
    return pd.Series(values, dtype=object)


NUMBERS: dict[str, Callable[[pd.Series], pd.Series]] = {"hugeint": _whole, "uhugeint": _whole, "decimal": _decimal}
