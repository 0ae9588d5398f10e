"""Heads matched with those of another seed's model that do the same: the best matching by attention patterns.

Heads are matched within their layer: those of another attend otherwise, whatever training does.
"""

from collections.abc import Iterator
from functools import cache
from math import log
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import rel_entr

from headstream.models.nodes import Head
from headstream.tasks.results.kept_rows import insert_in_order
from headstream.tasks.results.tables import table_schema

_Rows = Iterator[dict[str, Any]]
Queries = dict[tuple[int, int], NDArray[np.float64]]  # attention on keys, by sequence and position
Distances = Float[NDArray[np.float64], "head other_head"]

PAIRS = """
    SELECT DISTINCT one.model_id AS one, other.model_id AS other
    FROM study_models AS one
    JOIN study_models AS other
        ON one.study = other.study AND drop_axes(one.cell, 'seed') = drop_axes(other.cell, 'seed')
    WHERE one.model_id < other.model_id
        AND one.model_id IN (SELECT model_id FROM head_patterns)
        AND other.model_id IN (SELECT model_id FROM head_patterns)
"""


def insert_head_matches(connection: duckdb.DuckDBPyConnection, kept: str = "main") -> None:
    """Fill head_matches from head_patterns: every pair of models that differ in their seed alone, both ways.

    Pairs that the table of that name in the database `kept` has are taken over from there.
    """

    @cache
    def patterns_of(model_id: str) -> dict[Head, Queries]:
        query = "SELECT layer, head, sequence, query, weights FROM head_patterns WHERE model_id = ? ORDER BY ALL"
        found: dict[Head, Queries] = {}
        for layer, head, *place, weights in connection.execute(query, [model_id]).fetchall():
            found.setdefault(Head(layer, head), {})[place[0], place[1]] = np.array(weights) / sum(weights)
        return found

    connection.execute(f"CREATE TEMP TABLE pairs AS {PAIRS}")
    known = f"SELECT model_id, other_model_id FROM {kept}.head_matches"
    pairs = connection.execute(f"FROM pairs WHERE (one, other) NOT IN ({known}) ORDER BY ALL").fetchall()
    rows: list[dict[str, Any]] = []
    for one, other in pairs:
        of_one, of_other = _by_layer(patterns_of(one)), _by_layer(patterns_of(other))
        for layer in sorted(of_one.keys() & of_other.keys()):
            rows += _matches(one, of_one[layer], other, of_other[layer])
    connection.register("matches", pa.Table.from_pylist(rows, schema=table_schema("head_matches")))
    pair = "(least(model_id, other_model_id), greatest(model_id, other_model_id))"
    known = f"FROM {kept}.head_matches WHERE {pair} IN (FROM pairs)"
    insert_in_order(connection, "head_matches", "FROM matches", known)
    connection.unregister("matches")
    connection.execute("DROP TABLE pairs")


def _by_layer(patterns: dict[Head, Queries]) -> dict[int, dict[Head, Queries]]:
    layers: dict[int, dict[Head, Queries]] = {}
    for head, queries in patterns.items():
        layers.setdefault(head.layer, {})[head] = queries
    return layers


def _matches(one: str, of_one: dict[Head, Queries], other: str, of_other: dict[Head, Queries]) -> _Rows:
    """Rows about the heads of a layer in both models; models that have no query in common have none."""
    from scipy.optimize import linear_sum_assignment  # a fifth of a second, for studies of one seed

    between = distances(of_one, of_other)
    if np.isnan(between).all():
        return
    matched = linear_sum_assignment(between)
    for own_id, other_id, own, others, pairs in (
        (one, other, of_one, of_other, zip(*matched, strict=True)),
        (other, one, of_other, of_one, zip(*matched[::-1], strict=True)),
    ):
        nearest = _nearest(distances(own, own))
        for i, j in pairs:
            head, matched_with = list(own)[i], list(others)[j]
            yield {
                **{"model_id": own_id, **head._asdict(), "other_model_id": other_id},
                **{"other_layer": matched_with.layer, "other_head": matched_with.head, "nearest_distance": nearest[i]},
                "matched_distance": float(between[i, j] if own_id == one else between[j, i]),
            }


def distances(own: dict[Head, Queries], others: dict[Head, Queries]) -> Distances:
    """Jensen-Shannon distance of any two heads, the mean over the queries that both have; NaN without any."""
    shared = set.intersection(*map(set, [*own.values(), *others.values()]))
    total = np.full((len(own), len(others)), np.nan if not shared else 0.0)
    for place in sorted(shared):
        p = np.stack([queries[place] for queries in own.values()])[:, None]
        q = np.stack([queries[place] for queries in others.values()])[None]
        middle = (p + q) / 2
        divergence = (rel_entr(p, middle) + rel_entr(q, middle)).sum(-1) / (2 * log(2))
        total += np.sqrt(divergence.clip(min=0))
    return total / max(1, len(shared))


def _nearest(within: Distances) -> list[float | None]:
    """From each head to the nearest other one."""
    if len(within) < 2:
        return [None] * len(within)
    return np.where(np.eye(len(within), dtype=bool), np.inf, within).min(axis=1).tolist()
