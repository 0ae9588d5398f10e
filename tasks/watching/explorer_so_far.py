"""The explorer of a running study: its models as far as they are trained, and measurements of them so far."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from headstream.models.parameters import count_parameters
from headstream.tasks.report.explorer.explorer_contents import PageOptions, write_explorer
from headstream.tasks.report.explorer.model_files import ModelFiles
from headstream.tasks.results.model_columns import model_row
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.results.tables import quoted, write_table
from headstream.tasks.results.views import create_tables_and_views
from headstream.tasks.study.schema import Study
from headstream.tasks.training.checkpoints import checkpoint_steps, load_model
from headstream.tasks.training.trained_columns import model_columns

MEASURED = ("evaluations", "heads")  # tables with measurements of checkpoints


def write_explorer_so_far(
    study: Study,
    files: Mapping[str, ModelFiles],
    measured: Mapping[str, Sequence[Path]],
    path: Path,
    said: Sequence[str],
    version: str,
) -> None:
    """Write the explorer of a study's models from their files and the folders of their measurements, by label.

    Raises: OSError when a file is gone.
    """
    cells = [cell for cell in study.cells if cell.label in files]
    rows: dict[str, list[dict[str, Any]]] = {"models": []}
    for cell in cells:
        checkpoints = files[cell.label].checkpoints
        model = load_model(checkpoints, checkpoint_steps(checkpoints)[-1])
        known = {"model_id": cell.label, "name": cell.architecture.name, "vocabulary": model.d_vocab}
        known |= {"parameters": count_parameters(model)}
        rows["models"].append(model_row(known | model_columns(cell.architecture, cell.training)))
    places = [{"study": study.name, "model_id": cell.label, "cell": cell.label, "status": "trained"} for cell in cells]
    about = {"study": study.name, "question": study.question, "config": json.dumps(study.recorded)}
    rows |= {"studies": [about | {"n_models": study.n_models}], "study_models": places}
    with duckdb.connect() as connection, TemporaryDirectory() as folder:
        connection.execute("SET threads = 1")
        create_tables_and_views(connection)
        for table, content in rows.items():
            _insert(connection, table, [write_table(Path(folder), table, content)])
        for cell in cells:
            for table in MEASURED:
                tables = [each / f"{table}.parquet" for each in measured[cell.label]]
                _insert(connection, table, tables, f" REPLACE ({quoted(cell.label)} AS model_id)")
        results = StudyResults(connection, study.name)
        write_explorer(results, files, path, said, PageOptions(version=version))


def _insert(connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[Path], replacing: str = "") -> None:
    query = f"INSERT INTO {table} BY NAME SELECT *{replacing} FROM read_parquet(?, union_by_name = true)"
    connection.execute(query, [[str(file) for file in files]])
