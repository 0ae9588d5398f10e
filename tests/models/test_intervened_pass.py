"""What interventions do to a pass, against exact patching, definitions written here, and models without the heads."""

from dataclasses import replace

import pytest
import torch
from random_models import D_VOCAB, random_model

from headstream.models.heads.attended_keys import induction_keys, previous_token_keys
from headstream.models.intervened_pass import rule_pattern
from headstream.models.interventions import Interventions
from headstream.models.nodes import MLP, Edge, Head
from headstream.models.prompts.exact_effects import exact_edge_effects
from headstream.models.prompts.pairs import Pairs, answer_rows
from headstream.models.prompts.patched_runs import base_run

BOS = 0
ARCHITECTURES = {
    "as trained by default": {},
    "llama": {"positions": "rotary", "normalization": "rmsnorm", "feed_forward": "swiglu", "d_head": 6, "d_mlp": 11},
    "grouped, with norms of queries and keys": {"n_heads": 4, "qk_normalization": True, "biases": True},
    "smeared": {"key_smearing": True, "positions": "shortformer", "n_layers": 3},
    "gated": {"gates": "hard_concrete", "feed_forward": "gelu", "parallel_sublayers": True},
}


@pytest.fixture(params=ARCHITECTURES)
def model(request):
    return random_model(scale=0.35, **ARCHITECTURES[request.param])


@pytest.fixture(scope="module")
def tokens():
    drawn = torch.randint(1, D_VOCAB, (3, 12), generator=torch.Generator().manual_seed(1))
    drawn[:, 0], drawn[:, 8] = BOS, drawn[:, 3]
    return drawn


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_a_silenced_head_is_one_without_output_weights(model, tokens):
    without = random_model(scale=0.35, **model.architecture.model_dump())
    model.interventions = Interventions(silenced=frozenset({Head(0, 1), Head(1, 0)}))
    for layer, head in ((0, 1), (1, 0)):
        without.layers[layer].attention.W_O.data[head] = 0
    close(model(tokens), without(tokens))
    assert (model.trace(tokens).layers[0].head_outputs[:, 1] == 0).all()


@pytest.mark.parametrize("port", ["Q", "K", "V"])
def test_a_cut_edge_has_the_effect_of_one_that_is_patched_with_nothing(model, tokens, port):
    """The patching of prompt circuits shares no code with a cut: it gives each reader an input of its own."""
    pairs = Pairs(tokens, tokens, answer_rows([[3], [4], [5]]), answer_rows([[6], [8], [1]]))
    run = base_run(model, tokens)
    # Runs are patched from the position on at which embeddings differ: here from the first.
    nothing = replace(run, written=torch.zeros_like(run.written), embedding=run.embedding + 1)
    writers = [Head(0, 1)] + ([MLP(0)] if model.architecture.feed_forward != "none" else [])
    for writer in writers:
        edge = Edge(writer, Head(1, 2), port)
        expected = exact_edge_effects(run, nothing, pairs, [run.graph.edges.index(edge)])[0]
        model.interventions = Interventions(cut=frozenset({edge}))
        found = pairs.log_odds(run.logits) - pairs.log_odds(model(tokens)[:, -1])
        model.interventions = None
        close(found, expected)
        assert found.abs().min() > 1e-6


def test_cutting_all_that_a_layer_writes_leaves_the_readers_what_came_before(tokens):
    model = random_model(scale=0.35, feed_forward="relu", d_mlp=9)
    writers = [Head(0, head) for head in range(3)] + [MLP(0)]
    model.interventions = Interventions(
        cut=frozenset(Edge(writer, Head(1, head), "K") for writer in writers for head in range(3))
    )
    trace, second = model.trace(tokens), model.layers[1].attention
    q, _, _ = second.queries_keys_values(trace.layers[1].residual_in)
    _, k, _ = second.queries_keys_values(trace.embedding)
    close(trace.layers[1].pattern, second.pattern((q * second.scale) @ k.mT))


@pytest.mark.parametrize("rule", ["previous", "self", "first", "uniform", "copies"])
def test_a_clamped_head_mixes_values_by_its_rule_alone(model, tokens, rule):
    plain = model.trace(tokens).layers[1]
    model.interventions = Interventions(clamped={Head(1, 2): rule}, bos=BOS)
    traced = model.trace(tokens).layers[1]
    values = model.layers[1].attention.queries_keys_values(model.layers[1].read(traced.residual_in))[2]
    gate = 1 if traced.gates is None else traced.gates[:, 2, :, None]
    close(traced.z[:, 2], gate * slow_rule(rule, tokens).double() @ values[:, 2])
    close(traced.z[:, :2], plain.z[:, :2])
    close(traced.pattern[:, 2], slow_rule(rule, tokens).double())


def slow_rule(rule: str, tokens: torch.Tensor) -> torch.Tensor:
    """The rules word by word: query by query, with the first position where there is no key."""
    pattern = torch.zeros(len(tokens), tokens.shape[1], tokens.shape[1])
    for row, sequence in enumerate(tokens.tolist()):
        for query in range(len(sequence)):
            match rule:
                case "previous":
                    keys = [query - 1] if query > 1 else []
                case "self":
                    keys = [query]
                case "first":
                    keys = [0]
                case "uniform":
                    keys = list(range(query + 1))
                case "copies":
                    before = range(1, query)
                    keys = [i + 1 for i in before if query and sequence[i] == sequence[query]]
            for key in keys or [0]:
                pattern[row, query, key] = 1 / len(keys or [0])
    return pattern


@pytest.mark.parametrize("rule", ["previous", "self", "first", "uniform", "copies"])
def test_rules_are_patterns(tokens, rule):
    pattern = rule_pattern(rule, tokens, BOS)
    torch.testing.assert_close(pattern.sum(-1), torch.ones_like(pattern.sum(-1)))
    torch.testing.assert_close(pattern.expand(len(tokens), 12, 12), slow_rule(rule, tokens))


def test_forward_gives_the_gates_and_the_masked_logits_of_a_trace(tokens):
    model = random_model(gates="dynamic")
    model.interventions = Interventions(clamped={Head(0, 0): "self"})
    gates: list[torch.Tensor] = []
    mask = [torch.tensor([1.0, 0.0, 1.0]), torch.ones(3)]
    logits = model(tokens, mask, gates=gates)
    close(logits, model.trace(tokens, mask).logits)
    assert [own.shape for own in gates] == [(3, 3, 12)] * 2


@pytest.mark.parametrize(("rule", "keys_of"), [("previous", previous_token_keys), ("copies", induction_keys)])
def test_rules_have_the_keys_of_the_scores_of_their_name(tokens, rule, keys_of):
    keys, pattern = keys_of(tokens, BOS), rule_pattern(rule, tokens, BOS)
    some = keys.any(-1)
    assert some.any()
    assert ((pattern > 0) == keys)[some].all()
    assert (pattern[..., 0] == 1)[~some].all()
