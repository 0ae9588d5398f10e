"""How alike heads attend, write and move: against whole matrices, scipy and numbers on paper."""

from itertools import combinations

import pytest
import torch
from planted import attention_of
from random_models import D_MODEL, D_VOCAB, random_model
from scipy.spatial.distance import jensenshannon

from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.circuits.ov_cosine import ov_cosines
from headstream.models.heads.cka import output_cka
from headstream.models.heads.pattern_distance import jensen_shannon_distances, pattern_distances, sampled_patterns

BOS = 3
OPTIONS = [
    {},
    {"n_layers": 3, "n_heads": (2, 0, 3)},
    {"n_layers": 1, "n_heads": 1},
    {"d_head": 29, "d_value": 31, "positions": "learned"},
    {"normalization": "layernorm", "feed_forward": "gelu", "output_biases": True},
    {"normalization": "rmsnorm", "normalization_place": "post", "biases": True},
]


@pytest.fixture(autouse=True)
def several_batches(monkeypatch):
    monkeypatch.setattr("headstream.models.batching.BATCH_NUMBERS", 2 * 13 * D_VOCAB)


def text(n=5, length=14):
    """BOS opens each sequence and comes again in some."""
    tokens = torch.randint(D_VOCAB, (n, length), generator=torch.Generator().manual_seed(1))
    tokens[:, 0] = tokens[::2, 5] = BOS
    return tokens


def by_head(model, tokens, name):
    """Something of each head at each place that counts: [head, place, ...]."""
    trace = model.trace(tokens[:, :-1])
    heads = torch.cat([getattr(layer, name) for layer in trace.layers], dim=1)
    return heads.transpose(0, 1)[:, tokens[:, :-1] != BOS]


@pytest.mark.parametrize("options", OPTIONS)
def test_pattern_distances_are_those_of_scipy(options):
    model, tokens = random_model(**options), text()
    found, patterns = pattern_distances(model, tokens, BOS), by_head(model, tokens, "pattern")
    assert torch.equal(found, found.T)
    assert (found.diagonal() == 0).all()
    for i, j in combinations(range(len(patterns)), 2):
        expected = jensenshannon(patterns[i], patterns[j], base=2, axis=1).mean()
        assert found[i, j].item() == pytest.approx(expected, abs=1e-12)


def test_distances_on_paper():
    rows = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 0.25, 0.75], [0.5, 0.5, 0]], dtype=torch.float64)
    found = jensen_shannon_distances(rows[:, None])[:, :, 0]
    assert found[0, 1] == 0
    assert found[0, 2] == 1
    # (P + Q) / 2 = (3/4, 1/4) has 0.811278 bits, P and Q have 0 and 1
    assert found[0, 3].item() == pytest.approx(0.311278**0.5, abs=1e-6)


def test_distances_obey_the_triangle_inequality():
    rows = torch.randn(17, 7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).mul(3).softmax(-1)
    distances = jensen_shannon_distances(rows)
    assert (distances[:, None] <= distances[:, :, None] + distances[None] + 1e-12).all()


def test_equal_heads_have_no_distance_even_in_float32():
    model = random_model().float()
    attention = attention_of(model, 0)
    for weight in (attention.W_Q, attention.W_K, attention.position_bias):
        weight[2] = weight[0]
    assert pattern_distances(model, text(), BOS)[0, 2] == 0


@pytest.mark.parametrize("options", OPTIONS)
def test_cka_is_that_of_whole_outputs(options):
    model, tokens = random_model(**options), text()
    found, outputs = output_cka(model, tokens, BOS), by_head(model, tokens, "head_outputs")
    outputs = outputs - outputs.mean(1, keepdim=True)
    for i, x in enumerate(outputs):
        for j, y in enumerate(outputs):
            expected = (y.T @ x).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm())
            assert found[i, j].item() == pytest.approx(expected.item(), abs=1e-12)


def test_cka_sees_neither_rotation_nor_scale():
    model = random_model()
    before = output_cka(model, text(), BOS)
    noise = torch.randn(D_MODEL, D_MODEL, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    last = attention_of(model, 1)
    last.W_O[2] = -7 * last.W_O[2] @ torch.linalg.qr(noise).Q
    torch.testing.assert_close(output_cka(model, text(), BOS), before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_head_that_writes_nothing_or_always_the_same_has_no_cka(dtype):
    model = random_model(biases=True).to(dtype)
    attention_of(model, 0).W_O[1] = 0
    attention_of(model, 1).W_V[0] = 0
    missing = output_cka(model, text(), BOS).isnan()
    expected = torch.zeros(6, dtype=torch.bool)
    expected[[1, 3]] = True
    assert torch.equal(missing, expected[:, None] | expected)


@pytest.mark.parametrize("options", OPTIONS[:5])
def test_ov_cosines_are_those_of_whole_matrices(options):
    model = random_model(**options)
    centring = torch.eye(D_MODEL).double() - (options.get("normalization") == "layernorm") / D_MODEL
    maps = []
    for layer in model.layers:
        norm, attention = layer.attention_norm.weight, layer.attention
        read = attention.W_V if norm is None else norm[:, None] * attention.W_V
        maps.append((centring @ read @ attention.W_O @ centring).flatten(1))
    unit = torch.nn.functional.normalize(torch.cat(maps))
    torch.testing.assert_close(ov_cosines(circuit_weights(model).layers), unit @ unit.T)


def test_a_head_without_weights_has_no_cosine():
    model = random_model()
    attention_of(model, 0).W_V[1] = 0
    missing = ov_cosines(circuit_weights(model).layers).isnan()
    assert missing[1].all()
    assert missing.sum() == 6 + 5


@pytest.mark.parametrize("options", OPTIONS[:3], ids=str)
def test_sampled_patterns_are_those_of_the_whole_run(options):
    model, sequences = random_model(**options), text()
    queries, patterns = sampled_patterns(model, sequences, BOS, 11)
    layers = model.trace(sequences[:, :-1]).layers
    whole = torch.cat([layer.pattern for layer in layers], dim=1)
    assert patterns.shape == (whole.shape[1], 11, 13)
    assert len({*map(tuple, queries.tolist())}) == 11
    for i, (sequence, position) in enumerate(queries.tolist()):
        assert sequences[sequence, position] != BOS
        torch.testing.assert_close(patterns[:, i], whole[sequence, :, position])
    every, _ = sampled_patterns(model, sequences, BOS, 1000)
    assert len(every) == (sequences[:, :-1] != BOS).sum()
    assert torch.equal(sampled_patterns(random_model(seed=1), sequences, BOS, 11)[0], queries)  # whatever the model
