"""Prompt sets in a warehouse: what a model with weights makes of their pairs, and a circuit that was never found."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from headstream.models.prompts.certainty import clusters_of
from headstream.models.prompts.exact_effects import exact_node_effects
from headstream.models.prompts.patched_runs import base_run
from headstream.models.transformer import Transformer
from headstream.tasks.prompts.asked_pairs import kept_pairs, log_odds, pair_rows, score_row
from headstream.tasks.prompts.kept_pairs import KeptPairs
from headstream.tasks.prompts.prompt_pair import PromptPair
from headstream.tasks.results.tables import table_schema
from headstream.tasks.text.token_reading import Tokens

RIVERS = [
    PromptPair(f"the {one} river runs to the", f"the {other} river runs to the", (" sea",), (" water",), "")
    for one in ("cold", "deep", "clear")
    for other in ("cold", "deep", "clear")
    if one != other
] + [PromptPair("the river", "a cold river", (" runs",), (" flows",), "")] + [
    PromptPair(f"the {what} flows", f"the {what} runs", (" down",), (" under",), "") for what in ("water", "sea")
]  # fmt: skip
EDGES = [
    ("L1H3", "logits", "in", 0.9, 1.0),
    ("L0H0", "L1H3", "K", 0.8, 0.95),
    ("embedding", "L0H0", "V", 0.7, 0.9),
    ("L0H1", "L1H0", "Q", 0.3, None),  # to a head that leads nowhere
    ("embedding", "L1H3", "V", 0.2, 0.1),
    ("embedding", "L0H1", "V", -0.1, -0.05),
    ("L0H1", "logits", "in", -0.05, None),
]  # writer, reader, port, first-order score and exact share of the difference
SIZES = (1, 2, 4, 7)


def repeats_of(tokens: Tokens, model: Transformer) -> KeptPairs:
    return kept_pairs("repeats", (), tokens, model.architecture.n_ctx, 12, 0)


def insert_prompts(warehouse: Path, model_id: str, model: Transformer, tokens: Tokens, step: int) -> None:
    """Rows of two sets: repeats, as if there were a circuit of it, and rivers, which the model can't do."""
    rows: dict[str, list[dict[str, Any]]] = {}
    n_ctx = model.architecture.n_ctx
    sets = {"repeats": repeats_of(tokens, model), "rivers": kept_pairs("rivers", RIVERS, tokens, n_ctx, 99, 0)}
    for name, kept in sets.items():
        odds = log_odds(model, kept)
        score = score_row(odds, clusters_of(kept.templates)) | {"step": step, "can_do_it": name == "repeats"}
        found = {"prompts": pair_rows(kept, odds), "prompt_scores": [score]}
        if name == "repeats":
            found |= _circuit(model, kept, score["difference_nats"])
        for table, own in found.items():
            rows.setdefault(table, []).extend({"model_id": model_id, "prompts": name, **row} for row in own)
    with duckdb.connect(warehouse) as connection:
        for table, own in rows.items():
            connection.register("invented", pa.Table.from_pylist(own, schema=table_schema(table)))
            connection.execute(f"INSERT INTO {table} BY NAME FROM invented")
            connection.unregister("invented")


def _circuit(model: Transformer, kept: KeptPairs, whole: float) -> dict[str, list[dict[str, Any]]]:
    edges = [
        {"writer": writer, "reader": reader, "port": port, "score_nats": score * whole, "in_circuit": score > 0.25}
        | {"resampled": 0.5, "surely_in": share is not None and share > 0.5, "share": share}
        | ({} if share is None else {"share_low": share - 0.1, "share_high": share + 0.1})
        for writer, reader, port, score, share in EDGES
    ]
    curves = [
        {"edges_by": kind, "draw": draw, "n_edges": n, "fraction": n / 7, "pairs": "judged", "faithfulness": share}
        for n in SIZES
        for kind, draw, share in (("absolute", 0, n / 7), ("random", 0, 0.0), ("random", 1, 0.1))
    ]
    about = {"n_edges": len(EDGES), "n_edges_enough": 3, "faithfulness_enough": 0.91, "n_surely_in": 3}
    tables = {"prompt_edges": edges, "circuit_curves": curves, "prompt_circuits": [about]}
    return tables | {"node_effects": node_rows(model, kept)}


def node_rows(model: Transformer, kept: KeptPairs) -> list[dict[str, Any]]:
    """The means of exact effects over all pairs."""
    noised, restored, n = 0.0, 0.0, 0
    for _, pairs in kept.by_length():
        clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
        both = exact_node_effects(clean, corrupt, pairs)
        noised, restored, n = noised + both[0].sum(1), restored + both[1].sum(1), n + len(pairs)
    shares = {"share": 0.5, "restored_share": 0.4}
    return [
        {"node": str(node), "effect_nats": float(noised[i] / n), "restored_nats": float(restored[i] / n), **shares}
        for i, node in list(enumerate(clean.graph.writers))[1:]
    ]


def only_asked(connection: duckdb.DuckDBPyConnection) -> None:
    """Leave of all that was measured of models what prompt sets asked of them."""
    kept = ("models", "study_models", "prompts", "prompt_scores", "node_effects", "prompt_edges", "circuit_curves")
    query = (
        "SELECT DISTINCT table_name FROM duckdb_columns() JOIN duckdb_tables() USING (table_name)"
        " WHERE column_name = 'model_id' AND NOT list_contains(?, table_name)"
    )
    for (table,) in connection.execute(query, [[*kept, "prompt_circuits"]]).fetchall():
        connection.execute(f"DELETE FROM {table}")
