"""Planted circuits through the stages and the view that names them: which are found, whole, and which are not there."""

import pytest
import torch
from empty_warehouse import empty_warehouse
from planted import induction_through_values, initial_like, planted_induction, pointer_model, rotated

from calibration.circuits import N_CTX, STAGES, TRIALS
from calibration.measured import Trained, put_in_warehouse, vocabulary
from headstream.models.nodes import Head

# Of trials that differ in sizes alone, the last, of the largest.
LARGEST = {(trial.count.func, *filter(callable, trial.count.args)): trial for trial in TRIALS}.values()


@pytest.mark.parametrize("trial", LARGEST, ids=lambda trial: f"{trial.what}; {trial.tried_on}")
def test_the_first_try_of_each_trial_comes_out_right(trial):
    assert trial.count(1) == (trial.kind == "power")


@pytest.fixture(scope="module")
def sizes():
    return {"d_vocab": vocabulary(), "n_ctx": N_CTX}


@pytest.fixture
def measured():
    """A function that measures a model and gives a warehouse of what was found."""
    with empty_warehouse() as connection:

        def measure(model, keep_initial=True):
            put_in_warehouse(connection, "m", Trained(initial_like(model) if keep_initial else None, model), STAGES)
            return connection

        yield measure


def rows_of(connection, query):
    return connection.sql(query).to_arrow_table().to_pylist()


def circuit_of(connection):
    (row,) = rows_of(connection, "FROM induction_circuits WHERE is_strongest")
    return row


def roles(connection):
    return dict(connection.execute("SELECT label, role FROM head_summary").fetchall())


def test_a_circuit_is_found_in_a_model_whose_initialisation_nobody_kept(measured, sizes):
    connection = measured(rotated(planted_induction((3, 3), (1, 0), ((0, 2),), **sizes), seed=1), keep_initial=False)
    found = circuit_of(connection)
    assert (found["found"], found["reader"], found["writers"]) == (True, "L1H0", ["L0H2"])
    assert rows_of(connection, "SELECT DISTINCT initial_score, initial_chance FROM compositions") == [
        {"initial_score": None, "initial_chance": None}
    ]


@pytest.mark.parametrize(
    ("heads_per_layer", "reader", "writers"),
    [((3, 3), (1, 0), ((0, 2),)), ((4, 2), (1, 0), ((0, 0), (0, 2), (0, 3))), ((2, 2, 2), (2, 1), ((0, 0), (1, 1)))],
)
def test_all_writers_of_a_circuit_are_named(measured, sizes, heads_per_layer, reader, writers):
    model = rotated(planted_induction(heads_per_layer, reader, writers, **sizes), seed=1)
    found = circuit_of(measured(model))
    assert found["found"]
    assert found["is_complete"]
    assert found["kind"] == "K"
    assert found["reader"] == str(Head(*reader))
    assert set(found["writers"]) == {str(Head(*writer)) for writer in writers}
    assert found["n_writers"] == len(writers)
    assert found["z_rank"] == 1
    assert found["matching_eigenvalues"] > 0.9
    assert found["score_share"] > 0.9
    assert (found["formed_step"], found["formed_tokens"]) == (1, 100)
    assert found["prefix_matching"] > 0.7
    assert found["prefix_matching_without"] < 0.3
    alone = found["prefix_matching_without_each"]
    assert all((without < 0.3) == (len(writers) == 1) for without in alone), "of several, any one can go"


def test_a_sharper_previous_token_head_that_nobody_reads_is_not_named(measured, sizes):
    model = rotated(planted_induction((3, 3), (1, 1), ((0, 2),), decoys=((0, 0),), **sizes), seed=2)
    connection = measured(model)
    found = circuit_of(connection)
    (sharpest,) = connection.execute("SELECT arg_max(label, previous_token) FROM head_summary").fetchone()
    assert sharpest == "L0H0"
    assert found["found"]
    assert found["writers"] == ["L0H2"]


def test_an_anti_induction_head_is_called_so(measured, sizes):
    connection = measured(rotated(planted_induction((2, 3), (1, 2), ((0, 0),), sign=-1.0, **sizes), seed=3))
    assert roles(connection)["L1H2"] == "anti-induction"
    assert "induction" not in roles(connection).values()
    found = circuit_of(connection)
    assert (found["reader"], found["reader_role"], found["writers"]) == ("L1H2", "anti-induction", ["L0H0"])
    assert found["depends"]
    assert found["found"] is False
    (gain,) = connection.execute("SELECT arg_max(repeat_gain_nats, step) FROM evaluations").fetchone()
    assert gain < -1
    (logit,) = connection.execute(
        "SELECT induction_copying_logit FROM heads WHERE step = 1 AND (layer, head) = (1, 2)"
    ).fetchone()
    assert logit < -5


def test_two_induction_heads_are_two_circuits(measured, sizes):
    model = planted_induction((3, 3), (1, 0), ((0, 1),), **sizes)
    a = model.layers[1].attention
    for weight in (a.W_Q, a.W_K, a.W_V, a.W_O):
        weight[2] = weight[0]
    a.W_Q[2] *= 0.1  # the weaker one
    found = rows_of(measured(rotated(model, seed=4)), "FROM induction_circuits ORDER BY reader")
    assert [(row["reader"], row["is_strongest"], row["found"]) for row in found] == [
        ("L1H0", True, True),
        ("L1H2", False, True),
    ]
    assert {tuple(row["writers"]) for row in found} == {("L0H1",)}


def test_a_pointer_circuit_depends_on_its_writer(measured, sizes):
    found = circuit_of(measured(rotated(pointer_model((2, 2, 2), (2, 1), ((1, 0),), **sizes), seed=5)))
    assert (found["found"], found["kind"], found["reader"], found["writers"]) == (True, "Q", "L2H1", ["L1H0"])
    assert found["prefix_matching_without"] < found["prefix_matching"] / 2


def test_what_is_copied_through_another_head_is_no_writer(measured, sizes):
    model = rotated(induction_through_values((3, 3), (1, 0), (0, 2), (0, 0), **sizes), seed=6)
    assert circuit_of(measured(model))["writers"] == ["L0H2"]


def test_a_head_that_attends_but_raises_nothing_is_no_induction_head(measured, sizes):
    model = planted_induction((2, 2), (1, 1), ((0, 0),), **sizes)
    model.layers[1].attention.W_O[1] = 0
    connection = measured(rotated(model, seed=7))
    assert not {"induction", "anti-induction"} & set(roles(connection).values())
    assert circuit_of(connection)["found"] is False


def test_one_layer_has_no_circuit(measured, sizes):
    found = circuit_of(measured(planted_induction((2,), (0, 1), (), **sizes)))
    assert found["found"] is False
    assert (found["n_earlier"], found["writers"], found["kind"]) == (0, None, None)


def test_rotating_changes_nothing(sizes):
    model = planted_induction((3, 3), (1, 0), ((0, 2),), **sizes)
    tokens = torch.randint(1, sizes["d_vocab"], (2, 20), generator=torch.Generator().manual_seed(0))
    before = model(tokens)
    torch.testing.assert_close(rotated(model, seed=8)(tokens), before, atol=1e-3, rtol=1e-3)
