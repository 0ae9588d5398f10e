"""Measure the main views over ten million rows: `python -m benchmarks.many_rows [MILLIONS]`.

Each is asked in turns with a SELECT for the same rows, and columns as costly, over plain DuckDB tables: no keys, no
comments, no views.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import duckdb

from headstream.tasks.results.tables import quoted
from headstream.tasks.results.views import create_tables_and_views
from headstream.tasks.results.warehouse_template import STORAGE_VERSION

MILLIONS = 10.0
TURNS = 5
LAYERS, HEADS, CHECKPOINTS, SEEDS = 12, 12, 14, 5
SCORES = ("induction_random_period", "prefix_matching", "previous_token", "duplicate_token", "bos_attention", "entropy")
NOT_MEASURED = (
    "induction_natural", "positional_offset_without_bos", "positional_share_without_bos", "entropy_without_bos",
    "mean_distance_without_bos", "confidence_without_bos",
)  # fmt: skip
ANTI_INDUCTION = "induction_random_period >= 0.2 AND -induction_copying_logit > 1.96 * induction_copying_logit_sem"

LAST = "(SELECT model_id, max(step) AS step FROM {} GROUP BY model_id)"
PLAIN = {
    "last_heads": f"FROM heads SEMI JOIN {LAST.format('heads')} AS last USING (model_id, step)",
    "head_summary": f"""
        SELECT model_id, name, seed, n_layers, step, layer, head, 'L' || layer || 'H' || head AS label,
            CASE
                WHEN induction_random_period >= 0.2 AND induction_copying_logit > 1.96 * induction_copying_logit_sem
                    THEN 'induction'
                WHEN {ANTI_INDUCTION} THEN 'anti-induction'
                WHEN previous_token >= 0.4 THEN 'previous token'
                WHEN duplicate_token >= 0.3 THEN 'duplicate token'
                WHEN bos_attention >= 0.5 THEN 'BOS'
                ELSE 'other'
            END AS role,
            {", ".join(SCORES)}, {", ".join(NOT_MEASURED)}
        FROM heads
        SEMI JOIN {LAST.format("heads")} AS last USING (model_id, step)
        JOIN models USING (model_id)
        ORDER BY name, seed, model_id, layer, head
    """,
    "learning_curves": """
        SELECT model_id, name, seed, n_layers, step, validation_loss_nats, induction, prefix_matching, previous_token
        FROM evaluations
        JOIN models USING (model_id)
        LEFT JOIN (
            SELECT model_id, step, max(induction_random_period) AS induction, max(prefix_matching) AS prefix_matching,
                max(previous_token) AS previous_token
            FROM heads
            GROUP BY model_id, step
        ) USING (model_id, step)
        ORDER BY name, seed, model_id, step
    """,
    "induction_by_depth": f"""
        WITH best AS (
            SELECT model_id,
                max(induction_random_period) FILTER (NOT coalesce({ANTI_INDUCTION}, false)) AS induction,
                max(previous_token) FILTER (layer = 0) AS previous
            FROM heads
            SEMI JOIN {LAST.format("heads")} AS last USING (model_id, step)
            GROUP BY model_id
        )
        SELECT n_layers, count(*), avg(induction), list(induction ORDER BY seed), avg(previous),
            list(previous ORDER BY seed), avg(repeat_gain_nats), stddev_samp(repeat_gain_nats),
            avg(validation_loss_nats), stddev_samp(validation_loss_nats)
        FROM models
        JOIN best USING (model_id)
        JOIN (FROM evaluations SEMI JOIN {LAST.format("evaluations")} AS last USING (model_id, step)) USING (model_id)
        GROUP BY n_layers
        ORDER BY n_layers
    """,
}
ASKED_OF_TABLES = "SELECT step, layer, avg(prefix_matching) FROM heads GROUP BY ALL ORDER BY ALL"


def fill(connection: duckdb.DuckDBPyConnection, rows: float) -> None:
    """Models with one row a head and checkpoint, so many of them that heads has about that many rows."""
    n_models = round(rows / (LAYERS * HEADS * CHECKPOINTS))
    random = "hash(model_id, step, layer, head, {}) / 2**64"
    scores = ", ".join(f"{random.format(i)} * 0.5 AS {name}" for i, name in enumerate(SCORES))
    connection.execute(f"""
        CREATE TEMP TABLE own AS
        SELECT printf('%dL-s%d-%06d', {LAYERS}, i % {SEEDS}, i) AS model_id, i % {SEEDS} AS seed
        FROM range({n_models}) AS t(i);
        CREATE TEMP TABLE steps AS SELECT 100 * i AS step FROM range({CHECKPOINTS}) AS t(i);
        INSERT INTO studies BY NAME SELECT 'many' AS study;
        INSERT INTO study_models BY NAME SELECT 'many' AS study, model_id, 'seed=' || seed AS cell FROM own;
        INSERT INTO models BY NAME
        SELECT model_id, '{LAYERS}L{HEADS}H' AS name, seed, {LAYERS} AS n_layers, {HEADS} AS n_heads,
            {LAYERS * HEADS} AS total_heads, list_resize([{HEADS}], {LAYERS}, {HEADS}) AS heads_per_layer
        FROM own;
        INSERT INTO evaluations BY NAME
        SELECT model_id, step, step * 4096 AS tokens, hash(model_id, step) / 2**64 AS validation_loss_nats
        FROM own, steps;
        INSERT INTO heads BY NAME
        SELECT model_id, step, layer, head, {scores},
            {random.format(8)} AS induction_copying_logit, 0.1 AS induction_copying_logit_sem
        FROM own, steps, range({LAYERS}) AS l(layer), range({HEADS}) AS h(head)
        ORDER BY model_id, step, layer, head;
    """)


def seconds(connection: duckdb.DuckDBPyConnection, query: str) -> float:
    """How long all rows of an answer take."""
    started = time.perf_counter()
    connection.sql(query).to_arrow_table()
    return time.perf_counter() - started


def main(millions: float = MILLIONS) -> dict[str, str]:
    """Fill a warehouse and plain tables, ask both, and print how long that takes; returns the worst ratio."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        for name in ("warehouse", "plain"):
            options = f"(STORAGE_VERSION {quoted(STORAGE_VERSION)})"
            connection.execute(f"ATTACH {quoted(str(Path(folder) / name))} AS {name} {options}")
        connection.execute("USE warehouse")
        create_tables_and_views(connection)
        fill(connection, millions * 1e6)
        for name in ("models", "evaluations", "heads"):
            connection.execute(f"CREATE TABLE plain.{name} AS FROM warehouse.{name}")
        rows = connection.sql("FROM heads").count("*").fetchall()[0][0]
        print(f"{rows / 1e6:.1f} M rows of heads, median of {TURNS} turns:")
        asked = {"a mean by step and layer": (ASKED_OF_TABLES, ASKED_OF_TABLES)}
        asked |= {f"view {name}": (f"FROM {name}", plain) for name, plain in PLAIN.items()}
        ratios: dict[str, float] = {}
        for what, queries in asked.items():
            taken: tuple[list[float], list[float]] = ([], [])
            for _ in range(TURNS):
                for database, query, times in zip(("warehouse", "plain"), queries, taken, strict=True):
                    connection.execute(f"USE {database}")
                    times.append(seconds(connection, query))
            own, plain = map(median, taken)
            ratios[what] = own / plain
            print(
                f"  {what}: {own:.2f} s, over plain tables {plain:.2f} s, {own / plain:.2f} times as long", flush=True
            )
        worst = max(ratios, key=ratios.__getitem__)
        return {"views": f"{ratios[worst]:.1f} ({worst})"}


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
