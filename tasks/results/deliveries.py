"""The files that fill each table: those of each stage, once they are known to be whole and to fit it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headstream.tasks.errors import WorkError
from headstream.tasks.results import claim_files, tables
from headstream.tasks.results.indexed_artifacts import subject_of
from headstream.tasks.results.tables import Table, table_named
from headstream.tasks.storage.artifact import MAKE_MODELS, Artifact
from headstream.tasks.storage.store import Store

# tables that no stage delivers
FILLED_HERE = {"artifacts", "head_matches", "claims", "claim_configurations", "warehouse"}


@dataclass
class Delivery:
    """The files that one stage has of one table, those with the same columns together."""

    files: dict[tuple[str, ...], list[Path]] = field(default_factory=lambda: defaultdict(list))

    @property
    def columns(self) -> set[str]:
        """The columns that any of the files has."""
        return set().union(*self.files)


def are_whole(store: Store, artifacts: Iterable[Artifact]) -> bool:
    """Check that all tables in these artifacts are as they were written; an artifact that isn't is quarantined.

    Nothing else in them is read: whoever uses weights verifies them.
    """
    # Threads would wait for each other, and take twice as long: the files of a table are small.
    verified = [store.verified(a.manifest.stage, a.manifest.key, among=delivered_files()) for a in artifacts]
    return all(artifact is not None for artifact in verified)


def deliveries(store: Store, artifacts: Sequence[Artifact]) -> Iterator[tuple[str, dict[str, Delivery]]]:
    """Table by table, those with most files first, the files to read of each stage.

    So a table can be filled while the files of the next are looked at. Tables without files come last.

    Raises: WorkError when a file doesn't fit its table (its artifact is then quarantined), or two stages fill one
        column of one row.
    """
    of_table = {}
    for name in sorted(delivered_files()):
        of_table[name] = [artifact for artifact in artifacts if name in artifact.manifest.files]
    misfits: dict[Path, str] = {}
    for name, having in sorted(of_table.items(), key=lambda item: -len(item[1])):
        table, by_stage = table_named(name.removesuffix(".parquet")), defaultdict[str, Delivery](Delivery)
        for artifact in having:
            if artifact.folder in misfits:  # and so is no longer there
                continue
            stage, file = artifact.manifest.stage, artifact.folder / name
            columns, misfit = _columns(table, file, subject_of(artifact))
            by_stage[stage].files[columns].append(file)
            if misfit:
                misfits[artifact.folder] = f"{file}: {misfit}"
                store.quarantine(stage, artifact.manifest.key, misfit)
        if not misfits:
            yield table.name, _side_by_side(table, by_stage)
    if misfits:
        more = f" (and {len(misfits) - 1} more)" if len(misfits) > 1 else ""
        raise WorkError(
            f"a table doesn't fit data/schema.sql: {next(iter(misfits.values()))}{more}. "
            "Such artifacts are now quarantined: run their study again."
        )


@cache
def delivered_files() -> frozenset[str]:
    """Names of the files in artifacts that hold tables."""
    return frozenset(f"{name}.parquet" for name in tables.tables().keys() - FILLED_HERE)


def _columns(table: Table, file: Path, subject: str) -> tuple[tuple[str, ...], str | None]:
    """A Parquet file's columns and, unless it fits the table and its rows are about the subject, what is wrong."""
    try:
        metadata = pq.read_metadata(file)
    except pa.ArrowInvalid as error:
        return (), f"not a Parquet file: {claim_files.first_line(error)}"
    schema = metadata.schema.to_arrow_schema()
    names = tuple(schema.names)
    return names, _misfit(table, schema, names) or _of_others(metadata, subject)


def _misfit(table: Table, schema: pa.Schema, names: tuple[str, ...]) -> str | None:
    if schema.equals(_expected(table.name, names)):
        return None
    if names[0] != table.key[0]:
        return f"its first column must be {table.key[0]}, got {names[0]}"
    for column in schema:
        if column.name not in table.schema.names:
            return f"{table.name} has no column {column.name}"
        expected = table.schema.field(column.name).type
        if column.type != expected:
            return f"column {column.name} must be {expected}, got {column.type}"
    absent = [column for column in table.key if column not in names]
    return f"its key lacks {', '.join(absent)}" if absent else None


@cache
def _expected(name: str, names: tuple[str, ...]) -> pa.Schema:
    """The schema of a file of a table with columns of these names; an empty one if it doesn't fit the table."""
    table = table_named(name)
    fits = names[:1] == table.key[:1] and {*table.key} <= {*names} <= {*table.schema.names}
    return pa.schema([table.schema.field(column) for column in names] if fits else [])


def _of_others(metadata: pq.FileMetaData, subject: str) -> str | None:
    """The misfit of a file that has rows about another subject, by the statistics of its first column."""
    subjects: set[str] = set()
    for group in range(metadata.num_row_groups):
        ends = metadata.row_group(group).column(0).statistics
        if ends and ends.has_min_max:
            subjects |= {ends.min, ends.max}
    others = subjects - {subject}
    return f"its rows must be about {subject}, got {min(others)}" if others else None


def _side_by_side(table: Table, by_stage: dict[str, Delivery]) -> dict[str, Delivery]:
    """The deliveries to join: stages that fill the same columns have rows of their own, and count as one.

    Raises: WorkError when stages share some columns, but not all.
    """
    joined: dict[frozenset[str], str] = {}
    side_by_side: dict[str, Delivery] = {}
    for stage, delivery in by_stage.items():
        columns = frozenset(delivery.columns.difference(table.key))
        same = next((own for own, by in joined.items() if own == columns or {by, stage} <= {*MAKE_MODELS}), None)
        other = next((filled for filled in joined if filled & columns), None)
        if same is not None:
            earlier_stage = joined.pop(same)
            for names, files in side_by_side.pop(earlier_stage).files.items():
                delivery.files[names] += files
            stage, columns = f"{earlier_stage} and {stage}", columns | same
        elif other is not None:
            raise WorkError(
                f"{table.name}.{min(other & columns)} is filled by {joined[other]} and by {stage}, which don't fill the"
                " same columns besides. Leave it out of one."
            )
        joined[columns] = stage
        side_by_side[stage] = delivery
    return side_by_side
