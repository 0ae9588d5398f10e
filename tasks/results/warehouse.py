"""The warehouse: a DuckDB file that indexes the store's Parquet tables, rebuilt whenever the store has news."""

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
from filelock import FileLock

from headstream.tasks import places
from headstream.tasks.errors import WorkError
from headstream.tasks.files.system_errors import disk_is_full
from headstream.tasks.results import claim_files, claims, deliveries, head_matches, kept_rows, tables, views
from headstream.tasks.results.deliveries import Delivery
from headstream.tasks.results.indexed_artifacts import artifact_rows, indexed_artifacts, subject_of
from headstream.tasks.results.kept_rows import insert_in_order
from headstream.tasks.results.tables import Table, quoted, table_named
from headstream.tasks.results.warehouse_template import write_empty_warehouse
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.code_version import code_version
from headstream.tasks.storage.sealing import fsync
from headstream.tasks.storage.store import Store

log = logging.getLogger(__name__)


def build_warehouse(store: Store, path: Path, *, rebuild: bool = False) -> bool:
    """Bring the warehouse up to date with the store; False when it already was, unless it is to be built anew.

    The new file is built beside the old one and renamed over it: whoever has the old one open continues to read it.
    Rows of artifacts that have not changed come from the old one, unless it is to be built anew or other code built it;
    the new one is the same either way. Builders wait for each other.

    Raises: WorkError when artifacts don't fit data/schema.sql (they are quarantined) or contradict each other;
        UserError when a file of reports/claims is wrong.
    """
    found, identity = indexed_artifacts(store), _identity(path)
    recorded = _recorded(path)
    if not rebuild and recorded.fingerprint == _fingerprint(
        found
    ):  # then neither the lock nor its folder need be writable
        return False
    building = path.with_name(f"{path.name}.building")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if _identity(path) != identity:  # somebody else has built it meanwhile
                found, recorded = indexed_artifacts(store), _recorded(path)
                if not rebuild and recorded.fingerprint == _fingerprint(found):
                    return False
            try:
                same_code = recorded.code == _code_fingerprint()
                _build(store, found, building, path if same_code and not rebuild else None)
                _publish(building, path)
            finally:
                _remove_database(building)
        return True
    except (duckdb.Error, OSError) as error:
        if not (isinstance(error, duckdb.IOException | OSError) or disk_is_full(error)):
            raise
        raise WorkError(
            f"{path} can't be written, which takes room for a second copy: {' '.join(str(error).split())} "
            "Free disk space or correct its permissions, then run `headstream index`."
        ) from error


def is_current(store: Store, path: Path) -> bool:
    """Tell if the warehouse is there and holds what the store does."""
    recorded = _recorded(path).fingerprint
    return recorded is not None and recorded == _fingerprint(indexed_artifacts(store))


def is_whole(path: Path) -> bool:
    """Read all of the warehouse, and tell if it could be read: DuckDB checks each block as it reads it."""
    try:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {quoted(str(path))} AS built (READ_ONLY)")
            for name in tables.tables():
                connection.execute(f"SELECT bit_xor(hash(row)) FROM built.{name} AS row")
        return True
    except duckdb.Error:
        return False


def _fingerprint(found: Sequence[Artifact]) -> str:
    artifacts = [(a.manifest.stage, a.digest, a.manifest.created) for a in found]
    return _sha256([artifacts, _code_fingerprint()])


def _code_fingerprint() -> str:
    """A hash of all that decides what rows artifacts give."""
    sources = [tables.SCHEMA, claim_files.SOURCES]
    for folder in (views.VIEWS, places.CLAIMS):
        sources += sorted(folder.glob("*.sql"))
    return _sha256([code_version(__name__), [(path.name, path.read_text(encoding="utf-8")) for path in sources]])


def _sha256(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


class _Recorded(NamedTuple):
    """The fingerprints of what an existing warehouse was built from, and by."""

    fingerprint: str | None
    code: str | None


def _recorded(path: Path) -> _Recorded:
    """The fingerprints in a warehouse; None when it is missing, broken or locked, and so has to be rebuilt."""
    try:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {quoted(str(path))} AS built (READ_ONLY)")
            return _Recorded(*connection.execute("SELECT fingerprint, code FROM built.warehouse").fetchall()[0])
    except (duckdb.Error, IndexError):
        return _Recorded(None, None)


def _identity(path: Path) -> tuple[int, ...] | None:
    """What changes when another file takes the warehouse's place, or something is written to it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _build(store: Store, found: Sequence[Artifact], path: Path, earlier: Path | None) -> None:
    """Write a warehouse, with rows of an earlier one if that can be read."""
    if earlier:
        try:
            return _write(store, found, path, earlier)
        except duckdb.Error as error:
            if disk_is_full(error):
                raise
            log.warning("%s is damaged, and is built anew: %s", earlier, claim_files.first_line(error))
    _write(store, found, path, None)


def _write(store: Store, found: Sequence[Artifact], path: Path, earlier: Path | None) -> None:
    _remove_database(path)
    write_empty_warehouse(path)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS built")
        # One thread reads thousands of small files almost twice as fast as two, and adds up in one order.
        connection.execute("SET threads = 1")
        kept_rows.attach_earlier(connection, earlier)
        connection.execute("USE built")
        rows, changed = _changed(found, connection)
        while not deliveries.are_whole(store, changed):
            found = indexed_artifacts(store)  # without the corrupt ones, which are in quarantine now
            rows, changed = _changed(found, connection)
        kept_rows.keep_rows(connection)
        _insert_deliveries(connection, deliveries.deliveries(store, changed))
        connection.register("found", rows)
        connection.execute("INSERT INTO artifacts BY NAME FROM found")
        head_matches.insert_head_matches(connection, "kept")
        kept_rows.keep_claims(connection)
        claims.insert_claims(connection, "kept")
        connection.execute("INSERT INTO warehouse VALUES (?, ?)", [_fingerprint(found), _code_fingerprint()])
        connection.execute("USE memory")
        connection.execute("DETACH built")


def _changed(found: Sequence[Artifact], connection: duckdb.DuckDBPyConnection) -> tuple[pa.Table, list[Artifact]]:
    """Rows of `artifacts`, and those artifacts that are about what differs from the earlier warehouse."""
    rows = artifact_rows(found)
    subjects = kept_rows.changed_subjects(connection, rows)
    return rows, [artifact for artifact in found if subject_of(artifact) in subjects]


def _insert_deliveries(
    connection: duckdb.DuckDBPyConnection, by_table: Iterable[tuple[str, dict[str, Delivery]]]
) -> None:
    """Fill the tables in the order in which they come, as many at once as there are processors."""

    def insert(name: str, by_stage: dict[str, Delivery]) -> None:
        with connection.cursor() as cursor:
            cursor.execute("USE built")
            _insert(cursor, table_named(name), by_stage)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(insert, *each) for each in by_table]:
            done.result()


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, by_stage: dict[str, Delivery]) -> None:
    """Fill a table with each stage's rows, one below the other, and the stages side by side; and with those kept."""
    # Files of other columns are read apart: `union_by_name` would open each file twice.
    groups = [[*delivery.files.values()] for delivery in by_stage.values()]
    stages = [" UNION ALL BY NAME ".join(["FROM read_parquet(?)"] * len(files)) for files in groups]
    first, *others = [f"({stage}) AS part_{i}" for i, stage in enumerate(stages)] or [f"(FROM {table.name})"]
    joined = first + "".join(f" FULL JOIN {other} USING ({', '.join(table.key)})" for other in others)
    files = [[str(file) for file in same] for same in chain.from_iterable(groups)]
    try:
        insert_in_order(connection, table.name, f"FROM {joined}", f"FROM kept.{table.name}", files)
    except duckdb.ConstraintException as error:
        raise WorkError(
            f"two artifacts ({', '.join(by_stage)}) have the same rows of {table.name}, by {', '.join(table.key)}:"
            f" {claim_files.first_line(error)} Give them the same subject, or other keys."
        ) from error


def _publish(building: Path, path: Path) -> None:
    fsync(building)
    # A log left by a writer other than this module would be replayed into the new file.
    Path(f"{path}.wal").unlink(missing_ok=True)
    os.replace(building, path)
    fsync(path.parent)


def _remove_database(path: Path) -> None:
    for leftover in (path, Path(f"{path}.wal")):
        leftover.unlink(missing_ok=True)
