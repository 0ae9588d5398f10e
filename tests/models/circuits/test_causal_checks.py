"""Taking one head out of one side of another: against a slow reference, and on planted circuits."""

import math

import pytest
import torch
from planted import BOS, attention_of, chained_model, induction_model, query_composed_model
from random_models import D_VOCAB, N_CTX, random_model
from torch.nn import functional as F

from headstream.models import batching
from headstream.models.circuits.causal_checks import causal_checks
from headstream.models.circuits.paths import virtual_heads_of
from headstream.models.circuits.removals import edges_of
from headstream.models.frozen import freeze_run
from headstream.models.heads.head_behaviour import model_behaviour
from headstream.models.nodes import MLP, Edge, Head
from headstream.models.repeats import fixed_period_repeats, random_period_repeats
from headstream.models.stimuli import Stimuli


def build_stimuli(d_vocab, n_ctx, n_windows=3):
    generator = torch.Generator().manual_seed(0)
    counts = torch.ones(d_vocab, dtype=torch.int64)
    text = torch.randint(1, d_vocab, (n_windows, n_ctx + 1), generator=generator)
    text[:, 0] = BOS
    return Stimuli(
        bos=BOS,
        text=text,
        more_text=text[:0],
        fixed_period=fixed_period_repeats(counts, BOS, n_ctx, 3, generator),
        random_period=random_period_repeats(counts, BOS, n_ctx, 8, generator),
        documents=torch.arange(n_windows),
    )


def check(model, stimuli, writer, reader):
    """By port."""
    edges = edges_of([(Head(*writer), Head(*reader))])
    return {found.removal[0].port: found for found in causal_checks(model, stimuli, [(edge,) for edge in edges])}


@pytest.mark.parametrize(
    "options", [{}, {"normalization": "layernorm", "feed_forward": "gelu", "biases": True, "positions": "learned"}]
)
def test_effects_are_those_of_a_model_rerun_by_hand(options):
    """The reader's queries, keys and values one by one, everything after it computed anew."""
    model, stimuli = random_model(n_layers=3, n_heads=(2, 2, 1), **options), build_stimuli(D_VOCAB, N_CTX)
    tokens, targets = stimuli.text[:, :-1], stimuli.text[:, 1:]
    trace, reader_layer = model.trace(tokens), model.layers[1]
    x, own = trace.layers[1].residual_in, reader_layer.attention
    scale = (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt() if options else 1.0
    for kind, found in check(model, stimuli, (0, 1), (1, 0)).items():
        written = trace.layers[0].head_outputs[:, 1]
        if options:  # the norm's scale stays as it was
            written = (written - written.mean(-1, keepdim=True)) * scale * reader_layer.attention_norm.weight
        read = reader_layer.attention_norm(x)
        reads = {side: read - written if side == kind else read for side in "QKV"}
        q, k, v = (
            reads[side] @ getattr(own, f"W_{side}")[0] + (getattr(own, f"b_{side}")[0] if options else 0)
            for side in "QKV"
        )
        position = own.position_scores(N_CTX).expand(2, -1, -1)[0]
        pattern = (q @ k.mT / math.sqrt(own.W_Q.shape[2]) + position).softmax(-1)
        z = trace.layers[1].z.clone()
        z[:, 0] = pattern @ v
        stream = x + own.write(z)
        if options:
            stream = stream + reader_layer.feed_forward(reader_layer.feed_forward_norm(stream))
        logits = model.unembed(model.final_norm(model.layers[2](stream)))
        without, true = (F.cross_entropy(x.flatten(0, 1), targets.flatten()).item() for x in (logits, trace.logits))
        assert found.loss_effect_nats == pytest.approx(without - true, abs=1e-9)
        moved = (pattern - trace.layers[1].pattern[:, 0]).abs().sum(-1).mean() / 2
        assert found.pattern_change == pytest.approx(moved.item(), abs=1e-9)


@pytest.mark.parametrize("positions", ["relative", "shortformer", "rotary", "none"])
def test_taking_a_writer_out_takes_its_score_terms_out(positions):
    model = random_model(n_layers=2, d_head=6, positions=positions, qk_normalization=True)
    stimuli = build_stimuli(D_VOCAB, N_CTX)
    run = freeze_run(model, stimuli.text[:, :-1])
    layer, sources = run.layers[1], run.sources()[1]
    by_query, by_key = layer.query_and_key_sources(sources)
    scale = layer.attention.W_Q.shape[2] ** -0.5
    scores = sum(by_query.values()) @ sum(by_key.values()).mT * scale + layer.attention.position_scores(N_CTX)
    without = {
        "Q": scores - by_query[Head(0, 2)] @ sum(by_key.values()).mT * scale,
        "K": scores - sum(by_query.values()) @ by_key[Head(0, 2)].mT * scale,
    }
    found = check(model, stimuli, (0, 2), (1, 0))
    for kind, remaining in without.items():
        moved = (remaining.softmax(-1) - layer.trace.pattern)[:, 0].abs().sum(-1).mean() / 2
        assert found[kind].pattern_change == pytest.approx(moved.item(), abs=1e-10)
        assert moved > 0.01
    assert found["V"].pattern_change == 0


@pytest.mark.parametrize("kind", ["Q", "K", "V"])
def test_writers_go_together(kind):
    """Two heads of two layers at once: as if both had written nothing to that side, by hand."""
    model, stimuli = random_model(n_layers=3, n_heads=(2, 2, 1)), build_stimuli(D_VOCAB, N_CTX)
    removal = tuple(Edge(writer, Head(2, 0), kind) for writer in (Head(1, 0), Head(0, 1)))
    (found,) = causal_checks(model, stimuli, [removal])
    trace = model.trace(stimuli.text[:, :-1])
    x, own = trace.layers[2].residual_in, model.layers[2].attention
    without = x - trace.layers[1].head_outputs[:, 0] - trace.layers[0].head_outputs[:, 1]
    q, k, v = ((without if side == kind else x) @ getattr(own, f"W_{side}")[0] for side in "QKV")
    pattern = (q @ k.mT / math.sqrt(own.W_Q.shape[2]) + own.position_scores(N_CTX)[0]).softmax(-1)
    logits = model.unembed(x + pattern @ v @ own.W_O[0])
    targets = stimuli.text[:, 1:].flatten()
    losses = (F.cross_entropy(out.flatten(0, 1), targets).item() for out in (logits, trace.logits))
    assert found.loss_effect_nats == pytest.approx(next(losses) - next(losses), abs=1e-9)
    moved = (pattern - trace.layers[2].pattern[:, 0]).abs().sum(-1).mean() / 2
    assert found.pattern_change == pytest.approx(moved.item(), abs=1e-9)


def test_planted_induction_dies_without_the_writer_in_its_keys_alone():
    model, stimuli = induction_model(61, n_ctx=64), build_stimuli(61, 64)
    found = check(model, stimuli, (0, 0), (1, 1))
    for kind, effect in found.items():
        assert effect.prefix_matching > 0.99
        assert effect.induction_random_period > 0.99
        lost = kind == "K"
        assert (effect.prefix_matching_without < 0.1) == lost
        assert (effect.induction_random_period_without < 0.1) == lost
        assert (effect.pattern_change > 0.1) == lost
    assert found["V"].pattern_change == found["V"].loss_effect_nats == 0
    assert found["Q"].pattern_change == pytest.approx(0, abs=1e-6)
    edges = edges_of(set(virtual_heads_of((2, 2))) - {(Head(0, 0), Head(1, 1))})
    others = causal_checks(model, stimuli, [(edge,) for edge in edges])
    assert len(others) == 9
    assert all(other.pattern_change == pytest.approx(0, abs=1e-6) for other in others)
    assert all(other.loss_effect_nats == pytest.approx(0, abs=1e-6) for other in others)


def test_planted_q_composition_is_lost_with_the_queries():
    found = check(query_composed_model(61, n_ctx=64), build_stimuli(61, 64), (0, 0), (1, 1))
    assert {kind for kind, effect in found.items() if effect.pattern_change > 1e-3} == {"Q"}


def test_planted_v_composition_changes_no_pattern_but_the_loss():
    model = chained_model(61, n_ctx=64)
    attention_of(model, 0).W_O[1] = 0
    found = check(model, build_stimuli(61, 64), (0, 0), (1, 1))
    assert {kind for kind, effect in found.items() if abs(effect.loss_effect_nats) > 0.1} == {"V"}
    assert all(effect.pattern_change == pytest.approx(0, abs=1e-6) for effect in found.values())


def test_scores_with_nothing_taken_out_are_those_of_behaviour(monkeypatch):
    model, stimuli = random_model(n_layers=3, n_heads=(2, 1, 2)).float(), build_stimuli(D_VOCAB, N_CTX)
    measured = model_behaviour(model, stimuli)
    monkeypatch.setattr(batching, "BATCH_NUMBERS", 1)
    found = causal_checks(model, stimuli, [(edge,) for edge in edges_of(virtual_heads_of((2, 1, 2)))])
    assert len(found) == 3 * (2 + 4 + 2)
    for effect in found:
        (edge,) = effect.removal
        scores, head = measured.layers[edge.reader.layer], edge.reader.head
        assert effect.prefix_matching == pytest.approx(scores["prefix_matching"][head].item(), abs=1e-6)
        assert effect.induction_random_period == pytest.approx(scores["induction_random_period"][head].item(), abs=1e-6)
        if edge.port == "V":
            assert effect.induction_random_period_without == effect.induction_random_period


def test_what_repeats_nowhere_has_no_scores():
    stimuli = build_stimuli(2, N_CTX)
    assert stimuli.random_period is None
    for effect in check(random_model(n_layers=2), stimuli, (0, 0), (1, 2)).values():
        assert math.isnan(effect.induction_random_period)
        assert math.isnan(effect.induction_random_period_without)
        assert math.isfinite(effect.loss_effect_nats)


def test_edges_that_enter_different_ports_are_no_one_removal():
    apart = Edge(Head(0, 0), Head(1, 0), "Q"), Edge(Head(0, 1), Head(1, 0), "K")
    for removal in (apart, (Edge(Head(0, 0), MLP(1), "in"),), (Edge(Head(0, 0), Head(1, 0), "in"),)):
        with pytest.raises(ValueError, match="one port of a head"):
            causal_checks(random_model(n_layers=2), build_stimuli(D_VOCAB, N_CTX), [removal])


def test_no_pairs_no_checks():
    assert causal_checks(random_model(n_layers=1), build_stimuli(D_VOCAB, N_CTX), []) == []
