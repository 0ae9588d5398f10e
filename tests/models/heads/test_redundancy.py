"""Losses without two heads against whole forward passes, redundancy on paper, and planted twins."""

from itertools import combinations

import pytest
import torch
from planted import BOS, blank_model, plant_fixed_offset
from random_models import D_VOCAB, initial_model, random_model
from scipy import stats

from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.circuits.ov_cosine import ov_cosines
from headstream.models.heads.ablation import zero_z
from headstream.models.heads.cka import output_cka
from headstream.models.heads.head import heads_of
from headstream.models.heads.paired_ablation import ablation_losses, pair_effects
from headstream.models.heads.pattern_distance import pattern_distances
from headstream.models.heads.references import mean_z
from headstream.models.losses import sequence_losses


def random_text(n=5, length=14, seed=1):
    return torch.randint(D_VOCAB, (n, length), generator=torch.Generator().manual_seed(seed))


def all_pairs(model):
    return list(combinations(range(sum(model.architecture.heads_per_layer)), 2))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_layers": 3, "n_heads": (2, 0, 3), "output_biases": True},
        {"n_layers": 3, "n_heads": 1, "positions": "rotary", "d_head": 6},
        {"n_layers": 1, "n_heads": 1},
        {"normalization": "layernorm", "feed_forward": "gelu", "positions": "learned"},
        {"normalization": "rmsnorm", "normalization_place": "post", "feed_forward": "relu", "biases": True},
    ],
)
def test_losses_are_those_of_whole_passes(options, monkeypatch):
    monkeypatch.setattr("headstream.models.batching.BATCH_NUMBERS", 3 * 14 * D_VOCAB)
    model, text = random_model(**options), random_text()
    fill = mean_z(model, random_text(seed=2), by_position="biases" in options)
    pairs = all_pairs(model)[::-1]
    intact, alone, both = ablation_losses(model, text, fill, heads_of(model), pairs)
    heads_per_layer = model.architecture.heads_per_layer

    def without(*heads):
        mask = torch.ones(sum(heads_per_layer), dtype=torch.float64)
        mask[list(heads)] = 0
        return sequence_losses(model, text, mask.split(heads_per_layer), fill)

    torch.testing.assert_close(intact, sequence_losses(model, text))
    torch.testing.assert_close(alone, torch.stack([without(head) for head in range(len(alone))]))
    assert both.shape == (len(pairs), len(text))
    for pair, losses in zip(pairs, both, strict=True):
        torch.testing.assert_close(losses, without(*pair))


def test_redundancy_on_paper():
    """Six pairs: together dear, one head dear, as much as the sum, less, more but not clearly, clearly but little.

    The loss is 2 on average, so that a head is cheap below 0.02, and an excess counts from 0.01 on.
    """
    intact = torch.tensor([1.0, 3.0, 2.0, 2.0], dtype=torch.float64)
    costs = torch.tensor([0.01, 0.015, 0.025], dtype=torch.float64)
    pairs = [(0, 1), (0, 2), (0, 1), (0, 1), (0, 1), (0, 1)]
    excess = torch.tensor([0.5, 0.5, 0.0, -0.01, 0.05, 0.009], dtype=torch.float64)
    noise = torch.zeros(6, 4, dtype=torch.float64)
    noise[4] = torch.tensor([0.03, -0.03, 0.03, -0.03])
    both = torch.stack([costs[list(pair)].sum() for pair in pairs]) + excess
    losses = intact + costs[:, None], intact + both[:, None] + noise
    found = pair_effects(intact, *losses, pairs, torch.arange(4))
    torch.testing.assert_close(found.alone_nats, costs)
    torch.testing.assert_close(found.both_nats, both)
    torch.testing.assert_close(found.excess_nats, excess)
    assert found.redundant == [True, False, False, False, False, False]
    assert found.excess_sem_nats[4].item() == pytest.approx(0.03 / 3**0.5)  # s = 0.03 sqrt(4 / 3), over sqrt(4)
    # Beyond 0.005 of each sequence's loss, pair 4 has 0.055, 0.005, 0.07, 0.01 and is the third smallest of six.
    beyond = excess[4] + noise[4] - 0.005 * intact
    t = beyond.mean() / (beyond.std() / 2)
    assert found.excess_chance[4].item() == pytest.approx(4 * stats.t.sf(t, 3))
    same_document = pair_effects(intact, *losses, pairs, torch.zeros(4, dtype=torch.int64))
    assert same_document.redundant == [None] * 6
    assert same_document.excess_sem_nats.isnan().all()


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (-0.48, -0.48, -0.48),  # a writer and its only reader, both of which harm
        (0.015, -0.02, 0.015),  # a writer that harms, and its only reader, which doesn't
        (-0.02, -0.02, 0.0),  # either harms where the other is, and both do as well as neither
    ],
)
def test_heads_in_series_are_not_redundant(first, second, both):
    """Losing both costs more than the sum, since losing one undoes the other: neither stands in for the other."""
    generator = torch.Generator().manual_seed(0)

    def noise(n_rows):
        return 0.001 * torch.randn(n_rows, 64, generator=generator).double()

    intact = 2 + noise(1)[0]
    alone = intact + torch.tensor([[first], [second]]).double() + noise(2)
    for together in (alone[:1] + both - first, intact + both + noise(1)):  # exactly as without the first, or about
        found = pair_effects(intact, alone, together, [(0, 1)], torch.arange(64) // 2)
        assert found.excess_chance < 1e-6
        assert found.redundant == [False]


def test_nothing_tried_is_no_pair():
    one = torch.ones(2, dtype=torch.float64)
    nothing = pair_effects(one, one[None] + 0.001, torch.empty(0, 2).double(), [], torch.arange(2))
    assert nothing.redundant == []
    assert len(nothing.both_nats) == len(nothing.excess_sem_nats) == len(nothing.excess_chance) == 0


def redundant_pairs(model, text, documents):
    heads = heads_of(model)
    pairs = list(combinations(range(len(heads)), 2))
    losses = ablation_losses(model, text, zero_z(model), heads, pairs)
    return [pair for pair, own in zip(pairs, pair_effects(*losses, pairs, documents).redundant, strict=True) if own]


def test_untrained_models_have_no_redundant_pair():
    """By over 2 standard errors alone, 20 of 20 have some: their heads interact, if by 1e-7 of the loss."""
    text, documents = random_text(48, 19), torch.arange(48) // 2
    for seed in range(20):
        model = initial_model(seed, n_layers=2, n_heads=4, d_model=32, n_ctx=19)
        assert redundant_pairs(model, text, documents) == []


def copies(n, scale=3.0, d_vocab=23):
    """L0H0 to L0H(n-1) all predict the token two back; the next head looks elsewhere, the last writes noise."""
    model, generator = blank_model((n + 2,), d_vocab, n_ctx=32), torch.Generator().manual_seed(0)
    for head in range(n):
        plant_fixed_offset(model, 0, head, 2)
    plant_fixed_offset(model, 0, n, 7, "previous")
    W_O = model.layers[0].attention.W_O
    W_O[:n] *= scale
    W_O[n + 1] = 0.01 * torch.randn(W_O[n + 1].shape, generator=generator)
    text = torch.arange(1, d_vocab)[:, None].repeat(1, 32)
    text[:, 0] = BOS
    return model, text


def test_copies_are_redundant_and_heads_beside_them_are_not():
    model, text = copies(2)
    assert redundant_pairs(model, text, torch.arange(len(text))) == [(0, 1)]


def test_of_three_copies_every_pair_is_redundant_unless_the_third_does_for_all():
    model, text = copies(3, scale=0.6)
    assert redundant_pairs(model, text, torch.arange(len(text))) == [(0, 1), (0, 2), (1, 2)]
    model, text = copies(3)
    assert redundant_pairs(model, text, torch.arange(len(text))) == []
    model.layers[0].attention.W_O[0] = 0  # without one of them, the other two are
    assert redundant_pairs(model, text, torch.arange(len(text))) == [(0, 1)]  # of the heads that are left


def test_planted_twins_are_redundant_and_unrelated_heads_are_not():
    """Each sequence repeats one token. L0H1 and L0H2 predict the token two back, the others write elsewhere."""
    d_vocab, generator = 23, torch.Generator().manual_seed(0)
    model = blank_model((4,), d_vocab, n_ctx=32)
    for head, offset, into in ((1, 2, "next_token"), (2, 2, "next_token"), (3, 7, "previous")):
        plant_fixed_offset(model, 0, head, offset, into)
    W_O = model.layers[0].attention.W_O
    W_O[0] = 0.01 * torch.randn(W_O[0].shape, generator=generator)
    W_O[1:3] *= 3
    text = torch.arange(1, d_vocab)[:, None].repeat(1, 32)
    text[:, 0] = BOS

    distances, pairs = pattern_distances(model, text, BOS), all_pairs(model)
    assert min(pairs, key=lambda pair: distances[pair]) == (1, 2)
    assert distances[1, 2] == 0
    assert output_cka(model, text, BOS)[1, 2].item() == pytest.approx(1)
    assert ov_cosines(circuit_weights(model).layers)[1, 2].item() == pytest.approx(1)

    losses = ablation_losses(model, text, mean_z(model, text), heads_of(model), pairs)
    found = pair_effects(*losses, pairs, torch.arange(len(text)))
    loss = sequence_losses(model, text).mean()
    assert (found.alone_nats < 0.01 * loss).all()
    assert found.both_nats[pairs.index((1, 2))] > 10 * loss
    assert [pair for pair, redundant in zip(pairs, found.redundant, strict=True) if redundant] == [(1, 2)]
