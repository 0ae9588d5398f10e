"""Attention over heads and layers: against sums over paths, linear programs and numbers on paper."""

from itertools import product

import numpy as np
import pytest
import torch
from planted import blank_model, plant_fixed_offset
from random_models import D_VOCAB, random_model
from scipy.optimize import linprog

from headstream.models.heads.attention_flow import aggregate_attention, max_flow, rollout, with_residual

ROUNDING = 1e-8  # of capacities


def random_means(n_layers, n, seed=0):
    scores = 2 * torch.randn(n_layers, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)


def tokens(n=11):
    return torch.randint(D_VOCAB, (n,), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "options",
    [
        {"n_layers": 3, "n_heads": (2, 0, 3), "output_biases": True},
        {"n_layers": 1, "n_heads": 1, "positions": "rotary", "d_head": 6},
        {"normalization": "rmsnorm", "normalization_place": "post", "feed_forward": "gelu"},
    ],
)
def test_every_pattern_is_one(options):
    model = random_model(**options)
    found = aggregate_attention(model, tokens())
    assert set(found) == {"mean", "rollout", "flow"}
    for i, layer in enumerate(model.trace(tokens()[None]).layers):
        if not layer.pattern.shape[1]:
            assert found["mean"][i].isnan().all()
            for method in ("rollout", "flow"):
                torch.testing.assert_close(found[method][i], found[method][i - 1], atol=ROUNDING, rtol=0)
            continue
        torch.testing.assert_close(found["mean"][i], layer.pattern[0].sum(0) / layer.pattern.shape[1])
        for patterns in found.values():
            torch.testing.assert_close(patterns[i].sum(-1), torch.ones(11, dtype=torch.float64))
            assert (patterns[i].triu(1) == 0).all()
            assert (patterns[i] >= 0).all()


def test_one_layer_is_half_attention_and_half_residual():
    mean = random_means(1, 7)
    expected = (mean + torch.eye(7)) / 2
    torch.testing.assert_close(rollout(with_residual(mean)), expected)
    torch.testing.assert_close(max_flow(with_residual(mean)), expected, atol=ROUNDING, rtol=0)


def test_rollout_sums_over_paths():
    n = 5
    passed = with_residual(random_means(3, n))
    rolled = rollout(passed)[2]
    for query, key in product(range(n), range(n)):
        paths = product(range(n), range(n))
        total = sum(passed[2, query, high] * passed[1, high, low] * passed[0, low, key] for high, low in paths)
        torch.testing.assert_close(rolled[query, key], total)


def test_flow_is_the_optimum_of_a_linear_program():
    n, n_layers = 5, 3
    passed = with_residual(random_means(n_layers, n))
    found = max_flow(passed)
    for top, (query, key) in product(range(n_layers), product(range(n), range(n))):
        expected = largest_flow(passed[: top + 1].numpy(), query, key) if key <= query else 0.0
        assert found[top, query, key].item() == pytest.approx(expected, abs=ROUNDING)


def largest_flow(capacity, query, key):
    """Maximise what leaves the query, where what enters a node between the two also leaves it."""
    edges = list(zip(*capacity.nonzero(), strict=True))
    source, sink = (len(capacity), query), (0, key)
    balance = {}
    for column, (layer, from_position, to_position) in enumerate(edges):
        for node, sign in (((layer + 1, from_position), 1), ((layer, to_position), -1)):
            balance.setdefault(node, np.zeros(len(edges)))[column] += sign
    inner = [row for node, row in balance.items() if node not in (source, sink)]
    bounds = [(0, capacity[edge]) for edge in edges]
    return -linprog(-balance[source], A_eq=inner, b_eq=np.zeros(len(inner)), bounds=bounds).fun


def test_through_two_layers_each_middle_position_lets_through_the_less_of_two():
    passed = with_residual(random_means(2, 13))
    expected = torch.minimum(passed[1][:, :, None], passed[0][None]).sum(1)
    torch.testing.assert_close(max_flow(passed)[1], expected, atol=ROUNDING, rtol=0)


def test_flow_is_at_least_rollout_and_at_most_what_a_token_can_give():
    passed = with_residual(random_means(4, 11))
    flow, rolled = max_flow(passed), rollout(passed)
    assert (flow >= rolled - ROUNDING).all()  # rollout is one way to send a unit
    assert (flow <= passed[0].sum(0) + ROUNDING).all()
    assert (flow <= 1 + ROUNDING).all()


def test_two_previous_token_heads_reach_two_back():
    model = blank_model((1, 1), d_vocab=7, n_ctx=32)
    for layer in (0, 1):
        plant_fixed_offset(model, layer, head=0, offset=1)
    found = aggregate_attention(model, torch.arange(7))
    assert found["mean"][:, 5, 4].tolist() == pytest.approx([1, 1])
    assert found["rollout"][1, 5, 3:6].tolist() == pytest.approx([0.25, 0.5, 0.25])
    # One path of capacity 1/2 to either end, two to the middle; of 2 in all.
    assert found["flow"][1, 5, 3:6].tolist() == pytest.approx([0.25, 0.5, 0.25])
