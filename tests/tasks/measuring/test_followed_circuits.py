"""The formation of a circuit over checkpoints: a planted induction head, there from some checkpoint on."""

import pytest
import torch
from planted import induction_model
from tiny import tiny_tokens

from headstream.models.prompts.circuits import faithfulness, judge
from headstream.models.prompts.exact_effects import exact_edge_effects
from headstream.models.prompts.patched_runs import base_run
from headstream.tasks.measuring.followed_circuits import checkpoints_followed, circuit_of, formation_tables
from headstream.tasks.measuring.measured_pairs import MeasuredPairs
from headstream.tasks.prompts.asked_pairs import kept_pairs, log_odds
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.prompt_circuits_config import FORMATION, PromptCircuitsConfig
from headstream.tasks.text.token_reading import Tokens

N_PAIRS = 8
CONFIG = PromptCircuitsConfig(steps=2, exact_pairs=N_PAIRS)
TRUE = {("embedding", "L0H0", "V"), ("L0H0", "L1H1", "K"), ("L1H1", "logits", "in")}


@pytest.fixture(scope="module")
def formed():
    """A planted circuit on pairs, the rows about its edges, and what is followed: at first its first head is silent."""
    tokens = Tokens.open(tiny_tokens())
    models = {step: induction_model(tokens.vocabulary, 64).float() for step in (0, 1)}
    models[0].layers[0].attention.W_O.data.zero_()
    kept = kept_pairs("repeats", (), tokens, 64, N_PAIRS, 0)
    odds = {step: log_odds(model, kept) for step, model in models.items()}
    own = MeasuredPairs(models[1], kept, odds[1], torch.arange(N_PAIRS))
    named = [tuple(map(str, edge)) for edge in own.graph.edges]
    edges = [
        dict(zip(("writer", "reader", "port"), edge, strict=True)) | {"score_nats": 1.0, "in_circuit": edge in TRUE}
        for edge in named
    ]
    return own, edges, formation_tables(CONFIG, own, edges, odds, models.__getitem__)


@pytest.mark.parametrize("table", FORMATION)
def test_tables_have_their_columns(formed, table):
    assert {"model_id", "prompts", *formed[2][table][0]} == set(table_schema(table).names)


def test_a_circuit_forms_where_its_head_does(formed):
    own, edges, tables = formed
    before, after = tables["circuit_checkpoints"]
    assert (before["step"], after["step"]) == (0, 1)
    assert abs(before["circuit_nats"]) < 1e-3
    judged = torch.arange(1, N_PAIRS, 2)
    makes = torch.empty(N_PAIRS, dtype=torch.float64)
    for places, pairs in own.batches(judged):
        makes[places] = judge(own.model, pairs, [circuit_of(edges, own.graph)]).log_odds[0].double()
    expected = faithfulness(makes[judged], own.odds[0, judged], own.odds[1, judged]).item()
    assert after["circuit_nats"] / after["difference_nats"] == pytest.approx(expected, rel=1e-5)
    assert expected > 0.9
    assert after["circuit_low_nats"] < after["circuit_nats"] < after["circuit_high_nats"]


def test_edges_have_their_effects_where_they_are(formed):
    own, _, tables = formed
    rows = {(row["step"], row["writer"], row["reader"], row["port"]): row for row in tables["edge_checkpoints"]}
    assert {edge[1:] for edge in rows} == TRUE
    last = ("L1H1", "logits", "in")  # which nothing but an unembedding follows: to first order is exactly
    place = next(i for i, edge in enumerate(own.graph.edges) if tuple(map(str, edge)) == last)
    total = 0.0
    for _, pairs in own.batches(own.every):
        runs = base_run(own.model, pairs.clean), base_run(own.model, pairs.corrupt)
        total += exact_edge_effects(*runs, pairs, [place]).sum().item()
    assert rows[1, *last]["score_nats"] == pytest.approx(total / N_PAIRS, rel=1e-3)
    for edge in TRUE - {("embedding", "L0H0", "V")}:
        assert abs(rows[0, *edge]["score_nats"]) < 1e-3 * rows[1, *edge]["score_nats"]


def test_checkpoints_are_followed_at_both_ends_of_the_largest_changes():
    differences = {0: 0.0, 3: 0.1, 5: 0.1, 9: 1.1, 20: 1.4, 40: 1.4}
    assert checkpoints_followed(differences, 4) == [0, 5, 9, 40]
    assert checkpoints_followed(differences, 5) == [0, 5, 9, 20, 40]
    assert checkpoints_followed(differences, 16) == [0, 3, 5, 9, 20, 40]
    assert checkpoints_followed(differences, 2) == [0, 40]
    assert checkpoints_followed({0: 0.0, 3: 1.0}, 16) == [0, 3]
    assert checkpoints_followed({7: 1.0}, 16) == []
    assert checkpoints_followed(differences, 0) == []
