"""Reads a file of prompt pairs: .csv, .tsv, .jsonl or .parquet, with columns prompt, corrupt, answer and wrong."""

import csv
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headstream.tasks.errors import UserError
from headstream.tasks.files.json_objects import RepeatedNameError, distinct
from headstream.tasks.prompts.prompt_pair import PromptPair

_NEEDED, _OPTIONAL = ("prompt", "corrupt", "answer", "wrong"), ("template",)
_FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")
_MAX_BYTES = 256 << 20

_Row = Mapping[str, Any]


def read_prompts(path: Path) -> list[PromptPair]:
    """The pairs of a file, in its order; rows that say the same count once.

    Raises:
        UserError: the file can't be read, has other columns, or a row lacks a text; says which line.
    """
    rows = list(_rows(path))
    if not rows:
        raise UserError(f"{path} must hold pairs of prompts, got none. Add a row with {', '.join(_NEEDED)}.")
    return pairs_of_rows(str(path), rows)


def pairs_of_rows(source: str, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> list[PromptPair]:
    """The pairs of numbered rows; those that say the same count once.

    Raises:
        UserError: a row lacks a text, or there is a column that nothing reads.
    """
    pairs = [_pair(source, line, row) for line, row in rows]
    return list({pair[:4]: pair for pair in reversed(pairs)}.values())[::-1]


def _rows(path: Path) -> Iterator[tuple[int, _Row]]:
    """Rows with the number of the line on which each begins, or of the row in a Parquet file."""
    if path.suffix not in _FORMATS:
        raise UserError(f"prompts must be in {', '.join(_FORMATS)}, got {path}. Convert the file.")
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UserError(f"{path} must have at most {_MAX_BYTES >> 20} MiB. Split it.")
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            yield from enumerate(pq.read_table(path).to_pylist(), 1)
        elif path.suffix == ".jsonl":
            yield from _json_rows(path)
        else:
            yield from _separated_rows(path, "\t" if path.suffix == ".tsv" else ",")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} must be UTF-8, got byte {error.start:,} that isn't. Save it as UTF-8.") from error
    except (OSError, csv.Error, ValueError) as error:
        raise UserError(f"{path} can't be read: {error}. Correct the path, or the file.") from error


def _json_rows(path: Path) -> Iterator[tuple[int, _Row]]:
    for line, text in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        if text.strip():
            try:
                row = json.loads(text, object_pairs_hook=distinct)
            except json.JSONDecodeError as error:
                raise UserError(f"line {line} of {path} must be JSON, got {text[:60]!r}. Correct it.") from error
            except RepeatedNameError as error:
                raise UserError(f"line {line} of {path} must say each field once: {error}. Correct it.") from error
            if not isinstance(row, dict):
                raise UserError(f"line {line} of {path} must be an object, got {text[:60]!r}. Correct it.")
            yield line, row


def _separated_rows(path: Path, delimiter: str) -> Iterator[tuple[int, _Row]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        header, line = next(reader, []), reader.line_num + 1
        for cells in reader:
            if cells and len(cells) != len(header):
                raise UserError(
                    f"line {line} of {path} must have {len(header)} cells, as its header has, got {len(cells)}."
                    " Quote cells that hold a delimiter."
                )
            if cells:
                yield line, dict(zip(header, cells, strict=True))
            line = reader.line_num + 1


def _pair(path: str, line: int, row: _Row) -> PromptPair:
    for column in row:
        if column not in _NEEDED + _OPTIONAL:
            near = difflib.get_close_matches(str(column), _NEEDED + _OPTIONAL, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(_NEEDED + _OPTIONAL)}."
            raise UserError(f"{path} has a column {column!r} that nothing reads.{hint}")
    texts = {column: _texts(path, line, column, row.get(column)) for column in _NEEDED}
    (prompt, *_), (corrupt, *_) = texts["prompt"], texts["corrupt"]
    template = row.get("template")
    return PromptPair(prompt, corrupt, texts["answer"], texts["wrong"], str(template or f"pair {line}"), line)


def _texts(path: str, line: int, column: str, value: Any) -> tuple[str, ...]:
    """The text in a cell, or the texts of a list."""
    texts = value if isinstance(value, list) and column in ("answer", "wrong") else [value]
    if not texts or any(not isinstance(text, str) or not text for text in texts):
        raise UserError(f"line {line} of {path} must have a text for {column}, got {value!r}. Add it.")
    return tuple(texts)
