"""The warehouse: a DuckDB file that indexes the store's Parquet tables, rebuilt whenever the store has news."""

import hashlib
import json
import logging
import os
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from tasks.errors import WorkError
from tasks.results import claim_files, claims, head_matches, tables, views
from tasks.results.tables import Table, quoted, table_named, table_schema
from tasks.storage.artifact import MAKE_MODELS, Artifact
from tasks.storage.latest_records import latest_records
from tasks.storage.sealing import fsync
from tasks.storage.store import Store
from tasks.system_errors import disk_is_full

STORAGE_VERSION = "v1.5.0"  # DuckDB 1.5 can't open files in the format of DuckDB 2
INDEXING_CODE = (
    "warehouse.py",
    "tables.py",
    "views.py",
    "head_matches.py",
    "claims.py",
    "claim_files.py",
    "configurations.py",
    "intervals.py",
)
# tables that no stage delivers
FILLED_HERE = {"artifacts", "head_matches", "claims", "claim_configurations", "warehouse"}

log = logging.getLogger(__name__)


@dataclass
class Delivery:
    """What one stage has of one table."""

    files: list[Path] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)


def build_warehouse(store: Store, path: Path, *, anew: bool = False) -> bool:
    """Bring the warehouse up to date with the store; False when it already was, unless it is to be built anew.

    The new file is built beside the old one and renamed over it: whoever has the old one open continues to read it.
    Builders wait for each other.

    Raises: WorkError when artifacts don't fit data/schema.sql (they are quarantined) or contradict each other;
        UserError when a file of reports/claims is wrong.
    """
    if not anew and is_current(store, path):  # then neither the lock nor its folder need be writable
        return False
    building = path.with_name(f"{path.name}.building")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            found = sources(store)
            if not anew and _recorded_fingerprint(path) == _fingerprint(found):
                return False
            while not all(store.open(a.manifest.stage, a.manifest.key) for a in found):
                found = sources(store)  # without the corrupt ones, which `open` has quarantined
            deliveries = _deliveries(store, found)
            _remove_database(building)
            try:
                _write(building, found, deliveries)
                _publish(building, path)
            finally:
                _remove_database(building)
        return True
    except (duckdb.Error, OSError) as error:
        if not (isinstance(error, duckdb.IOException | OSError) or disk_is_full(error)):
            raise
        raise WorkError(
            f"{path} must be writable, with room for a second copy, got: {' '.join(str(error).split())} "
            "Free disk space or correct its permissions, then run `headstream index`."
        ) from error


def is_current(store: Store, path: Path) -> bool:
    """Whether the warehouse is there and holds what the store does."""
    recorded = _recorded_fingerprint(path)
    return recorded is not None and recorded == _fingerprint(sources(store))


def is_whole(path: Path) -> bool:
    """Whether all of the warehouse can be read; DuckDB checks each block as it reads it."""
    try:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {quoted(str(path))} AS built (READ_ONLY)")
            for name in tables.tables():
                connection.execute(f"SELECT bit_xor(hash(row)) FROM built.{name} AS row")
        return True
    except duckdb.Error:
        return False


def sources(store: Store) -> list[Artifact]:
    """The latest record of each study, and the newest artifact of each stage and subject that they name.

    So what older code found about the same model doesn't count a second time.
    """
    records = [record for _, record in sorted(latest_records(store).items())]
    named = {(reference.stage, reference.key) for record in records for reference in record.manifest.inputs.values()}
    found = [
        artifact
        for stage in sorted({stage for stage, _ in named})
        for artifact in store.artifacts(stage)
        if (stage, artifact.manifest.key) in named
    ]
    if n_missing := len(named) - len(found):
        log.warning("%d artifacts that studies name are not in the store: run those studies again", n_missing)
    found.sort(key=lambda artifact: (artifact.manifest.created, artifact.manifest.key))
    newest = {(artifact.manifest.stage, _subject_of(artifact)): artifact for artifact in found}
    return [artifact for _, artifact in sorted(newest.items())] + records


def _subject_of(artifact: Artifact) -> str:
    """What an artifact is about: a model, a corpus or a study."""
    facts = artifact.manifest.facts
    names = (facts[name] for name in ("model_id", "corpus_id", "study") if name in facts)
    return next(names, artifact.manifest.key)


def _fingerprint(found: list[Artifact]) -> str:
    artifacts = [(a.manifest.stage, a.digest, a.manifest.created) for a in found]
    code = [Path(__file__).with_name(name) for name in INDEXING_CODE]
    code += [
        tables.SCHEMA,
        claim_files.SOURCES,
        *(path for folder in (views.VIEWS, claim_files.CLAIMS) for path in sorted(folder.glob("*.sql"))),
    ]
    texts = [(path.name, path.read_text()) for path in code]
    return hashlib.sha256(json.dumps([artifacts, texts]).encode()).hexdigest()


def _recorded_fingerprint(path: Path) -> str | None:
    """The fingerprint of an existing warehouse; None when it is missing, broken or locked, and so has to be rebuilt."""
    try:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {quoted(str(path))} AS built (READ_ONLY)")
            return connection.execute("SELECT fingerprint FROM built.warehouse").fetchall()[0][0]
    except (duckdb.Error, IndexError):
        return None


def _deliveries(store: Store, found: list[Artifact]) -> dict[str, dict[str, Delivery]]:
    """By table and stage the files to read and the columns in them.

    Raises: WorkError when a file doesn't fit its table, or two stages fill one column of one row.
    """
    deliveries: dict[str, dict[str, Delivery]] = defaultdict(lambda: defaultdict(Delivery))
    delivered = {f"{name}.parquet": table for name, table in tables.tables().items() if name not in FILLED_HERE}
    misfits = []
    for artifact in found:
        stage = artifact.manifest.stage
        for name in (name for name in delivered if name in artifact.manifest.files):
            table, file = delivered[name], artifact.folder / name
            columns, misfit = _columns(table, file)
            if misfit:
                misfits.append(f"{file}: {misfit}")
                store.quarantine(stage, artifact.manifest.key, misfit)
                break
            deliveries[table.name][stage].files.append(file)
            deliveries[table.name][stage].columns.update(columns)
    if misfits:
        more = f" (and {len(misfits) - 1} more)" if len(misfits) > 1 else ""
        raise WorkError(
            f"tables must fit data/schema.sql, got {misfits[0]}{more}. "
            "Such artifacts are now quarantined: run their study again."
        )
    return {name: _side_by_side(table_named(name), by_stage) for name, by_stage in deliveries.items()}


def _columns(table: Table, file: Path) -> tuple[list[str], str | None]:
    """A Parquet file's columns and, unless it fits the table, what is wrong with it."""
    try:
        schema = pq.read_schema(file)
    except pa.ArrowInvalid as error:
        return [], f"not a Parquet file: {claim_files.first_line(error)}"
    for column in schema:
        if column.name not in table.schema.names:
            return schema.names, f"{table.name} has no column {column.name}"
        expected = table.schema.field(column.name).type
        if column.type != expected:
            return schema.names, f"column {column.name} must be {expected}, got {column.type}"
    absent = [column for column in table.key if column not in schema.names]
    return schema.names, f"its key lacks {', '.join(absent)}" if absent else None


def _side_by_side(table: Table, by_stage: dict[str, Delivery]) -> dict[str, Delivery]:
    """The deliveries to join: stages that fill the same columns have rows of their own, and count as one.

    Raises: WorkError when stages share some columns, but not all.
    """
    joined: dict[frozenset[str], str] = {}
    deliveries: dict[str, Delivery] = {}
    for stage, delivery in by_stage.items():
        columns = frozenset(delivery.columns.difference(table.key))
        if same := next((own for own, by in joined.items() if own == columns or {by, stage} <= {*MAKE_MODELS}), None):
            earlier_stage = joined.pop(same)
            earlier = deliveries.pop(earlier_stage)
            delivery = Delivery(earlier.files + delivery.files, earlier.columns | delivery.columns)
            stage, columns = f"{earlier_stage} and {stage}", columns | same
        elif shared := next((both for other in joined if (both := columns & other)), None):
            other = next(name for filled, name in joined.items() if filled & columns)
            raise WorkError(
                f"{table.name}.{min(shared)} must be filled by one stage, or by two that fill all the same columns, "
                f"got {other} and {stage}. Leave it out of one."
            )
        joined[columns] = stage
        deliveries[stage] = delivery
    return deliveries


def _write(path: Path, found: list[Artifact], deliveries: dict[str, dict[str, Delivery]]) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS built (STORAGE_VERSION {quoted(STORAGE_VERSION)})")
        # One thread reads thousands of small files almost twice as fast as two, and adds up in one order.
        connection.execute("USE built; SET threads = 1")
        views.create_tables_and_views(connection)
        for name, by_stage in deliveries.items():
            _insert(connection, table_named(name), by_stage)
        connection.register("sources", _artifact_rows(found))
        connection.execute("INSERT INTO artifacts BY NAME FROM sources")
        head_matches.insert_head_matches(connection)
        claims.insert_claims(connection)
        connection.execute("INSERT INTO warehouse VALUES (?)", [_fingerprint(found)])
        connection.execute("USE memory")
        connection.execute("DETACH built")


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, by_stage: dict[str, Delivery]) -> None:
    """Fill a table with each stage's rows, one below the other, and the stages side by side."""
    first, *others = [f"read_parquet(?, union_by_name = true) AS part_{i}" for i in range(len(by_stage))]
    joined = first + "".join(f" FULL JOIN {other} USING ({', '.join(table.key)})" for other in others)
    files = [[str(file) for file in delivery.files] for delivery in by_stage.values()]
    try:
        connection.execute(f"INSERT INTO {table.name} BY NAME SELECT * FROM {joined}", files)
    except duckdb.ConstraintException as error:
        raise WorkError(
            f"rows of {table.name} must differ in {', '.join(table.key)}, got: {claim_files.first_line(error)} Two"
            f" artifacts ({', '.join(by_stage)}) share rows: give them the same subject, or other keys."
        ) from error


def _artifact_rows(found: list[Artifact]) -> pa.Table:
    rows = [
        {
            "stage": artifact.manifest.stage,
            "key": artifact.manifest.key,
            "digest": artifact.digest,
            "subject": _subject_of(artifact),
            "created": datetime.fromisoformat(artifact.manifest.created),
            "seconds": artifact.manifest.seconds,
            "bytes": sum(file.bytes for file in artifact.manifest.files.values()),
        }
        for artifact in found
    ]
    return pa.Table.from_pylist(rows, schema=table_schema("artifacts"))


def _publish(building: Path, path: Path) -> None:
    fsync(building)
    # A log left by a writer other than this module would be replayed into the new file.
    Path(f"{path}.wal").unlink(missing_ok=True)
    os.replace(building, path)
    fsync(path.parent)


def _remove_database(path: Path) -> None:
    for leftover in (path, Path(f"{path}.wal")):
        leftover.unlink(missing_ok=True)
