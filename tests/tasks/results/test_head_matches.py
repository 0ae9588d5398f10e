"""Matching of heads between seeds: against every matching there is, and through the warehouse's tables."""

from itertools import permutations

import numpy as np
import pytest
from empty_warehouse import empty_warehouse
from scipy.spatial.distance import jensenshannon

from headstream.tasks.results.head_matches import distances, insert_head_matches
from headstream.tasks.results.tables import write_table

QUERIES = [(0, 3), (0, 5), (2, 4)]  # sequence and position


def random_patterns(rng, n_heads, queries=QUERIES, n_layers=2):
    heads = [divmod(i, -(-n_heads // n_layers)) for i in range(n_heads)]
    return {head: {place: rng.dirichlet(np.full(place[1] + 1, 0.3)) for place in queries} for head in heads}


def rows_of(model_id, patterns):
    return [
        {"model_id": model_id, "layer": layer, "head": head, "sequence": place[0], "query": place[1], "weights": [*row]}
        for (layer, head), queries in patterns.items()
        for place, row in queries.items()
    ]


def matched(tmp_path, cells, patterns):
    """Rows of head_matches of a study whose models have such places in its grid."""
    with empty_warehouse() as connection:
        members = [{"study": "s", "model_id": name, "cell": cell} for name, cell in cells.items()]
        rows = [row for name, own in patterns.items() for row in rows_of(name, own)]
        for table, filled in (("study_models", members), ("head_patterns", rows)):
            path = str(write_table(tmp_path, table, filled))
            connection.execute(f"INSERT INTO {table} BY NAME FROM read_parquet(?)", [path])
        insert_head_matches(connection)
        return connection.sql("FROM head_matches ORDER BY ALL").to_arrow_table().to_pylist()


def test_distances_are_those_of_another_implementation():
    rng = np.random.default_rng(0)
    own, others = random_patterns(rng, 4), random_patterns(rng, 3, [*QUERIES, (5, 5)])
    found = distances(own, others)
    for i, p in enumerate(own.values()):
        for j, q in enumerate(others.values()):
            expected = np.mean([jensenshannon(p[place], q[place], base=2) for place in QUERIES])
            assert found[i, j] == pytest.approx(expected)
    assert np.allclose(np.diag(distances(own, own)), 0)


def test_the_best_matching_is_the_best_of_all(tmp_path):
    rng = np.random.default_rng(1)
    one, other = random_patterns(rng, 4, n_layers=1), random_patterns(rng, 4, n_layers=1)
    rows = matched(tmp_path, {"a": "n_heads=2 seed=0", "b": "n_heads=2 seed=1"}, {"a": one, "b": other})
    between, within = distances(one, other), distances(one, one)
    best = min(sum(between[i, j] for i, j in enumerate(order)) for order in permutations(range(4)))
    of_a = [row for row in rows if row["model_id"] == "a"]
    assert sum(row["matched_distance"] for row in of_a) == pytest.approx(best, abs=1e-6)
    assert len({(row["other_layer"], row["other_head"]) for row in of_a}) == 4
    for i, row in enumerate(of_a):
        assert row["nearest_distance"] == pytest.approx(np.delete(within[i], i).min(), abs=1e-6)
        back = next(
            r
            for r in rows
            if r["model_id"] == "b" and (r["layer"], r["head"]) == (row["other_layer"], row["other_head"])
        )
        assert (back["other_layer"], back["other_head"]) == (row["layer"], row["head"])
        assert back["matched_distance"] == row["matched_distance"]


def test_heads_in_another_order_are_matched_with_themselves(tmp_path):
    one = random_patterns(np.random.default_rng(2), 4)
    shuffled = dict(zip(one, [one[head] for head in ((0, 1), (0, 0), (1, 1), (1, 0))], strict=True))
    rows = matched(tmp_path, {"a": "seed=0", "b": "seed=1"}, {"a": one, "b": shuffled})
    found = {(r["layer"], r["head"]): (r["other_layer"], r["other_head"]) for r in rows if r["model_id"] == "a"}
    assert found == {(0, 1): (0, 0), (0, 0): (0, 1), (1, 1): (1, 0), (1, 0): (1, 1)}
    assert all(row["matched_distance"] < 1e-6 for row in rows)


def test_heads_are_held_against_those_of_their_own_layer(tmp_path):
    one = random_patterns(np.random.default_rng(4), 4)
    swapped = dict(zip(one, [one[head] for head in ((1, 0), (1, 1), (0, 0), (0, 1))], strict=True))
    rows = matched(tmp_path, {"a": "seed=0", "b": "seed=1"}, {"a": one, "b": swapped})
    assert all(row["other_layer"] == row["layer"] for row in rows)
    assert all(row["matched_distance"] > 0.1 for row in rows)
    within = distances(one, one)
    nearest = {(r["layer"], r["head"]): r["nearest_distance"] for r in rows if r["model_id"] == "a"}
    assert nearest[0, 0] == nearest[0, 1] == pytest.approx(within[0, 1], abs=1e-6)
    assert nearest[1, 0] == nearest[1, 1] == pytest.approx(within[2, 3], abs=1e-6)


def test_only_models_that_differ_in_their_seed_alone_are_matched(tmp_path):
    rng = np.random.default_rng(3)
    cells = {"a": "n_heads=2 seed=0", "b": "n_heads=4 seed=1", "c": "n_heads=2 seed=1", "d": "n_heads=2 seed=2"}
    patterns = {name: random_patterns(rng, n, n_layers=1) for name, n in (("a", 2), ("b", 4), ("c", 1))}
    rows = matched(tmp_path, cells, patterns)  # nothing is known of d; c has lost a head
    assert {(row["model_id"], row["other_model_id"]) for row in rows} == {("a", "c"), ("c", "a")}
    assert len(rows) == 2
    assert [row["nearest_distance"] is None for row in rows] == [False, True]
    elsewhere = {"a": random_patterns(rng, 2), "c": random_patterns(rng, 2, [(7, 7)])}
    assert matched(tmp_path, cells, elsewhere) == []
    assert matched(tmp_path, {"a": "seed=0"}, {"a": random_patterns(rng, 2)}) == []
