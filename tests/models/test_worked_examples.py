"""The numbers that the written sources work out by hand, recomputed by the model; what they misprint is named."""

import numpy as np
import pytest
import torch
from torch import tensor
from torch.nn import functional as F

from headstream.models.architecture import Architecture
from headstream.models.feed_forward_layer import FeedForward
from headstream.models.transformer import Transformer

F64 = torch.float64

# Source 001: three tokens, two heads, d_model = d_head = 4.
X = tensor([[1, 0, 2, 1], [0, 2, 1, 1], [1, 1, 0, 2]], dtype=F64)
W_Q = tensor(
    [
        [[0.1, 0.2, 0.1, 0.3], [0.2, 0.1, 0.1, 0.2], [0.1, 0.3, 0.2, 0.1], [0.3, 0.2, 0.1, 0.2]],
        [[0.3, 0.1, 0.2, 0.2], [0.2, 0.3, 0.1, 0.1], [0.1, 0.2, 0.3, 0.1], [0.1, 0.1, 0.2, 0.3]],
    ],
    dtype=F64,
)
W_K = tensor(
    [
        [[0.2, 0.1, 0.3, 0.1], [0.1, 0.2, 0.2, 0.3], [0.3, 0.1, 0.1, 0.1], [0.1, 0.3, 0.2, 0.2]],
        [[0.1, 0.3, 0.1, 0.2], [0.3, 0.1, 0.2, 0.1], [0.1, 0.2, 0.3, 0.1], [0.2, 0.1, 0.1, 0.3]],
    ],
    dtype=F64,
)
W_V = tensor(
    [
        [[0.1, 0.3, 0.2, 0.1], [0.2, 0.2, 0.1, 0.3], [0.1, 0.1, 0.3, 0.2], [0.3, 0.2, 0.1, 0.1]],
        [[0.2, 0.1, 0.3, 0.1], [0.1, 0.2, 0.1, 0.3], [0.3, 0.1, 0.2, 0.2], [0.1, 0.3, 0.1, 0.2]],
    ],
    dtype=F64,
)
W_O = tensor(
    [
        [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.2, 0.1, 0.4, 0.3], [0.3, 0.4, 0.1, 0.2]],
        [[0.4, 0.1, 0.2, 0.3], [0.3, 0.2, 0.1, 0.4], [0.1, 0.4, 0.3, 0.2], [0.2, 0.3, 0.4, 0.1]],
    ],
    dtype=F64,
)
PRINTED_HEADS = tensor(  # assumed there, not worked out
    [
        [[0.7, 0.8, 0.7, 0.6], [0.8, 0.7, 0.6, 0.7], [0.4, 0.7, 0.6, 0.7]],
        [[0.6, 0.7, 0.8, 0.5], [0.7, 0.7, 0.6, 0.6], [0.5, 0.7, 0.7, 0.6]],
    ],
    dtype=F64,
)


@pytest.fixture
def two_heads() -> Transformer:
    architecture = Architecture(n_layers=1, n_heads=2, d_model=4, d_head=4, n_ctx=3, positions="none")
    model = Transformer(architecture, d_vocab=3).double().requires_grad_(False)
    attention = model.layers[0].attention
    for parameter, value in ((model.W_E, X), (attention.W_Q, W_Q), (attention.W_K, W_K), (attention.W_V, W_V)):
        parameter.copy_(value)
    attention.W_O.copy_(W_O)
    return model


def test_projections_of_source_001_of_which_it_misprints_all_six(two_heads):
    q, k, v = two_heads.layers[0].attention.queries_keys_values(X[None])
    wanted = {
        "Q1": (q[0, 0], [[0.6, 1.0, 0.6, 0.7], [0.8, 0.7, 0.5, 0.7], [0.9, 0.7, 0.4, 0.9]]),
        "K1": (k[0, 0], [[0.9, 0.6, 0.7, 0.5], [0.6, 0.8, 0.7, 0.9], [0.5, 0.9, 0.9, 0.8]]),
        "V1": (v[0, 0], [[0.6, 0.7, 0.9, 0.6], [0.8, 0.7, 0.6, 0.9], [0.9, 0.9, 0.5, 0.6]]),
        "Q2": (q[0, 1], [[0.6, 0.6, 1.0, 0.7], [0.6, 0.9, 0.7, 0.6], [0.7, 0.6, 0.7, 0.9]]),
        "K2": (k[0, 1], [[0.5, 0.8, 0.8, 0.7], [0.9, 0.5, 0.8, 0.6], [0.8, 0.6, 0.5, 0.9]]),
        "V2": (v[0, 1], [[0.9, 0.6, 0.8, 0.7], [0.6, 0.8, 0.5, 1.0], [0.5, 0.9, 0.6, 0.8]]),
    }
    printed_first_rows = {  # the first misprint of each
        "Q1": [0.7, 0.9, 0.9, 0.7],
        "K1": [0.7, 0.8, 0.7, 0.7],
        "V1": [0.8, 0.7, 0.9, 0.4],
        "Q2": [0.6, 0.6, 0.8, 0.8],
        "K2": [0.8, 0.7, 0.7, 0.7],
        "V2": [0.8, 0.6, 0.7, 0.4],
    }
    for name, (found, right) in wanted.items():
        assert torch.allclose(found, tensor(right, dtype=F64), atol=1e-12), name
        assert not torch.allclose(found[0], tensor(printed_first_rows[name], dtype=F64)), name


def test_heads_of_source_001_which_it_leaves_out(two_heads):
    """The last query sees every key, so that there a causal model is the source's own, which masks nothing."""
    z = two_heads.trace(torch.arange(3)[None]).layers[0].z[0]
    right = tensor([[0.7723, 0.7685, 0.6587, 0.7043], [0.6649, 0.7681, 0.6328, 0.8333]], dtype=F64)
    assert torch.allclose(z[:, -1], right, atol=5e-5)
    whole = F.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
    assert torch.allclose(z[:, -1], whole[:, -1], atol=1e-12)
    assert not torch.allclose(whole, PRINTED_HEADS, atol=0.05)


def test_output_of_source_001_from_its_own_heads(two_heads):
    """It prints 1.55 to 1.60, and 1.23 to 1.25."""
    output = two_heads.layers[0].attention.write(PRINTED_HEADS[None])[0]
    right = [[1.34, 1.36, 1.34, 1.36], [1.36, 1.34, 1.32, 1.38], [1.25, 1.28, 1.19, 1.18]]
    assert torch.allclose(output, tensor(right, dtype=F64), atol=1e-12)
    apart = PRINTED_HEADS[0] @ W_O[0] + PRINTED_HEADS[1] @ W_O[1]
    assert torch.allclose(output, apart, atol=1e-12)


# Source 004: numbers drawn by np.random.seed(42).


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    random = np.random.RandomState(42)
    return [torch.from_numpy(random.rand(*shape)) for shape in shapes]


def test_projections_of_source_004():
    x = tensor([[[1.0, 2, 3, 4]]], dtype=F64)
    weights = drawn((4, 3), (4, 3), (4, 2))
    architecture = Architecture(n_layers=1, n_heads=1, d_model=4, d_head=3, d_value=2, n_ctx=2, positions="none")
    attention = Transformer(architecture, 2).double().requires_grad_(False).layers[0].attention
    for parameter, weight in zip((attention.W_Q, attention.W_K, attention.W_V), weights, strict=True):
        parameter[0] = weight
    found = attention.queries_keys_values(x)
    for part, weight in zip(found, weights, strict=True):
        assert torch.allclose(part[0, 0, 0], tensor([1.0, 2, 3, 4], dtype=F64) @ weight, atol=1e-12)
    assert weights[0][0, 0].item() == pytest.approx(0.37454012)  # the first number that this seed draws


def test_attention_of_source_004():
    q = tensor([[0.2, 0.5, 0.8]], dtype=F64)
    K = tensor([[0.1, 0.3, 0.5], [0.6, 0.2, 0.9], [0.4, 0.7, 0.1]], dtype=F64)
    V = tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=F64)
    scores = [0.57, 0.94, 0.51]  # on paper, before the division by sqrt(3)
    weights = (tensor(scores, dtype=F64) / 3**0.5).softmax(0)
    assert torch.allclose(weights, tensor([0.3121, 0.3864, 0.3015], dtype=F64), atol=5e-5)
    mixed = F.scaled_dot_product_attention(q, K, V)[0]
    assert torch.allclose(mixed, weights @ V, atol=1e-12)


def test_feed_forward_of_source_004():
    """Its GELU is the tanh approximation; the exact one differs by less than a thousandth."""
    x = tensor([[[1.0, 2, 3, 4]]], dtype=F64)
    W_in, b_in, W_out, b_out = drawn((4, 8), (8,), (8, 4), (4,))
    block = FeedForward(Architecture(n_heads=1, d_model=4, d_mlp=8, feed_forward="gelu", biases=True))
    block = block.double().requires_grad_(False)
    for parameter, value in ((block.W_in, W_in), (block.b_in, b_in), (block.W_out, W_out), (block.b_out, b_out)):
        parameter.copy_(value)
    hidden = (x @ W_in + b_in)[0, 0].numpy()
    by_tanh = 0.5 * hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))
    wanted = by_tanh @ W_out.numpy() + b_out.numpy()
    assert np.allclose(block(x)[0, 0].numpy(), wanted, atol=1e-3)


def test_two_heads_of_source_004_which_cannot_run_as_printed():
    """Without softmax and values a head is one number, and numpy joins no numbers: they must be made arrays first."""
    x = np.array([1.0, 2, 3, 4])
    W_Q1, W_K1, _, W_Q2, W_K2, _, W_O = (w.numpy() for w in drawn(*[(4, 2)] * 6, (4, 4)))
    heads = [(x @ W_Q1) @ (x @ W_K1) / 2**0.5, (x @ W_Q2) @ (x @ W_K2) / 2**0.5]
    with pytest.raises(ValueError, match="zero-dimensional arrays cannot be concatenated"):
        np.concatenate(heads)
    with pytest.raises(ValueError, match="mismatch"):
        np.array(heads) @ W_O  # two numbers, and four rows: the values are missing


# Source 003's code for pruning.


def test_pruning_as_in_source_003_does_not_scale_heads():
    """Its z is [batch, position, head, d_head]; a [head] vector meets the last axis there, not the heads."""
    z = torch.ones(2, 5, 3, 3, dtype=F64)
    importance = tensor([1.0, 2, 4], dtype=F64)
    assert torch.equal((z * importance)[0, 0], importance.expand(3, 3))  # each head's numbers scaled alike
    assert torch.equal((z * importance[:, None])[0, 0], importance[:, None].expand(3, 3))
    with pytest.raises(RuntimeError, match="must match"):
        torch.ones(2, 5, 3, 7) * importance.float()  # and it can't run unless d_head is n_heads


def test_attention_as_in_source_003_mixes_heads_not_positions():
    """It never swaps positions and heads, so that weights are [head, head] at each position."""
    q = torch.randn(2, 5, 3, 7, generator=torch.Generator().manual_seed(0))
    assert (q @ q.transpose(-2, -1)).shape == (2, 5, 3, 3)
    own = Transformer(Architecture(n_layers=1, n_heads=3, d_model=21, n_ctx=5), 11).requires_grad_(False)
    assert own.trace(torch.zeros(2, 5, dtype=torch.long)).layers[0].pattern.shape == (2, 3, 5, 5)


def test_attention_as_in_source_003_sees_the_future():
    q = torch.randn(1, 1, 5, 7, generator=torch.Generator().manual_seed(0))
    unmasked = (q @ q.mT / 7**0.5).softmax(-1)
    assert (unmasked.triu(1) > 0).any()
    own = Transformer(Architecture(n_layers=1, n_heads=1, d_model=7, n_ctx=5), 11)
    own.initialize(torch.Generator().manual_seed(0)).requires_grad_(False)
    assert (own.trace(torch.arange(5)[None]).layers[0].pattern.triu(1) == 0).all()
