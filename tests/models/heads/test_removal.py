"""Physically smaller models: their logits are those of the masked model, and nothing of a removed head is left."""

import pytest
import torch
from random_models import D_HEAD, D_MODEL, D_VALUE, D_VOCAB, N_CTX, random_model

from headstream.models.architecture import Architecture
from headstream.models.heads.references import mean_z
from headstream.models.heads.removal import remove_heads
from headstream.models.parameters import count_parameters
from headstream.models.transformer import Transformer

TOKENS = torch.randint(D_VOCAB, (5, 13), generator=torch.Generator().manual_seed(1))
MASKS = {(3, 2): [[1.0, 0.0, 1.0], [0.0, 0.3]], (2, 0, 3): [[0.0, 0.0], [], [0.0, 0.5, 1.0]], (1,): [[0.0]]}
SETTINGS = [
    *({"positions": positions} for positions in ("relative", "shortformer", "learned", "sinusoidal", "none")),
    {"positions": "rotary", "d_head": 6, "qk_normalization": True},
    {"biases": True},
    {"output_biases": True},
    {"n_key_value_heads": 1},
    {"n_key_value_heads": 1, "qkv_biases": True, "feed_forward": "swiglu", "normalization": "rmsnorm"},
    {"parallel_sublayers": True, "feed_forward": "gelu", "normalization": "layernorm"},
    {"positions": "learned_shortformer"},
    {"attention": "strided", "attention_window": 3, "stride": 2},
    {"attention": "top_k", "top_k": 3, "positions": "none"},
    {"attention": "local", "attention_window": 3, "windowed_layers": (0,), "score_scale": 0.7},
    {"normalization": "layernorm", "feed_forward": "gelu", "biases": True, "tied_embeddings": True},
    {"normalization": "rmsnorm", "normalization_place": "post"},
    {"normalization": "layernorm", "normalization_place": "both", "feed_forward": "gelu"},
    {"normalization": "rmsnorm", "normalization_place": "post", "feed_forward": "relu", "d_mlp": 29},
]


def masks_of(n_heads):
    return [torch.tensor(mask) for mask in MASKS[n_heads]]


def build(n_heads, **options):
    return random_model(n_layers=len(n_heads), n_heads=n_heads, **options)


@pytest.mark.parametrize("filled", [True, False], ids=["mean", "zero"])
@pytest.mark.parametrize("n_heads", MASKS, ids=str)
@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_logits_are_those_of_the_masked_model(options, n_heads, filled):
    model, mask = build(n_heads, **options), masks_of(n_heads)
    fill = mean_z(model, TOKENS) if filled else None
    smaller = remove_heads(model, mask, fill)
    torch.testing.assert_close(smaller(TOKENS), model(TOKENS, mask, fill), atol=1e-10, rtol=0)
    assert sum(smaller.architecture.heads_per_layer) == sum(int((own > 0).sum()) for own in mask)
    assert count_parameters(smaller) < count_parameters(model) + D_MODEL * len(n_heads)


def test_in_float32_too():
    model, mask = build((3, 2)).float(), masks_of((3, 2))
    smaller = remove_heads(model, mask, fill := mean_z(model, TOKENS))
    scale = model(TOKENS).std()
    torch.testing.assert_close(smaller(TOKENS) / scale, model(TOKENS, mask, fill) / scale, atol=1e-5, rtol=0)
    assert {parameter.dtype for parameter in smaller.parameters()} == {torch.float32}


@pytest.mark.parametrize("options", [{}, {"biases": True, "positions": "none"}], ids=str)
def test_a_head_takes_all_its_numbers_with_it(options):
    model = build((3, 2), **options)
    smaller = remove_heads(model, [torch.tensor([1.0, 0.0, 0.0]), torch.ones(2)])
    per_head = D_MODEL * 2 * (D_HEAD + D_VALUE) + (2 * D_HEAD + D_VALUE if options else N_CTX)
    assert count_parameters(model) - count_parameters(smaller) == 2 * per_head
    torch.testing.assert_close(smaller.layers[0].attention.W_K, model.layers[0].attention.W_K[:1])


def test_a_smaller_model_is_made_smaller_again():
    model = build((3, 2))
    fill = mean_z(model, TOKENS)
    once = remove_heads(model, [torch.tensor([1.0, 0.0, 1.0]), torch.ones(2)], fill)
    again = remove_heads(once, [torch.tensor([0.0, 1.0]), torch.ones(2)], [fill[0][[0, 2]], fill[1]])
    both = [torch.tensor([0.0, 0.0, 1.0]), torch.ones(2)]
    torch.testing.assert_close(again(TOKENS), model(TOKENS, both, fill), atol=1e-10, rtol=0)
    assert again.architecture.heads_per_layer == (1, 2)


@pytest.mark.parametrize(
    ("options", "n_layers"),
    [
        ({}, 0),
        ({"normalization": "layernorm"}, 0),
        ({"normalization": "none", "normalization_place": "post"}, 0),
        ({"normalization": "layernorm", "normalization_place": "post"}, 2),
        ({"normalization": "layernorm", "normalization_place": "output"}, 2),
        ({"normalization": "rmsnorm", "normalization_place": "both"}, 0),
        ({"feed_forward": "relu"}, 2),
        ({"biases": True}, 2),
        ({"output_biases": True}, 2),
    ],
    ids=str,
)
def test_layers_that_are_left_with_nothing_to_do_vanish(options, n_layers):
    model, nothing = build((3, 2), **options), [torch.zeros(3), torch.zeros(2)]
    bare = remove_heads(model, nothing)
    assert len(bare.layers) == bare.architecture.n_layers == n_layers
    filled = remove_heads(model, nothing, mean_z(model, TOKENS))
    assert len(filled.layers) == 2  # their b_O has work to do


def test_a_layer_that_had_no_heads_vanishes_whatever_fills_the_others():
    model = build((2, 0, 3))
    smaller = remove_heads(model, [torch.tensor([1.0, 0.0]), torch.zeros(0), torch.ones(3)], mean_z(model, TOKENS))
    assert smaller.architecture.heads_per_layer == (1, 3)


def test_nothing_masked_is_a_copy_of_its_own():
    model = build((3, 2))
    same = remove_heads(model, [torch.ones(3), torch.ones(2)], mean_z(model, TOKENS))
    assert not same.architecture.output_biases
    assert torch.equal(same(TOKENS), model(TOKENS))
    for own, other in zip(same.parameters(), model.parameters(), strict=True):
        assert torch.equal(own, other)
        own.zero_()
    assert model(TOKENS).abs().max() > 0


def test_a_model_without_layers_stays_as_it_is():
    model = random_model(n_layers=0)
    same = remove_heads(model, [], [])
    assert torch.equal(same(TOKENS), model(TOKENS))


def test_the_smaller_model_can_be_built_from_its_architecture_alone():
    smaller = remove_heads(build((3, 2), positions="learned"), masks_of((3, 2)), mean_z(build((3, 2)), TOKENS))
    card = Architecture.model_validate_json(smaller.architecture.model_dump_json())
    built = Transformer(card, smaller.d_vocab).double()
    built.load_state_dict(smaller.state_dict())
    assert torch.equal(built(TOKENS), smaller(TOKENS))


def test_a_fill_by_position_is_refused():
    model = build((3, 2))
    with pytest.raises(ValueError, match="same at every position to become a bias, got 12 positions"):
        remove_heads(model, masks_of((3, 2)), mean_z(model, TOKENS, by_position=True))


def test_heads_that_share_a_norm_of_queries_are_not_removed():
    model = random_model(qk_normalization=True, qk_normalization_over="layer")
    with pytest.raises(ValueError, match="qk_normalization_over must be 'head' for heads to be removed, got 'layer'"):
        remove_heads(model, [torch.tensor([1.0, 0.0, 1.0])] * 2)
