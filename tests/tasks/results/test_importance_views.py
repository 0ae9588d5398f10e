"""Views of pruning, importance, redundancy and probes, on numbers that can be worked out on paper."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import sqrt

import duckdb
import numpy as np
import pytest
from scipy.stats import spearmanr

from headstream.tasks.measuring.trained_model import Rows
from headstream.tasks.results.tables import write_table
from headstream.tasks.results.views import create_tables_and_views


class Database:
    """An empty warehouse in memory that is easy to fill and to ask."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder) -> None:
        self._connection, self._folder = connection, folder

    def fill(self, table: str, rows: Rows) -> None:
        file = write_table(self._folder, table, rows)
        self._connection.execute(f"INSERT INTO {table} BY NAME FROM read_parquet(?)", [str(file)])

    def ask(self, query: str) -> list[tuple]:
        return self._connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        yield connection


@pytest.fixture
def database(connection, tmp_path) -> Iterator[Database]:
    connection.begin()
    yield Database(connection, tmp_path)
    connection.rollback()


def add_models(database: Database, n_heads: Sequence[int] = (4,), n_seeds: int = 2) -> None:
    """Models of one layer, `4-0` with four heads and seed 0, in the study s."""
    models = list(product(n_heads, range(n_seeds)))
    database.fill(
        "models",
        [
            {"model_id": f"{heads}-{seed}", "name": f"1L{heads}H", "n_layers": 1, "total_heads": heads, "seed": seed}
            for heads, seed in models
        ],
    )
    database.fill(
        "study_models",
        [
            {"study": "s", "model_id": f"{heads}-{seed}", "cell": f"n_heads={heads} d_model=8 seed={seed}"}
            for heads, seed in models
        ],
    )


def curve(
    model_id: str, increases: Sequence[float | None], procedure="iterative", order="ablation_mean", draw=0
) -> list:
    """Rows of `pruning`: a relative increase for each number of heads, from 0."""
    return [
        {"model_id": model_id, "procedure": procedure, "order_method": order, "draw": draw, "n_pruned": n}
        | {"relative_increase": increase, "loss_nats": None if increase is None else 2 + 2 * increase}
        for n, increase in enumerate(increases)
    ]


# Pruning


def test_curves_have_error_bars_over_seeds(database):
    """Draws of random orders of one model are not independent: the model counts once, with their mean."""
    add_models(database, n_seeds=3)
    rows = [*curve("4-0", [0, 0.01]), *curve("4-1", [0, 0.03]), *curve("4-2", [0, 0.02])]
    for model_id, increases in (("4-0", (0.01, 0.02)), ("4-1", (0.03, 0.06)), ("4-2", (0.03, 0.03))):
        for draw, increase in enumerate(increases):
            rows += curve(model_id, [0, increase], "random", "random", draw)
    database.fill("pruning", rows)
    iterative, random = database.ask(
        "SELECT n_models, n_curves, relative_increase_mean, relative_increase_ci95, relative_increase_lowest,"
        " relative_increase_highest, loss_nats_mean FROM pruning_curve WHERE n_pruned = 1 ORDER BY procedure"
    )
    # sd of 0.01, 0.02 and 0.03: 0.01; of the draws' means 0.015, 0.045 and 0.03: 0.015
    assert iterative == pytest.approx((3, 3, 0.02, 4.3027 * 0.01 / sqrt(3), 0.01, 0.03, 2.04), abs=1e-5)
    assert random == pytest.approx((3, 6, 0.03, 4.3027 * 0.015 / sqrt(3), 0.01, 0.06, 2.06), abs=1e-5)


def test_two_seeds_have_no_error_bar(database):
    add_models(database)
    database.fill("pruning", [*curve("4-0", [0, 0.01]), *curve("4-1", [0, 0.02])])
    assert database.ask("SELECT n_models, relative_increase_ci95, loss_nats_ci95 FROM pruning_curve LIMIT 1") == [
        (2, None, None)
    ]


def test_the_most_heads_under_a_bar_can_go(database):
    add_models(database)
    rows = [
        *curve("4-0", [0, 0.02, 0.0099, 0.01, 0.05]),  # higher with one head less; the bar itself is too much
        *curve("4-0", [0, None, 0.04], "one_shot", "lrp"),
        *curve("4-0", [None, 0.2], "gates", "gate"),  # to prune none is not measured, and costs nothing
        *curve("4-0", [None, None], "iterative_retrain", "michel_paper"),
        *curve("4-1", [0, 0.001], "random", "random", 0),
        *curve("4-1", [0, 0.001, 0.04, -0.01], "random", "random", 1),
    ]
    database.fill("pruning", rows)
    found = database.ask(
        "SELECT model_id, procedure, n_orders, within_1_percent, within_5_percent, fraction_within_1_percent,"
        " fraction_within_5_percent FROM prunable_heads ORDER BY ALL"
    )
    assert found == [
        ("4-0", "gates", 1, 0, 0, 0, 0),
        ("4-0", "iterative", 1, 2, 3, 0.5, 0.75),
        ("4-0", "one_shot", 1, 0, 2, 0, 0.5),
        ("4-1", "random", 2, 2, 2, 0.5, 0.5),
    ]


def test_groups_have_the_counts_of_their_seeds(database):
    add_models(database)
    rows = [*curve("4-0", [0, 0]), *curve("4-1", [0, 0, 0, 0])]
    for order in ("lrp", "ablation_mean"):
        rows += curve("4-0", [0, 0, 0], "one_shot", order)
    for order in ("michel_paper", "lrp"):
        rows += curve("4-0", [0, 0, 0], "iterative_retrain", order)
    database.fill("pruning", rows)
    found = database.ask(
        "SELECT procedure, order_method, n_models, within_1_percent_median, within_1_percent_values,"
        " fraction_within_5_percent_median FROM prunable_heads_by_group WHERE stands_for_procedure ORDER BY procedure"
    )
    assert found == [
        ("iterative", "ablation_mean", 2, 2, [1, 3], 0.5),
        ("iterative_retrain", "lrp", 1, 2, [2], 0.5),
        ("one_shot", "ablation_mean", 1, 2, [2], 0.5),
    ]


def test_heads_that_matter_are_counted_for_each_number_of_heads(database):
    add_models(database, n_heads=(1, 2, 4))
    database.fill("models", [{"model_id": "none", "name": "0L", "n_layers": 0, "total_heads": 0, "seed": 0}])
    database.fill("study_models", [{"study": "s", "model_id": "none", "cell": "n_heads=0 d_model=8 seed=0"}])
    losses = {1: 3.0, 2: 2.5, 4: 2.25}
    database.fill(
        "evaluations",
        [
            {"model_id": f"{heads}-{seed}", "step": 9, "validation_loss_nats": loss}
            for heads, loss in losses.items()
            for seed in (0, 1)
        ],
    )
    database.fill("pruning", [*curve("4-0", [0, 0, 0.02]), *curve("4-0", [0, 0.005], "random", "random")])
    found = database.ask(
        "SELECT setting, label, total_heads, n_head_counts, n_models, validation_loss_nats_mean,"
        " within_1_percent_median, within_5_percent_median, random_within_1_percent_median FROM heads_that_matter"
    )
    assert found == [
        ("d_model=8", "1L1H", 1, 3, 2, 3.0, None, None, None),
        ("d_model=8", "1L2H", 2, 3, 2, 2.5, None, None, None),
        ("d_model=8", "1L4H", 4, 3, 2, 2.25, 1, 2, 1),
    ]


# Importance


def scores(database: Database, **methods: Sequence[float | None]) -> None:
    """Fill `importance` of model 4-0 with a score a head."""
    database.fill(
        "importance",
        [
            {"model_id": "4-0", "layer": k // 4, "head": k % 4, "method": method, "score": score}
            for method, of_heads in methods.items()
            for k, score in enumerate(of_heads)
        ],
    )


def agreement(database: Database) -> dict[str, tuple]:
    return {m: row for m, *row in database.ask("SELECT method, n_heads, spearman FROM importance_agreement")}


def test_agreement_is_a_rank_correlation(database):
    scores(
        database,
        ablation_mean=[0.1, 0.2, 0.3, 40.0],
        swapped=[1, 3, 2, 4],  # 1 - 6 * 2 / (4 * 15)
        opposed=[4, 3, 2, 1],
        tied=[1, 1, 2, 3],  # ranks 1.5, 1.5, 3, 4
        constant=[7, 7, 7, 7],
        partly=[1, None, 3, 2],  # ranks 1, 3, 2 against 1, 2, 3
        rare=[1, None, None, 2],
    )
    assert agreement(database) == {
        "ablation_mean": [4, pytest.approx(1)],
        "swapped": [4, pytest.approx(0.8)],
        "opposed": [4, pytest.approx(-1)],
        "tied": [4, pytest.approx(4.5 / sqrt(4.5 * 5))],
        "constant": [4, None],
        "partly": [3, pytest.approx(0.5)],
        "rare": [2, None],
    }


def test_agreement_is_that_of_scipy(database):
    rng = np.random.default_rng(0)
    drawn = {name: rng.integers(5, size=11).tolist() for name in ("ablation_mean", "a", "b", "c")}
    scores(database, **drawn)
    for method, (_, spearman) in agreement(database).items():
        assert spearman == pytest.approx(spearmanr(drawn[method], drawn["ablation_mean"]).statistic)


def test_without_ablation_there_is_no_agreement(database):
    scores(database, lrp=[1, 2, 3])
    assert agreement(database) == {}


# Redundancy


def test_pairs_that_were_not_tried_are_not_counted(database):
    def pair(model_id: str, first: int, second: int, distance: float | None, is_redundant: bool | None) -> dict:
        heads = {"first_layer": 0, "first_head": first, "second_layer": 1, "second_head": second}
        return {"model_id": model_id, **heads, "jensen_shannon_distance": distance, "is_redundant": is_redundant}

    add_models(database)
    database.fill(
        "head_similarity",
        [
            pair("4-0", 0, 0, 0.5, True),
            pair("4-0", 0, 1, 0.25, False),
            pair("4-0", 0, 2, 0.25, False),
            pair("4-0", 0, 3, None, None),
            pair("4-1", 0, 0, None, None),
        ],
    )
    found = database.ask(
        "SELECT model_id, n_pairs, n_tried, n_redundant, fraction_redundant, nearest_distance, nearest_pair"
        " FROM redundant_pairs"
    )
    assert found == [
        ("4-0", 4, 3, 1, pytest.approx(1 / 3), 0.25, "L0H0 and L1H1"),
        ("4-1", 1, 0, None, None, None, None),
    ]


# Probes


def test_the_best_head_is_chosen_on_other_text_and_stands_beside_the_best_place_in_the_stream(database):
    def probe(task: str, site: str, head: int | None, gain: float | None, selected: float | None) -> dict:
        place = {"model_id": "4-0", "task": task, "site": site, "layer": 0, "head": head}
        found = {} if gain is None else {"accuracy": 0.5 + gain, "gain": gain, "gain_low": gain - 0.1}
        return {**place, **found, "majority_accuracy": 0.4, "selection_gain": selected}

    add_models(database, n_seeds=1)
    database.fill(
        "probes",
        [
            probe("a", "L0H0", 0, 0.3, -0.1),
            probe("a", "L0H1", 1, 0.2, 0.2),
            probe("a", "L0H2", 2, 0.25, 0.2),
            probe("a", "R0", None, 0.4, 0.1),
            probe("a", "R1", None, 0.3, 0.3),
            probe("b", "L0H0", 0, None, None),
            probe("b", "R0", None, 0.1, 0.0),
        ],
    )
    found = database.ask(
        "SELECT task, majority_accuracy, best_head, head_accuracy, head_gain, head_gain_low, best_stream,"
        " stream_accuracy, stream_gain FROM probe_summary"
    )
    assert found == [
        ("a", 0.4, "L0H1", 0.7, 0.2, 0.1, "R1", 0.8, 0.3),
        ("b", 0.4, None, None, None, None, "R0", 0.6, 0.1),
    ]
