"""Circuits compared over checkpoints and between sets: a planted induction head, there from some checkpoint on."""

import pyarrow.parquet as pq
import pytest
import torch
from planted import induction_model
from tiny import tiny_tokens

from headstream.models.prompts.exact_effects import exact_edge_effects
from headstream.models.prompts.patched_runs import base_run
from headstream.tasks.measuring.circuit_formation import checkpoints_followed
from headstream.tasks.measuring.circuits_between_sets import FoundCircuit, drop_rows
from headstream.tasks.measuring.measured_pairs import MeasuredPairs
from headstream.tasks.measuring.prompt_circuits import measure_prompt_circuits
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.prompts.asked_pairs import kept_pairs, log_odds
from headstream.tasks.prompts.prompt_writing import write_prompts
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.prompt_circuits_config import COMPARED, PromptCircuitsConfig
from headstream.tasks.study.analyses.prompts_config import PromptsConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

CONFIG = PromptCircuitsConfig(
    pairs=8, steps=2, exact_pairs=8, drawn_edges=1, random_circuits=1, null_pairs=1, resamples=2
)
STEPS = (0, 1, 2)  # of which the last two have the circuit
TRUE = {("embedding", "L0H0", "V"), ("L0H0", "L1H1", "K"), ("L1H1", "logits", "in")}


def planted():
    return induction_model(Tokens.open(tiny_tokens()).vocabulary, 64).float()


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the stage writes of two sets that one circuit does; at early checkpoints its first head writes nothing."""
    folder = tmp_path_factory.mktemp("formed")
    (folder / "prompts").mkdir()
    four = ("abcd", "bcde", "cdhl", "lmno", "mnor", "norv", "rvwa", "vwab")
    pairs = [f"{a}{b}{c}{a},{d}{b}{c}{a},{b},{c}" for a, b, c, d in four]
    own = folder / "letters.csv"
    own.write_text("\n".join(["prompt,corrupt,answer,wrong", *pairs]))
    sets = [{"set": "repeats"}, {"name": "letters", "path": str(own)}]
    write_prompts(PromptsConfig(sets=sets), folder / "prompts", lambda fraction: None)
    for step in STEPS:
        model = planted()
        if step == 0:
            model.layers[0].attention.W_O.data.zero_()
        save_checkpoint(folder, model, step)
    write_model_card(folder, model, 100)
    trained = TrainedModel("m", folder, tiny_tokens(), folder, others={"prompts": folder / "prompts"})
    measure_prompt_circuits(CONFIG, trained)
    return folder


def rows_of(folder, table):
    return pq.read_table(folder / f"{table}.parquet").to_pylist()


@pytest.mark.parametrize("table", COMPARED)
def test_tables_have_their_columns(found, table):
    rows = rows_of(found, table)
    assert rows
    assert set(rows[0]) == set(table_schema(table).names)


def test_a_circuit_forms_where_its_head_does(found):
    made = {row["step"]: row for row in rows_of(found, "circuit_checkpoints") if row["prompts"] == "repeats"}
    assert sorted(made) == list(STEPS)
    assert [abs(made[step]["circuit_nats"]) < 1e-3 for step in STEPS] == [True, False, False]
    assert made[1] == made[2] | {"step": 1}
    (whole,) = [row for row in rows_of(found, "prompt_circuits") if row["prompts"] == "repeats"]
    assert made[2]["circuit_nats"] / made[2]["difference_nats"] == pytest.approx(whole["faithfulness_enough"], rel=1e-5)
    assert made[2]["circuit_low_nats"] < made[2]["circuit_nats"] < made[2]["circuit_high_nats"]


def test_scores_of_its_edges_are_those_of_each_checkpoint(found):
    rows = [row for row in rows_of(found, "edge_checkpoints") if row["prompts"] == "repeats"]
    scores = {(row["step"], row["writer"], row["reader"], row["port"]): row["score_nats"] for row in rows}
    assert {edge[1:] for edge in scores} >= TRUE
    last = {
        (row["writer"], row["reader"], row["port"]): row["score_nats"]
        for row in rows_of(found, "prompt_edges")
        if row["prompts"] == "repeats"
    }
    for edge in TRUE:
        assert scores[2, *edge] == pytest.approx(last[edge], rel=1e-4)  # all pairs are patched here
        assert scores[1, *edge] == scores[2, *edge]
    assert abs(scores[0, "L0H0", "L1H1", "K"]) < 1e-3 * scores[2, "L0H0", "L1H1", "K"]


def test_sets_that_one_circuit_does_share_it(found):
    rows = {(row["prompts"], row["corrupted"]): row for row in rows_of(found, "circuit_drops")}
    assert len(rows) == 4
    for name in ("repeats", "letters"):
        own = rows[name, name]
        assert own["n_shared"] == own["n_corrupted"] == own["n_edges"]
        assert own["drop_share"] == pytest.approx(1, abs=0.1)
    across = rows["repeats", "letters"]
    assert across["n_shared"] >= len(TRUE) - 1
    assert across["n_corrupted"] == across["n_edges"] - across["n_shared"]
    assert abs(across["drop_share"]) < 0.1


def test_what_one_edge_costs_is_its_exact_effect():
    tokens, model = Tokens.open(tiny_tokens()), planted()
    kept = kept_pairs("repeats", (), tokens, 64, 8, 0)
    own = MeasuredPairs(model, kept, log_odds(model, kept), torch.arange(8))
    edges = own.graph.edges
    chosen = next(i for i, edge in enumerate(edges) if tuple(map(str, edge)) == ("L0H0", "L1H1", "K"))
    other = next(i for i, edge in enumerate(edges) if tuple(map(str, edge)) == ("embedding", "L1H0", "Q"))
    rows = [
        [{"writer": str(e.writer), "reader": str(e.reader), "port": e.port, "in_circuit": i in circuit}
         for i, e in enumerate(edges)]
        for circuit in ({chosen, other}, {other})
    ]  # fmt: skip
    found = drop_rows({"whole": FoundCircuit(own, rows[0]), "part": FoundCircuit(own, rows[1])}, 0)
    drops = {(row["prompts"], row["corrupted"]): row for row in found}
    exact, whole = [], []
    for places, pairs in own.batches(torch.arange(1, 8, 2)):
        runs = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
        exact += exact_edge_effects(*runs, pairs, [chosen])[0].tolist()
        whole += own.whole[places].tolist()
    row = drops["part", "whole"]
    assert (row["n_edges"], row["n_shared"], row["n_corrupted"]) == (2, 1, 1)
    assert row["drop_share"] == pytest.approx(sum(exact) / sum(whole), rel=1e-4)
    assert row["drop_low"] < row["drop_share"] < row["drop_high"] or row["drop_low"] == row["drop_high"]
    nothing = drops["whole", "part"]
    assert (nothing["n_corrupted"], nothing["drop_share"], nothing["drop_random"]) == (0, 0, 0)


def test_checkpoints_are_followed_at_both_ends_of_the_largest_changes():
    differences = {0: 0.0, 3: 0.1, 5: 0.1, 9: 1.1, 20: 1.4, 40: 1.4}
    assert checkpoints_followed(differences, 4) == [0, 5, 9, 40]
    assert checkpoints_followed(differences, 5) == [0, 5, 9, 20, 40]
    assert checkpoints_followed(differences, 16) == [0, 3, 5, 9, 20, 40]
    assert checkpoints_followed(differences, 2) == [0, 40]
    assert checkpoints_followed({0: 0.0, 3: 1.0}, 16) == [0, 3]
    assert checkpoints_followed({7: 1.0}, 16) == []
    assert checkpoints_followed(differences, 0) == []


def test_one_set_alone_is_compared_with_none():
    assert drop_rows({}, 0) == []
