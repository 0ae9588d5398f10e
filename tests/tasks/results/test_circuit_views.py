"""Views that compare circuits of behaviours: over seeds, checkpoints, prompt sets and kinds of model, by hand."""

import duckdb
import pytest
from empty_warehouse import empty_warehouse
from invented_study import STEPS, Model, write_measurements
from scipy import stats

from headstream.tasks.results.tables import write_table

ONE, OTHER = "2L2H-s0", "2L2H-s1"
CIRCUIT = [("L1H0", "logits", "in"), ("L0H0", "L1H0", "K"), ("embedding", "L0H0", "V")]
SWAPPED = [("L1H1", "logits", "in"), ("L0H1", "L1H1", "K"), ("embedding", "L0H1", "V")]  # the same by other heads


@pytest.fixture
def asked(tmp_path):
    """Fills tables of an empty warehouse, and asks it."""
    with empty_warehouse() as connection:

        def ask(query: str, **tables):
            for table, rows in tables.items():
                file = str(write_table(tmp_path, table, rows))
                connection.execute(f"INSERT INTO {table} BY NAME FROM read_parquet(?)", [file])
            found = connection.execute(query)
            names = [name for name, *_ in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

        yield ask


def seeds(circuits, prompts="repeats"):
    """Two seeds of one kind of model, whose heads are matched with the other of their layer."""
    models = [{"model_id": name, "name": "2L2H", "seed": seed, "n_layers": 2} for seed, name in enumerate((ONE, OTHER))]
    places = [(layer, head) for layer in (0, 1) for head in (0, 1)]
    return {
        "models": models,
        "heads": [{"model_id": m["model_id"], "step": 9, "layer": i, "head": j} for m in models for i, j in places],
        "head_matches": [
            {"model_id": one, "other_model_id": other, "layer": i, "head": j, "other_layer": i, "other_head": 1 - j}
            for one, other in ((ONE, OTHER), (OTHER, ONE))
            for i, j in places
        ],
        "prompt_circuits": [{"model_id": name, "prompts": prompts} for name in (ONE, OTHER)],
        "prompt_edges": [
            {"model_id": m["model_id"], "prompts": prompts, "in_circuit": True}
            | dict(zip(("writer", "reader", "port"), edge, strict=True))
            for m, edges in zip(models, circuits, strict=True)
            for edge in edges
        ],
    }


def test_the_same_circuit_by_other_heads_is_the_same_once_heads_are_matched(asked):
    effects = [("L0H0", "L0H1", 0.9), ("L0H1", "L0H0", 0.0), ("L1H0", "L1H1", 1.0), ("L1H1", "L1H0", 0.1)]
    nodes = [
        {"model_id": name, "prompts": "repeats", "node": effect[place], "share": effect[2]}
        for place, name in enumerate((ONE, OTHER))
        for effect in effects
    ]
    (row,) = asked("FROM circuits_over_seeds", **seeds((CIRCUIT, SWAPPED)), node_effects=nodes)
    assert (row["model_id"], row["other_model_id"], row["seed"], row["other_seed"]) == (ONE, OTHER, 0, 1)
    assert (row["n_edges"], row["n_other_edges"], row["n_shared"], row["jaccard"]) == (3, 3, 3, 1)
    assert row["effects_correlation"] == pytest.approx(1)
    # Two heads in each of two layers: both layers right, both wrong, or one of them, which leaves one edge of five.
    assert row["jaccard_random"] == pytest.approx((1 + 0 + 1 / 5 + 1 / 5) / 4, abs=0.1)
    assert row["chance"] == pytest.approx(1 / 4, abs=0.1)


def test_circuits_that_share_one_edge_of_five(asked):
    other = [SWAPPED[0], ("embedding", "L1H1", "V"), ("embedding", "logits", "in")]
    (row,) = asked("FROM circuits_over_seeds", **seeds((CIRCUIT, other)))
    assert (row["n_shared"], row["jaccard"], row["effects_correlation"]) == (1, 1 / 5, None)


def test_models_whose_heads_share_keys_are_not_compared_by_heads(asked):
    grouped = [*CIRCUIT, ("embedding", "L0G0", "K")]
    assert asked("FROM circuits_over_seeds", **seeds((grouped, SWAPPED))) == []


def test_halves_are_passed_where_values_stay_above_them(asked):
    steps = {0: 0, 1: 100, 2: 200, 3: 300, 4: 400}

    def over_steps(column, values, **fields):
        about = {"model_id": ONE, "prompts": "repeats"} | fields
        return [about | {"step": step, column: value} for step, value in zip(steps, values, strict=True)]

    scores = over_steps("difference_nats", [0, 3, 1, 2, 4])  # above half, below it, then at it
    for row, can in zip(scores, (False, True, False, True, True), strict=True):
        row["can_do_it"] = can
    edge = {"writer": "L0H0", "reader": "L1H0", "port": "K"}
    rows = asked(
        "FROM circuit_formation",
        models=[{"model_id": ONE, "name": "2L2H", "seed": 0, "n_layers": 2}],
        evaluations=[{"model_id": ONE, "step": step, "tokens": tokens} for step, tokens in steps.items()],
        prompt_scores=scores,
        circuit_checkpoints=over_steps("circuit_nats", [0, 0, 0, 0, 3]),
        edge_checkpoints=over_steps("score_nats", [-1, -0.4, -0.6, -0.7, -1], **edge),
    )
    found = [(row["followed"], row["last_nats"], row["below_half_tokens"], row["half_tokens"]) for row in rows]
    assert found == [("the model", 4, 200, 300), ("its circuit", 3, 300, 400), ("an edge", -1, 100, 200)]
    assert {row["could_tokens"] for row in rows} == {300}
    assert [row["writer"] for row in rows] == [None, None, "L0H0"]


def test_sets_share_edges_over_those_that_either_has(asked):
    edges = [  # of two sets: whether each edge is in its circuit, and its exact share
        ("L1H0", (True, 0.9), (True, 1.0)),
        ("L1H1", (True, 0.5), (False, 0.02)),
        ("L0H0", (False, 0.3), (True, 0.4)),
        ("L0H1", (False, -0.1), (True, 0.3)),
        ("embedding", None, (True, None)),
    ]
    rows = [
        {"model_id": ONE, "prompts": name, "writer": writer, "reader": "logits", "port": "in"}
        | {"in_circuit": found[0], "share": found[1], "surely_in": (found[1] or 0) > 0.2}
        | ({} if found[1] is None else {"share_low": found[1] - 0.1, "share_high": found[1] + 0.1})
        for writer, *of_sets in edges
        for name, found in zip("ab", of_sets, strict=True)
        if found
    ]
    nodes = [
        {"model_id": ONE, "prompts": name, "node": f"L0H{head}", "share": share}
        for name, shares in (("a", (0.1, 0.2, 0.4)), ("b", (0.4, 0.3, 0.1)))
        for head, share in enumerate(shares)
    ]
    of_a, of_b = asked(
        "FROM circuits_over_sets",
        models=[{"model_id": ONE, "name": "2L2H", "seed": 0, "n_layers": 2}],
        prompt_circuits=[{"model_id": ONE, "prompts": name} for name in "ab"],
        prompt_edges=rows,
        node_effects=nodes,
    )
    assert (of_a["prompts"], of_a["other"], of_a["n_edges"], of_a["n_other_edges"]) == ("a", "b", 2, 4)
    assert (of_a["n_shared"], of_a["jaccard"]) == (of_b["n_shared"], of_b["jaccard"]) == (1, 1 / 5)
    assert (of_a["n_only_other"], of_a["n_patched"], of_a["n_needed"]) == (3, 2, 1)
    assert [of_a[f"largest_{end}"] for end in ("low", "share", "high")] == pytest.approx([0.2, 0.3, 0.4])
    assert (of_b["n_only_other"], of_b["n_needed"], of_b["largest_share"]) == (1, 0, 0.02)
    assert [row["effects_correlation"] for row in (of_a, of_b)] == pytest.approx([-1, -1])


def test_kinds_of_model_have_means_over_the_seeds_that_can(tmp_path):
    models = [Model(seed=seed) for seed in range(4)]
    warehouse = write_measurements(tmp_path / "w.duckdb", *models)
    with duckdb.connect(warehouse) as connection:
        for model, n in zip(models, (4, 6, 8, None), strict=True):
            about = (model.model_id, "repeats", STEPS[-1], n is not None, 0.8 if n else 0.4)
            columns = "model_id, prompts, step, can_do_it, accuracy"
            connection.execute(f"INSERT INTO prompt_scores ({columns}) VALUES (?, ?, ?, ?, ?)", about)
            if n:
                columns = "model_id, prompts, n_edges, n_edges_enough, cmd_absolute, cmd_random"
                found = (model.model_id, "repeats", 80, n, n / 100, 0.5)
                connection.execute(f"INSERT INTO prompt_circuits ({columns}) VALUES (?, ?, ?, ?, ?, ?)", found)
        names = [name for name, *_ in connection.execute("DESCRIBE circuits_by_group").fetchall()]
        (row,) = connection.execute("FROM circuits_by_group").fetchall()
    found = dict(zip(names, row, strict=True))
    assert (found["n_models"], found["n_can"], found["edges_enough"]) == (4, 3, 6)
    assert found["edges_enough_values"] == [4, 6, 8]
    assert found["edges_enough_ci95"] == pytest.approx(stats.t.ppf(0.975, 2) * 2 / 3**0.5, rel=1e-3)
    assert (found["accuracy"], found["cmd"]) == (pytest.approx(0.7), pytest.approx(0.06))
    assert found["edges_share"] == pytest.approx(6 / 80)
