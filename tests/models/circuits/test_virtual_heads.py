"""Virtual heads against whole matrices, and planted ones that look where two heads in a row look."""

import math
from itertools import combinations

import pytest
import torch
from planted import BOS, chained_model, copying_model, induction_model
from random_models import random_model

from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.circuits.paths import virtual_heads_of
from headstream.models.circuits.virtual_heads import virtual_copying, virtual_norms, virtual_patterns
from headstream.models.nodes import Head


@pytest.mark.parametrize("options", [{}, {"normalization": "layernorm"}])
def test_circuits_are_those_of_whole_matrices(options):
    weights = circuit_weights(random_model(n_layers=3, n_heads=(2, 1, 3), **options))
    pairs = virtual_heads_of((2, 1, 3))
    norms, copying = virtual_norms(weights), virtual_copying(weights, pairs)
    assert sorted(norms) == sorted(copying) == sorted(pairs)
    for first, second in pairs:
        (a, b) = (weights.layers[first.layer], weights.layers[second.layer])
        OV = a.W_V[first.head] @ a.W_O[first.head] @ b.W_V[second.head] @ b.W_O[second.head]
        assert norms[first, second] == pytest.approx(OV.norm().item())
        eigenvalues = torch.linalg.eigvals(weights.W_E @ OV @ weights.W_U)
        score = (eigenvalues.sum().real / eigenvalues.abs().sum()).item()
        assert copying[first, second] == pytest.approx(score, abs=1e-6)


def test_a_planted_chain_copies_what_is_two_back():
    model = chained_model(29, n_ctx=64)
    tokens = torch.randint(1, 29, (2, 65), generator=torch.Generator().manual_seed(0))
    tokens[:, 0] = BOS
    weights = circuit_weights(model)
    chain = Head(0, 0), Head(1, 1)
    assert {pair for pair, norm in virtual_norms(weights).items() if norm > 0} == {chain}
    assert virtual_copying(weights, [chain])[chain] > 0.99
    pattern = virtual_patterns(model, tokens, BOS, {chain})[chain]
    assert pattern.mean_distance == pytest.approx(2, abs=0.1)
    assert pattern.confidence > 0.95


def test_heads_that_do_not_meet_have_no_copying_score():
    weights = circuit_weights(induction_model(29, n_ctx=32))
    assert not any(virtual_norms(weights).values())
    assert all(map(math.isnan, virtual_copying(weights, virtual_heads_of(weights.heads_per_layer)).values()))


def test_patterns_are_products():
    model = random_model(n_layers=2, n_heads=(2, 3))
    tokens = torch.randint(1, 37, (2, 12), generator=torch.Generator().manual_seed(0))
    tokens[:, 0] = BOS
    trace = model.trace(tokens[:, :-1])
    path = Head(0, 1), Head(1, 2)
    distances, largest = [], []
    for b in range(2):
        product_of = trace.layers[1].pattern[b, 2] @ trace.layers[0].pattern[b, 1]
        torch.testing.assert_close(product_of.sum(1), torch.ones(11, dtype=torch.float64))
        for i in range(2, 11):  # the first that sees two keys other than BOS
            row = product_of[i, 1 : i + 1] / product_of[i, 1 : i + 1].sum()
            distances.append(sum((i - 1 - j) * weight for j, weight in enumerate(row)))
            largest.append(row.max())
    found = virtual_patterns(model, tokens, BOS, {path})
    assert list(found) == [path]
    assert found[path].mean_distance == pytest.approx(torch.stack(distances).mean().item())
    assert found[path].confidence == pytest.approx(torch.stack(largest).mean().item())


@pytest.mark.parametrize("heads", [(), (4,), (4, 4), (2, 3, 5), (1, 1, 1, 1), (2, 0, 3)])
def test_virtual_heads_are_the_pairs_of_every_two_layers(heads):
    assert len(virtual_heads_of(heads)) == sum(a * b for a, b in combinations(heads, 2))


def test_one_layer_has_none():
    model = copying_model(13, n_ctx=16)
    assert virtual_norms(circuit_weights(model)) == {}
    assert virtual_patterns(model, torch.ones(1, 9, dtype=torch.int64), BOS, set()) == {}
