"""Orders of pruning, losses without many sets of heads, and pruning with training in between."""

import doctest
import itertools

import pytest
import torch
from planted import attention_of, blank_model, induction_model, plant_fixed_offset
from random_models import D_VOCAB, random_model

from headstream.models.heads import pruning_orders
from headstream.models.heads.head import heads_of, mask_without
from headstream.models.heads.pruned_losses import losses_without
from headstream.models.heads.pruning_orders import (
    by_importance,
    iterative_order,
    prefixes,
    pruning_sizes,
    random_orders,
)
from headstream.models.heads.references import mean_z
from headstream.models.heads.retraining import Retraining, prune_and_retrain, retrain
from headstream.models.losses import sequence_losses
from headstream.models.nodes import Head

NAN = float("nan")


def tokens(n=5, length=13, seed=1):
    return torch.randint(D_VOCAB, (n, length), generator=torch.Generator().manual_seed(seed))


def places(*heads):
    return [Head(*head) for head in heads]


def one_by_one(model):
    return range(1, len(heads_of(model)) + 1)


def test_the_least_important_goes_first_and_who_has_no_score_last():
    scores = [torch.tensor([0.5, NAN, -1.0]), torch.tensor([0.5, 0.0])]
    heads = places((0, 0), (0, 1), (0, 2), (1, 0), (1, 1))
    assert by_importance(scores, heads) == places((0, 2), (1, 1), (0, 0), (1, 0), (0, 1))
    assert by_importance(scores, set(heads[:2])) == places((0, 0), (0, 1))


def test_scores_are_asked_for_anew_after_each_head():
    """A head matters as much as it is far, by number, from the highest that has gone."""
    heads = places((0, 0), (0, 1), (0, 2), (0, 3))
    asked = []

    def score(pruned):
        asked.append(pruned)
        return [torch.tensor([abs(head - max(pruned).head) for head in range(4)]).float()]

    order = iterative_order([torch.tensor([0.5, 0.4, 0.1, 0.2])], score, heads, [1, 2, 3, 4])
    assert order == places((0, 2), (0, 1), (0, 3), (0, 0))
    assert asked == [frozenset(order[:n]) for n in (1, 2, 3)]
    asked.clear()
    order = iterative_order([torch.tensor([0.5, 0.4, 0.1, 0.2])], score, heads, [1, 3, 4])
    assert order == places((0, 2), (0, 1), (0, 3), (0, 0))
    assert asked == [frozenset(order[:n]) for n in (1, 3)]


def test_many_heads_go_in_growing_numbers():
    assert doctest.testmod(pruning_orders).failed == 0
    for n_heads, most in ((0, 4), (5, 16), (16, 16), (17, 16), (270, 12), (1000, 1)):
        sizes = pruning_sizes(n_heads, most)
        assert sizes == sorted(set(sizes))
        assert len(sizes) <= max(min(n_heads, most + 1), 0)
        assert {*sizes} >= ({n_heads, n_heads // 2} - {0})


def test_random_orders_differ_by_draw_and_repeat_by_seed():
    heads = heads_of(random_model(n_layers=2, n_heads=(5, 3)))
    first, again = (random_orders(heads, 5, torch.Generator().manual_seed(0)) for _ in range(2))
    assert first == again
    assert len({tuple(order) for order in first}) == 5
    assert all(sorted(order) == heads for order in first)


def test_prefixes_go_from_no_head_to_all():
    assert prefixes([], []) == [frozenset()]
    order = places((1, 0), (0, 2), (0, 0))
    assert prefixes(order, [1, 2, 3]) == [frozenset(order[:n]) for n in range(4)]
    assert prefixes(order, [1, 3]) == [frozenset(), frozenset(order[:1]), frozenset(order)]


@pytest.mark.parametrize(
    "options",
    [
        {"n_layers": 0},
        {"n_layers": 1, "n_heads": 1},
        {"n_layers": 3, "n_heads": (2, 0, 2)},
        {"n_layers": 2, "n_heads": (2, 2), "normalization": "layernorm", "feed_forward": "gelu", "biases": True},
        {"n_layers": 2, "n_heads": (2, 2), "normalization": "rmsnorm", "normalization_place": "post"},
        {"n_layers": 2, "n_heads": (2, 2), "qk_normalization": True, "qk_normalization_over": "layer"},
    ],
    ids=str,
)
@pytest.mark.parametrize("filled", [True, False])
def test_losses_without_heads_are_those_of_a_masked_pass(monkeypatch, options, filled):
    monkeypatch.setattr("headstream.models.batching.PASS_NUMBERS", 2 * 13 * D_VOCAB)
    model = random_model(**options)
    fill = mean_z(model, tokens(seed=2)) if filled else None
    heads = heads_of(model)
    sets = [frozenset(some) for n in range(len(heads) + 1) for some in itertools.combinations(heads, n)]
    losses = losses_without(model, tokens(), fill, sets)
    assert set(losses) == set(sets)
    for pruned, found in losses.items():
        mask = [
            torch.tensor([float((layer, head) not in pruned) for head in range(n)])
            for layer, n in enumerate(model.architecture.heads_per_layer)
        ]
        torch.testing.assert_close(found, sequence_losses(model, tokens(), mask, fill), atol=1e-10, rtol=0)


def test_no_sets_have_no_losses():
    assert losses_without(random_model(), tokens(), None, []) == {}


def text_of_periods(n, seed, d_vocab=13, period=5, length=31):
    rows = torch.randint(1, d_vocab, (n, period), generator=torch.Generator().manual_seed(seed))
    return torch.cat([torch.zeros(n, 1, dtype=torch.long), rows.repeat(1, length // period + 1)[:, :length]], dim=1)


def ablation_scores(model, text, fill):
    """By definition: the loss with each head gone, one pass a head."""

    def scores(pruned):
        here = sequence_losses(model, text, mask_without(model, pruned), fill).mean()
        found = [torch.full((n,), NAN) for n in model.architecture.heads_per_layer]
        for layer, head in set(heads_of(model)) - pruned:
            mask = mask_without(model, pruned | {Head(layer, head)})
            found[layer][head] = sequence_losses(model, text, mask, fill).mean() - here
        return found

    return scores


def test_who_does_nothing_goes_first_and_costs_nothing():
    model, text = induction_model(13, n_ctx=32), text_of_periods(7, seed=1)
    for layer, idle in ((0, 1), (1, 0)):
        attention_of(model, layer).W_O[idle] = 1.0
    fill = mean_z(model, text_of_periods(7, seed=2))
    scores = ablation_scores(model, text, fill)
    order = iterative_order(scores(frozenset()), scores, heads_of(model), one_by_one(model))
    assert order[:2] == places((0, 1), (1, 0))
    losses = [
        own.mean().item() for own in losses_without(model, text, fill, prefixes(order, one_by_one(model))).values()
    ]
    assert losses[1:3] == pytest.approx(losses[:1] * 2, abs=1e-6)
    assert losses[3] > losses[0] + 1


def twins(n_ctx=32):
    """One layer: heads 0 and 2 predict by the period, either sure enough alone, head 1 has nothing to write."""
    model = blank_model((3,), 13, n_ctx)
    attention_of(model, 0).W_O[1] = 1.0
    for head in (0, 2):
        plant_fixed_offset(model, layer=0, head=head, offset=4)
    return model


def test_of_two_heads_that_do_the_same_one_can_go():
    model, text = twins(), text_of_periods(7, seed=1)
    scores = ablation_scores(model, text, mean_z(model, text))
    order = iterative_order(scores(frozenset()), scores, heads_of(model), one_by_one(model))
    assert order[-1] == Head(0, 2)
    alone, last = scores(frozenset())[0], scores(frozenset(order[:2]))[0]
    assert alone[0] == pytest.approx(alone[2])
    assert alone[2] < 0.1
    assert last[2] > 1  # once its twin is gone it is needed


# With training in between.


def test_retraining_lowers_the_loss_that_pruning_left():
    model, text = twins(), text_of_periods(16, seed=3)
    attention_of(model, 0).W_O[0] *= 3
    before = sequence_losses(model, text).mean()
    retrain(model, Retraining(itertools.repeat(text), 30, 0.01))
    assert sequence_losses(model, text).mean() < before - 0.01
    assert not any(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize(
    "options",
    [
        {"n_layers": 1, "n_heads": 1},
        {"n_layers": 3, "n_heads": (2, 0, 2)},
        {"n_layers": 2, "n_heads": (1, 2), "normalization": "layernorm", "normalization_place": "post"},
        {"n_layers": 2, "n_heads": (1, 2), "feed_forward": "relu", "biases": True},
    ],
    ids=str,
)
def test_heads_keep_their_names_as_the_model_shrinks(options):
    """Without steps of training, pruning step by step is the masked model, with means that are taken anew each time."""
    model, text = random_model(**options), tokens()
    untouched = {name: parameter.clone() for name, parameter in model.named_parameters()}

    def score(smaller, fill):  # the last head of the last layer goes first
        return [torch.arange(n) * -1.0 - 10 * i for i, n in enumerate(smaller.architecture.heads_per_layer)]

    pruned = frozenset()
    untrained = Retraining(iter([]), 0, 0.1)
    steps = prune_and_retrain(model, score, lambda smaller: mean_z(smaller, text), untrained, one_by_one(model))
    gone, models = zip(*steps, strict=True)
    found = list(zip(heads_of(model)[::-1], models, strict=True))
    assert [gone[0], *(more - less for less, more in itertools.pairwise(gone))] == [{head} for head, _ in found]
    fill = [torch.zeros_like(own) for own in mean_z(model, text)]
    for head, smaller in found:
        means = masked_means(model, text, mask_without(model, pruned), fill)
        fill[head.layer][head.head] = means[head.layer][head.head]
        pruned |= {head}
        expected = model(text, mask_without(model, pruned), fill)
        torch.testing.assert_close(smaller(text), expected, atol=1e-9, rtol=0)
        assert sum(smaller.architecture.heads_per_layer) == len(heads_of(model)) - len(pruned)
    assert all(torch.equal(parameter, untouched[name]) for name, parameter in model.named_parameters())


def masked_means(model, text, mask, fill):
    trace = model.trace(text[:, :-1], mask, fill)
    return [layer.z.mean((0, 2))[:, None] for layer in trace.layers]
