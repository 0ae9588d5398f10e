"""Models measured by the real stages on a small corpus, and what the warehouse's views then say of them."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import duckdb
from pydantic import BaseModel

from headstream.models.transformer import Transformer
from headstream.tasks.measuring.measure import measure
from headstream.tasks.results.views import create_tables_and_views
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analysis_config import AnalysisConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card
from tests.tiny import letter_tokens

KEY = "model_id, step, layer, head"  # of heads, which two stages fill

Stages = dict[str, BaseModel]


class Trained(NamedTuple):
    """A model as it began, where that matters, and as it is."""

    initial: Transformer | None
    model: Transformer


def vocabulary() -> int:
    """Size of the small corpus' vocabulary, which models must have."""
    return Tokens.open(letter_tokens()).vocabulary


def rows_about(
    models: Iterable[Trained], stages: Stages, query: str, parameters: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """Rows of a query to a warehouse of what stages find about models, which are called m0, m1, ..."""
    connection = _empty_warehouse()
    connection.begin()
    try:
        for i, trained in enumerate(models):
            put_in_warehouse(connection, f"m{i}", trained, stages)
        return connection.execute(query, parameters).fetchall()
    finally:
        connection.rollback()


@cache
def _empty_warehouse() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    create_tables_and_views(connection)
    return connection


def put_in_warehouse(connection: duckdb.DuckDBPyConnection, name: str, trained: Trained, stages: Stages) -> None:
    """Measure a model, and add what was found to a warehouse."""
    with TemporaryDirectory(prefix="headstream-calibration-") as folder:
        _measure(connection, name, trained, stages, Path(folder))


def _measure(connection: duckdb.DuckDBPyConnection, name: str, trained: Trained, stages: Stages, folder: Path) -> None:
    for step, model in enumerate(trained):
        if model is not None:
            save_checkpoint(folder, model, step)
    write_model_card(folder, trained.model, 100)
    files: dict[str, list[str]] = {}
    for stage, config in stages.items():
        (folder / stage).mkdir()
        whole = AnalysisConfig().model_copy(update={ANALYSES[stage].section: config})
        measure(stage, whole, name, {"model": folder, "tokens": letter_tokens()}, folder / stage, lambda fraction: None)
        for file in sorted((folder / stage).glob("*.parquet")):
            files.setdefault(file.stem, []).append(str(file))
    shape = [name, len(trained.model.layers), sum(trained.model.architecture.heads_per_layer)]
    connection.execute("INSERT INTO models (model_id, n_layers, total_heads) VALUES (?, ?, ?)", shape)
    for table, parts in files.items():
        joined = " JOIN ".join(f"'{part}' AS part{i}" for i, part in enumerate(parts))
        using = f" USING ({KEY})" * (len(parts) - 1)
        connection.execute(f"INSERT INTO {table} BY NAME FROM {joined}{using}")
