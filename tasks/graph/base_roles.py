"""The heads of a model that have a role, as tables of its analyses tell: what interventions that name a role act on."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import duckdb

from headstream.models.nodes import Head, parse_node
from headstream.tasks.graph.step import Inputs, LeftOut
from headstream.tasks.results.tables import quoted, tables
from headstream.tasks.results.views import create_tables_and_views
from headstream.tasks.study.cells import Cell
from headstream.tasks.study.training_interventions import STAGES_OF_ROLES, InterventionConfig

_HEADS = {
    "induction": "SELECT reader FROM induction_circuits WHERE is_strongest AND reader_role = 'induction'",
    "writer": "SELECT writer FROM induction_circuits WHERE is_strongest AND reader_role = 'induction' AND kind = 'K'",
}
_ABSENT = {"induction": "has no induction head", "writer": "has no induction head that reads another by its keys"}


def with_named_heads(cell: Cell, base: str, inputs: Inputs) -> Cell:
    """The cell with heads instead of roles; `inputs` has its base's training as `base`, and analyses by stage.

    Raises:
        LeftOut: the base has no head of that role.
    """
    folders = tuple(inputs[role].folder for role in ("base", *stages_waited_for(cell)))
    found: list[InterventionConfig] = []
    for own in cell.training.interventions:
        if own.role:
            head = _head_of(own.role, folders)
            if head is None:
                raise LeftOut(f"left out: {base} {_ABSENT[own.role]}")
            own = own.with_heads(head)
        found.append(own)
    return replace(cell, training=cell.training.model_copy(update={"interventions": tuple(found)}))


def stages_waited_for(cell: Cell) -> list[str]:
    """The stages by which its base must be measured first: their artifacts are inputs of these names."""
    return sorted({stage for role in cell.roles for stage in STAGES_OF_ROLES[role]})


@lru_cache
def _head_of(role: str, folders: tuple[Path, ...]) -> Head | None:
    """The head that a role is of, by the views that reports are made of, over the tables in some folders."""
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        for folder in folders:
            for path in sorted(folder.glob("*.parquet")):
                if path.stem in tables():
                    source = f"read_parquet({quoted(str(path))})"
                    connection.execute(f"INSERT INTO {path.stem} BY NAME FROM {source}")
        found = connection.execute(_HEADS[role]).fetchone()
    if not found or found[0] is None:
        return None
    head = parse_node(found[0])
    assert isinstance(head, Head)
    return head
