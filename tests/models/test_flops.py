"""The formula of floating-point operations against a counter that watches every product."""

import pytest
import torch
from random_models import random_model
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from headstream.models.architecture import Architecture
from headstream.models.flops import forward_backward_flops, forward_flops, scored_pairs
from headstream.models.transformer import Transformer

ARCHITECTURES = [
    {},
    {"n_layers": 0},
    {"n_layers": 1, "n_heads": 1},
    {"n_layers": 3, "n_heads": (2, 0, 3), "positions": "learned", "output_biases": True},
    {"positions": "shortformer", "tied_embeddings": True, "normalization": "layernorm"},
    {"positions": "rotary", "d_head": 6, "qk_normalization": True, "biases": True},
    {"positions": "sinusoidal", "feed_forward": "relu", "d_mlp": 11, "normalization_place": "post"},
    {"positions": "none", "feed_forward": "gelu", "normalization": "rmsnorm"},
    {"attention": "local", "attention_window": 5},
    {"attention": "local", "attention_window": 41, "n_layers": 1},
    {"attention": "strided", "attention_window": 3, "stride": 7},
    {"attention": "top_k", "top_k": 3},
    {"attention": "local", "attention_window": 5, "score_cap": 2.0},
    {"attention": "local", "attention_window": 5, "n_layers": 3, "n_heads": (1, 3, 2), "windowed_layers": (0, 2)},
    {"gates": "hard_concrete"},
    {"gates": "dynamic", "n_heads": 2},
    {"n_heads": (4, 0, 2), "n_layers": 3, "n_key_value_heads": 2, "qkv_biases": True},
    {"feed_forward": "swiglu", "d_mlp": 11, "parallel_sublayers": True, "positions": "learned_shortformer"},
]


def counted(model: Transformer, n_tokens: int, *, backward: bool = False, batch: int = 1) -> int:
    tokens = torch.arange(batch * n_tokens).view(batch, n_tokens) % model.d_vocab
    with FlopCounterMode(display=False) as counter:
        logits = model(tokens)
        if backward:
            F.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("options", ARCHITECTURES)
@pytest.mark.parametrize("n_tokens", [2, 37, 131, 223])
def test_the_formula_is_what_runs(options, n_tokens):
    model = random_model(**options, n_ctx=223).requires_grad_()
    a, d_vocab = model.architecture, model.d_vocab
    assert forward_flops(a, d_vocab, n_tokens) == counted(model, n_tokens)
    assert forward_backward_flops(a, d_vocab, n_tokens) == counted(model, n_tokens, backward=True)
    assert 3 * forward_flops(a, d_vocab, n_tokens) == counted(model, n_tokens, batch=3)


def test_on_paper():
    architecture = Architecture(n_layers=1, n_heads=2, d_model=6, d_head=3, n_ctx=32, feed_forward="relu", d_mlp=5)
    projections, attention, feed_forward, unembedding = 4 * 32 * 6 * 6, 2 * 32 * 32 * 6, 2 * 32 * 6 * 5, 32 * 6 * 7
    assert forward_flops(architecture, 7, 32) == 2 * (projections + attention + feed_forward + unembedding)


def test_pairs_of_full_attention_grow_with_the_square_and_of_local_attention_with_n():
    full, local = (Architecture(n_ctx=8192, attention=attention) for attention in ("full", "local"))
    assert scored_pairs(full, 8192) == 8192**2 * 5 // 8
    assert scored_pairs(full, 8192) == 4 * scored_pairs(full, 4096)
    assert scored_pairs(local, 8192) == 32 * (2 * 8192 - 32)
