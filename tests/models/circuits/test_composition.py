"""Composition scores against [d_model, d_model] products, their nulls against chance, and planted pairs."""

import pytest
import torch
from planted import attention_of, composed_model
from random_models import D_MODEL, initial_model, random_model

from headstream.models.circuits.composition import Composition, composition, head_pairs, rotated_null
from headstream.models.circuits.head_weights import CircuitWeights, HeadWeights, circuit_weights
from headstream.models.circuits.significance import chance_of_initial, chance_of_rotated
from headstream.models.multiple_tests import significant
from headstream.models.nodes import HEAD_PORTS


def gaussian_heads(n_heads, d, d_head, d_value, seed):
    """Two layers of heads without a vocabulary."""
    generator = torch.Generator().manual_seed(seed)

    def layer():
        shapes = [(d, d_head), (d, d_head), (d, d_value), (d_value, d)]
        weights = (torch.randn(n_heads, *shape, generator=generator, dtype=torch.float64) for shape in shapes)
        return HeadWeights(*weights, b_Q=torch.zeros(n_heads, d_head, dtype=torch.float64), scale=1.0)

    empty = torch.zeros(0, d, dtype=torch.float64)
    return CircuitWeights(empty, empty.T, (layer(), layer()))


def same_index(found, n_heads):
    """Of all pairs of writer and reader those of one index: no two share a head."""
    return found.view(n_heads, n_heads, 3)[torch.arange(n_heads), torch.arange(n_heads)]


@pytest.mark.parametrize(
    "options",
    [{"n_layers": 3, "n_heads": (3, 0, 2)}, {"n_layers": 4, "n_heads": 1}, {"d_head": 29, "d_value": 31}],
    ids=["counts", "deep", "wide"],
)
def test_scores_equal_those_of_whole_matrices(options):
    model = random_model(**options)
    found = composition(circuit_weights(model))
    pairs = head_pairs(model.architecture.heads_per_layer).tolist()
    assert len(found.score) == len(pairs)
    for scores, spreads, (writer_layer, writer, layer, reader) in zip(found.score, found.null_sd, pairs, strict=True):
        first, second = attention_of(model, writer_layer), attention_of(model, layer)
        left = first.W_V[writer] @ first.W_O[writer]
        qk = second.W_Q[reader] @ second.W_K[reader].T
        for kind, right in enumerate((qk, qk.T, second.W_V[reader] @ second.W_O[reader])):
            expected = (left @ right).norm() / (left.norm() * right.norm())
            torch.testing.assert_close(scores[kind], expected, atol=1e-12, rtol=0)
            d, (a, b) = D_MODEL, (torch.linalg.svdvals(m) for m in (left, right))
            a, b = ((s**4).sum() / (s**2).sum() ** 2 for s in (a, b))
            variance = 2 * (d * a - 1) * (d * b - 1) / (d**2 * (d - 1) * (d + 2))
            torch.testing.assert_close(spreads[kind], variance.sqrt(), atol=1e-10, rtol=0)
    torch.testing.assert_close(found.z, (found.score**2 - 1 / D_MODEL) / found.null_sd)


def test_pairs_are_of_an_earlier_and_a_later_head():
    assert head_pairs((2, 1, 2)).tolist() == [
        [0, 0, 1, 0],
        [0, 1, 1, 0],
        [0, 0, 2, 0],
        [0, 0, 2, 1],
        [0, 1, 2, 0],
        [0, 1, 2, 1],
        [1, 0, 2, 0],
        [1, 0, 2, 1],
    ]
    assert head_pairs(()).shape == head_pairs((3,)).shape == (0, 4)


@pytest.mark.parametrize("heads", [(), (3,), (0, 3), (3, 0)])
def test_no_pairs_no_scores(heads):
    weights = circuit_weights(random_model(n_layers=len(heads), n_heads=heads or 1))
    found = composition(weights)
    assert found.score.shape == found.z.shape == (0, 3)
    assert rotated_null(weights, 3, torch.Generator())[0].shape == (0, 3)
    assert significant(chance_of_rotated(found), 0.01).shape == (0, 3)


@pytest.mark.parametrize("shape", [(29, 5, 7), (64, 16, 16), (13, 13, 2)])
def test_the_analytic_null_is_that_of_random_heads(shape):
    """Over independent pairs z has mean 0 and standard deviation 1, within 3 standard errors."""
    n = 250
    z = same_index(composition(gaussian_heads(n, *shape, seed=sum(shape))).z, n)
    assert (z.mean(0).abs() < 3 * z.std(0) / n**0.5).all()
    squares = (z - z.mean(0)) ** 2
    assert ((squares.mean(0) - 1).abs() < 3 * squares.std(0) / n**0.5).all()


def test_rotating_writers_gives_the_analytic_null():
    weights = gaussian_heads(2, 29, 5, 7, seed=0)
    found = composition(weights)
    n = 3000
    mean, sd = rotated_null(weights, n, torch.Generator().manual_seed(0))
    assert ((mean - found.null_mean).abs() < 3.5 * sd / n**0.5).all()  # 12 numbers
    torch.testing.assert_close(sd, found.null_sd, rtol=0.1, atol=0)


def test_rotating_writers_is_rotating_their_output():
    """The short way, singular values along a random frame, against a rotation of W_O."""
    weights = gaussian_heads(1, 11, 3, 2, seed=1)
    generator, scores = torch.Generator().manual_seed(0), []
    n = 600
    for _ in range(n):
        turn = torch.linalg.qr(torch.randn(11, 11, generator=generator, dtype=torch.float64)).Q
        first = weights.layers[0]
        turned = HeadWeights(first.W_Q, first.W_K, first.W_V, first.W_O @ turn, first.b_Q, first.scale)
        scores.append(composition(CircuitWeights(weights.W_E, weights.W_U, (turned, weights.layers[1]))).score ** 2)
    slow = torch.cat(scores)
    mean, sd = rotated_null(weights, n, generator)
    assert ((mean[0] - slow.mean(0)).abs() < 3.5 * (2 / n) ** 0.5 * sd[0]).all()
    torch.testing.assert_close(sd[0], slow.std(0), rtol=0.2, atol=0)


def test_rotations_are_seeded():
    weights = gaussian_heads(2, 11, 3, 2, seed=1)
    one, two, other = (rotated_null(weights, 5, torch.Generator().manual_seed(seed))[0] for seed in (7, 7, 8))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_layernorm_leaves_one_dimension_less():
    found = composition(circuit_weights(initial_model(n_layers=2, n_heads=4, d_model=24, normalization="layernorm")))
    assert found.null_mean == 1 / 23


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_chance_is_how_often_chance_does_it(level):
    """Of random pairs a fraction `level` has a chance below it; a normal tail would let five times as many through."""
    n, below = 400, []
    for seed in range(3):
        found = composition(gaussian_heads(n, 17, 3, 3, seed=seed))
        below.append(same_index(chance_of_rotated(found), n) < level)
    fraction = torch.stack(below).double().mean()
    assert fraction == pytest.approx(level, abs=3 * (level / (9 * n)) ** 0.5 + 0.1 * level)


def test_before_training_hardly_any_model_has_a_significant_pair():
    level, models = 0.05, 100
    hits = 0
    for seed in range(models):
        now, initial = (
            composition(circuit_weights(initial_model(2 * seed + i, n_layers=2, n_heads=4, d_model=32))) for i in (0, 1)
        )
        chance = torch.maximum(chance_of_rotated(now), chance_of_initial(now, initial))
        hits += significant(chance, level).any().item()
        assert not significant(chance_of_initial(now, now), level).any()
    assert hits / models <= level + 3 * (level / models) ** 0.5


@pytest.mark.parametrize("kind", HEAD_PORTS)
def test_a_planted_pair_is_found_and_only_that(kind):
    model, initial = composed_model(kind), composed_model("none")
    weights = circuit_weights(model)
    chance = torch.maximum(
        chance_of_rotated(composition(weights)),
        chance_of_initial(composition(weights), composition(circuit_weights(initial))),
    )
    found = significant(chance, 0.01).nonzero().tolist()
    assert [(head_pairs((3, 3))[pair].tolist(), HEAD_PORTS[column]) for pair, column in found] == [([0, 1, 1, 2], kind)]
    attention_of(model, 0).W_O[1] = attention_of(model, 0).W_O[0]
    assert not significant(chance_of_rotated(composition(circuit_weights(model))), 0.01).any()


def test_holm_equals_a_loop():
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        chance = torch.rand(13, 3, generator=generator) ** 6
        chance[torch.rand(13, 3, generator=generator) < 0.2] = torch.nan
        flat = chance.flatten().tolist()
        tests = sorted((p, i) for i, p in enumerate(flat) if p == p)
        expected = set()
        for n_left, (p, i) in zip(range(len(tests), 0, -1), tests, strict=True):
            if p > 0.05 / n_left:
                break
            expected.add(i)
        assert set(significant(chance, 0.05).flatten().nonzero().flatten().tolist()) == expected


def test_holm_on_paper():
    chance = torch.tensor([0.04, 0.01, 0.02, torch.nan])
    assert significant(chance, 0.05).tolist() == [True, True, True, False]  # 0.01 * 3, 0.02 * 2, 0.04 * 1
    assert significant(torch.tensor([0.04, 0.02, 0.03]), 0.05).tolist() == [False] * 3


def test_a_head_without_weights_has_no_score():
    model = random_model()
    attention_of(model, 0).W_O[1] = 0
    found = composition(circuit_weights(model))
    silent = head_pairs((3, 3))[:, 1] == 1
    assert found.score.isnan().any(1).equal(silent)
    chance = chance_of_rotated(found)
    assert chance.isnan().any(1).equal(silent)
    assert not significant(chance, 0.01)[silent].any()


def test_a_rise_is_measured_in_both_spreads():
    spread = torch.full((1, 3), 0.3, dtype=torch.float64)
    before = Composition(torch.zeros(1, 3, dtype=torch.float64), 0.1, spread)
    after = Composition(torch.full((1, 3), 0.5**0.5, dtype=torch.float64), 0.1, spread * 4 / 3)
    assert chance_of_initial(after, before)[0, 0].item() == pytest.approx(0.158655, abs=1e-6)  # one sd: 0.5 / 0.5
