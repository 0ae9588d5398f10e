"""What each order and path is worth: identities, and planted models in which only one path is worth anything."""

import math

import pytest
import torch
from planted import attention_of, blank_model, fixed_offset_model, plant_fixed_offset
from random_models import D_VOCAB, random_model
from torch.nn import functional as F

from headstream.models import batching
from headstream.models.circuits.order_of_terms import order_of_terms
from headstream.models.circuits.paths import virtual_heads_of
from headstream.models.nodes import Head

SEQUENCES = torch.randint(D_VOCAB, (3, 12), generator=torch.Generator().manual_seed(1))
SETTINGS = [
    {},
    {"normalization": "layernorm", "biases": True},
    {"normalization": "rmsnorm", "normalization_place": "post", "feed_forward": "gelu"},
    {"normalization": "rmsnorm", "normalization_place": "both", "feed_forward": "gelu"},
    {"logit_cap": 1.5, "embedding_scale": 3.0, "biases": True},
]


def repeated_pairs(d_vocab=29, n=31):
    """Each token twice in a row, so that what comes next is what is here or was before."""
    tokens = torch.randint(1, d_vocab, (4, n // 2 + 1), generator=torch.Generator().manual_seed(0))
    return tokens.repeat_interleave(2, dim=1)[:, :n]


@pytest.mark.parametrize("options", SETTINGS)
def test_losses_lead_from_nothing_to_the_true_loss(options):
    model = random_model(n_layers=2, n_heads=(2, 3), **options)
    terms = order_of_terms(model, SEQUENCES, virtual_heads_of((2, 3)))
    whole = [term for term in terms if term.path is None]
    true_loss = F.cross_entropy(model(SEQUENCES[:, :-1]).flatten(0, 1), SEQUENCES[:, 1:].flatten()).item()
    assert [term.order for term in whole] == [0, 1, 2, None] if "feed_forward" in options else [0, 1, 2]
    assert whole[-1].loss_nats == pytest.approx(true_loss, abs=1e-10)
    assert whole[-1].removal_effect_nats == pytest.approx(whole[-1].loss_effect_nats, abs=1e-10)
    assert math.log(D_VOCAB) - sum(term.loss_effect_nats for term in whole) == pytest.approx(true_loss, abs=1e-10)
    assert sum(term.logit_share for term in whole) == pytest.approx(1, abs=1e-10)
    for order in (1, 2):
        shares = [term.logit_share for term in terms if term.path and term.order == order]
        assert len(shares) == (5, 6)[order - 1]
        assert sum(shares) == pytest.approx(whole[order].logit_share, abs=1e-10)


def test_effects_are_those_of_logits_added_up():
    """A slow reference: logits of each term, then losses of their sums."""
    model = random_model(n_layers=2, n_heads=(2, 1))
    trace = model.trace(SEQUENCES[:, :-1])
    x = trace.embedding
    direct = x @ model.W_U

    def head(layer, i, stream):
        own = model.layers[layer].attention
        return trace.layers[layer].pattern[:, i] @ stream @ own.W_V[i] @ own.W_O[i]

    def loss(logits):
        return F.cross_entropy(logits.flatten(0, 1), SEQUENCES[:, 1:].flatten()).item()

    first = [head(0, i, x) for i in range(2)]
    singles = {(Head(0, i),): first[i] @ model.W_U for i in range(2)} | {(Head(1, 0),): head(1, 0, x) @ model.W_U}
    pairs = {(Head(0, i), Head(1, 0)): head(1, 0, first[i]) @ model.W_U for i in range(2)}
    order_1 = direct + sum(singles.values())
    terms = {term.path or term.order: term for term in order_of_terms(model, SEQUENCES, pairs)}
    centred = trace.logits - trace.logits.mean(-1, keepdim=True)
    for path, logits in singles.items():
        assert terms[path].loss_effect_nats == pytest.approx(loss(direct) - loss(direct + logits), abs=1e-10)
        assert math.isnan(terms[path].removal_effect_nats)
        covariance = ((logits - logits.mean(-1, keepdim=True)) * centred).sum() / centred.square().sum()
        assert terms[path].logit_share == pytest.approx(covariance.item(), abs=1e-10)
    for path, logits in pairs.items():
        assert terms[path].loss_effect_nats == pytest.approx(loss(order_1) - loss(order_1 + logits), abs=1e-10)
    removed = loss(trace.logits - sum(singles.values())) - loss(trace.logits)
    assert terms[1].removal_effect_nats == pytest.approx(removed, abs=1e-10)
    assert terms[0].loss_effect_nats == pytest.approx(math.log(D_VOCAB) - loss(direct), abs=1e-10)


def test_batching_changes_nothing(monkeypatch):
    model = random_model(n_layers=2, biases=True)
    whole = order_of_terms(model, SEQUENCES, virtual_heads_of((3, 3)))
    monkeypatch.setattr(batching, "BATCH_NUMBERS", 1)
    for a, b in zip(whole, order_of_terms(model, SEQUENCES, virtual_heads_of((3, 3))), strict=True):
        assert (a.order, a.path) == (b.order, b.path)
        assert list(vars(a).values())[2:] == pytest.approx(list(vars(b).values())[2:], nan_ok=True, abs=1e-10)


def test_a_planted_head_is_all_of_its_order():
    model = fixed_offset_model(0, 29, n_ctx=32)
    direct, order, head = order_of_terms(model, repeated_pairs(), ())
    assert direct.loss_effect_nats == pytest.approx(0, abs=1e-6)  # W_E writes where W_U doesn't read
    assert direct.logit_share == pytest.approx(0, abs=1e-6)
    assert head.path == (Head(0, 0),)
    assert head.logit_share == order.logit_share == pytest.approx(1)
    assert head.loss_effect_nats == order.loss_effect_nats


def test_a_planted_eraser_takes_back_what_the_first_head_gained():
    model = blank_model((2, 2), 29, n_ctx=32)
    plant_fixed_offset(model, layer=0, head=1, offset=1)
    plant_fixed_offset(model, layer=1, head=0, offset=0, of="next_token")
    attention_of(model, 1).W_O[0] *= -1
    terms = {
        term.path or term.order: term for term in order_of_terms(model, repeated_pairs(), virtual_heads_of((2, 2)))
    }
    eraser = terms[Head(0, 1), Head(1, 0)]
    assert terms[Head(0, 1),].loss_effect_nats == pytest.approx(terms[1].loss_effect_nats)
    assert abs(terms[1].loss_effect_nats) > 0.1
    assert terms[2].loss_effect_nats == pytest.approx(-terms[1].loss_effect_nats, abs=1e-5)
    assert eraser.loss_effect_nats == pytest.approx(terms[2].loss_effect_nats, abs=1e-6)
    others = [term for path, term in terms.items() if isinstance(path, tuple) and len(path) == 2 and term is not eraser]
    assert len(others) == 3
    assert all(term.loss_effect_nats == pytest.approx(0, abs=1e-6) for term in others)


def test_no_layers_no_order_but_the_direct_path():
    model = random_model(n_layers=0, biases=True)
    (direct,) = order_of_terms(model, SEQUENCES, ())
    assert direct.order == 0
    assert direct.logit_share == pytest.approx(1)


def test_constant_logits_have_no_shares():
    model = random_model(n_layers=1)
    model.W_U_free.zero_()
    assert all(math.isnan(term.logit_share) for term in order_of_terms(model, SEQUENCES, ()))
