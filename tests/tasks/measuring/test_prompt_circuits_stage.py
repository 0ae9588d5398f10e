"""The stage that finds circuits on prompts: a planted induction head, random models, sets that can't be measured."""

import pyarrow.parquet as pq
import pytest
from planted import induction_model
from random_models import initial_model
from tiny import tiny_tokens

from headstream.models.prompts.circuits import FRACTIONS
from headstream.tasks.measuring.prompt_circuits import measure_prompt_circuits
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.prompts.prompt_writing import write_prompts
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig
from headstream.tasks.study.analyses.prompts_config import PromptsConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

CONFIG = PromptCircuitsConfig(
    pairs=24, steps=3, exact_pairs=24, drawn_edges=15, random_circuits=2, null_pairs=8, resamples=10
)


def measured(folder, model, sets, config=CONFIG):
    (folder / "prompts").mkdir()
    write_prompts(PromptsConfig(sets=sets), folder / "prompts", lambda fraction: None)
    save_checkpoint(folder, model.float(), 3)
    write_model_card(folder, model, 100)
    heard = []
    others = {"prompts": folder / "prompts"}
    measure_prompt_circuits(config, TrainedModel("m", folder, tiny_tokens(), folder, heard.append, others=others))
    assert heard[-1] == 1
    return folder


def rows_of(folder, table):
    return pq.read_table(folder / f"{table}.parquet").to_pylist()


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    vocabulary = Tokens.open(tiny_tokens()).vocabulary
    own = folder / "own.csv"
    own.write_text("prompt,corrupt,answer,wrong\n" + "the river,the hill, runs, sees\n" * 3)
    return measured(folder, induction_model(vocabulary, 64), [{"set": "repeats"}, {"name": "own", "path": str(own)}])


@pytest.mark.parametrize("table", ["prompts", "prompt_scores", "node_effects", "prompt_edges", "circuit_curves"])
def test_tables_have_their_columns(planted, table):
    found = rows_of(planted, table)
    assert found
    assert set(found[0]) <= set(table_schema(table).names)


def test_the_planted_circuit_is_found_and_does_what_the_model_does(planted):
    (scores,) = [row for row in rows_of(planted, "prompt_scores") if row["prompts"] == "repeats"]
    assert (scores["can_do_it"], scores["accuracy"], scores["accuracy_low"]) == (True, 1, None)
    assert scores["clean_nats"] > 1 > 0.1 > abs(scores["corrupt_nats"])
    edges = {f"{row['writer']} {row['port']} {row['reader']}": row for row in rows_of(planted, "prompt_edges")}
    true = {"embedding V L0H0", "L0H0 K L1H1", "L1H1 in logits"}
    sure = {name for name, row in edges.items() if row["surely_in"]}
    assert true <= sure
    assert all(edges[name]["share"] > 0.01 for name in sure)
    assert all(edges[name]["in_circuit"] and edges[name]["resampled"] == 1 for name in true)
    (whole,) = rows_of(planted, "prompt_circuits")
    assert whole["n_edges_enough"] <= 5
    assert whole["faithfulness_enough"] > 0.9
    assert whole["cmd_absolute"] < 0.1 < 0.4 < whole["cmd_random"]
    assert whole["n_drawn"] == 15
    share = {row["node"]: row["share"] for row in rows_of(planted, "node_effects")}
    assert min(share["L0H0"], share["L1H1"]) > 0.9


def test_curves_are_of_both_halves_beside_random_circuits_and_exchanged_answers(planted):
    curves = rows_of(planted, "circuit_curves")
    kinds = {(row["edges_by"], row["pairs"], row["draw"]) for row in curves}
    assert kinds == {
        ("absolute", "found", 0),
        *((kind, "judged", 0) for kind in ("absolute", "signed", "swapped")),
        ("random", "judged", 0),
        ("random", "judged", 1),
    }
    assert len(curves) == len(kinds) * len(FRACTIONS)
    whole = [row for row in curves if row["fraction"] == 1]
    assert [row["faithfulness"] for row in whole] == pytest.approx([1] * len(whole), abs=1e-3)


def test_a_set_that_is_too_small_says_so_and_keeps_its_pairs(planted):
    (row,) = [row for row in rows_of(planted, "prompt_scores") if row["prompts"] == "own"]
    assert row["why_refused"].endswith("of 1 pairs are left, and 8 are needed") or "8 are needed" in row["why_refused"]
    assert row["can_do_it"] is None
    (pair,) = [row for row in rows_of(planted, "prompts") if row["prompts"] == "own"]
    assert (pair["prompt"], pair["answers"]) == ("the river", [" runs"])


def test_an_untrained_model_is_not_said_to_do_it_and_has_no_circuit(tmp_path):
    vocabulary = Tokens.open(tiny_tokens()).vocabulary
    model = initial_model(n_layers=1, n_heads=2, d_model=16, n_ctx=32, d_vocab=vocabulary)
    folder = measured(tmp_path, model, [{"set": "repeats"}])
    assert [row["can_do_it"] for row in rows_of(folder, "prompt_scores")] == [False]
    assert not (folder / "prompt_circuits.parquet").exists()


def test_gates_that_read_the_stream_are_refused_by_name(tmp_path):
    vocabulary = Tokens.open(tiny_tokens()).vocabulary
    model = initial_model(n_layers=1, n_heads=2, d_model=16, n_ctx=32, d_vocab=vocabulary, gates="dynamic")
    folder = measured(tmp_path, model, [{"set": "repeats"}])
    (row,) = rows_of(folder, "prompt_scores")
    assert row["why_refused"] == "there is no such graph of models with gates = 'dynamic'"


def test_the_same_again_is_the_same(planted, tmp_path):
    vocabulary = Tokens.open(tiny_tokens()).vocabulary
    again = measured(tmp_path, induction_model(vocabulary, 64), [{"set": "repeats"}])
    for table in ("prompt_edges", "circuit_curves"):
        assert rows_of(again, table) == [row for row in rows_of(planted, table) if row["prompts"] == "repeats"]
