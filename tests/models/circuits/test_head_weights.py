"""Weights with the norms folded in against the model that has them."""

import pytest
import torch
from random_models import D_MODEL, D_VOCAB, random_model

from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.frozen import freeze_run

TOKENS = torch.arange(11)


def test_without_norms_the_weights_are_the_models():
    model = random_model(n_heads=(3, 0), n_layers=2, biases=True)
    weights = circuit_weights(model)
    assert weights.d_stream == D_MODEL
    assert weights.heads_per_layer == (3, 0)
    assert torch.equal(weights.W_E, model.W_E)
    assert torch.equal(weights.W_U, model.W_U)
    for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q"):
        assert torch.equal(getattr(weights.layers[0], name), getattr(model.layers[0].attention, name))


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_folded_norms_are_exact_but_for_each_positions_scale(kind):
    model = random_model(normalization=kind, feed_forward="relu", positions="none")
    for norm in [model.layers[0].attention_norm, model.final_norm]:
        if kind == "layernorm":
            norm.bias.zero_()  # a constant, which the weights leave out
    weights, layer = circuit_weights(model), model.layers[0]
    assert weights.d_stream == D_MODEL - (kind == "layernorm")
    x = model.W_E[TOKENS]
    centred = x - x.mean(1, keepdim=True) if kind == "layernorm" else x
    scale = (centred.square().mean(1) + (1e-5 if kind == "layernorm" else 1e-6)).rsqrt()
    stream = scale[:, None] * weights.W_E[TOKENS]

    read = layer.attention_norm(x)
    for name in ("W_Q", "W_K", "W_V"):
        expected = read @ getattr(layer.attention, name)
        torch.testing.assert_close(stream @ getattr(weights.layers[0], name), expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(stream @ weights.W_U, model.final_norm(x) @ model.W_U, atol=1e-12, rtol=0)

    written = layer.attention.W_O
    centred = written - written.mean(-1, keepdim=True) if kind == "layernorm" else written
    expected = centred * model.final_norm.weight @ model.W_U
    torch.testing.assert_close(weights.layers[0].W_O @ weights.W_U, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("place", ["output", "both"])
@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_a_norm_of_what_heads_write_is_folded_but_for_its_scale(kind, place):
    """Up to a factor for each position, the weights give what a layer writes, and what it adds to the logits."""
    model = random_model(n_layers=1, n_heads=2, normalization=kind, normalization_place=place, positions="none")
    layer = model.layers[0]
    for norm in (layer.attention_norm, layer.attention_out_norm, model.final_norm):
        if norm.bias is not None:
            norm.bias.zero_()  # a constant, which the weights leave out
    run, weights = freeze_run(model, TOKENS[None]), circuit_weights(model)
    assert weights.d_stream == D_MODEL - (kind == "layernorm" and place == "both")
    expected = run.final(run.layers[0].all_heads(model.W_E[TOKENS][None])) @ model.W_U
    own = weights.layers[0]
    values = (weights.W_E[TOKENS] @ own.W_V)[None]
    if place == "both":
        values = values * (run.layers[0].norm_before.scale / layer.attention_norm.weight)[:, None, :, :1]
    found = (run.layers[0].trace.pattern @ values @ own.W_O).sum(1) @ weights.W_U
    factor = expected / found
    torch.testing.assert_close(factor, factor[..., :1].expand_as(factor), rtol=1e-8, atol=0)


def test_the_norm_of_queries_and_keys_is_folded_but_for_its_scale():
    model = random_model(qk_normalization=True)
    own, attention = circuit_weights(model).layers[0], model.layers[0].attention
    torch.testing.assert_close(own.W_Q, attention.W_Q * attention.q_norm.weight)
    torch.testing.assert_close(own.W_K, attention.W_K * attention.k_norm.weight)


def test_a_norm_over_all_heads_has_weights_for_each():
    model = random_model(n_heads=4, n_key_value_heads=2, qk_normalization=True, qk_normalization_over="layer")
    own, attention = circuit_weights(model).layers[0], model.layers[0].attention
    for head in range(4):
        torch.testing.assert_close(own.W_Q[head], attention.W_Q[head] * attention.q_norm.weight[head])
        torch.testing.assert_close(own.W_K[head], attention.W_K[head] * attention.k_norm.weight[head // 2])


@pytest.mark.parametrize("norms", [{"normalization": "rmsnorm"}, {"qk_normalization": True}])
def test_a_query_bias_has_no_place_where_scales_are_left_out(norms):
    assert circuit_weights(random_model(biases=True, **norms)).layers[0].b_Q.abs().max() == 0


def test_no_layers():
    weights = circuit_weights(random_model(n_layers=0))
    assert weights.layers == ()
    assert weights.W_E.shape == (D_VOCAB, D_MODEL)


def test_norms_between_layers_are_refused():
    with pytest.raises(ValueError, match=r"normalization_place must be 'pre'.*got 'post'"):
        circuit_weights(random_model(normalization="layernorm", normalization_place="post"))
    circuit_weights(random_model(normalization="none", normalization_place="post"))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused(value):
    model = random_model()
    model.layers[1].attention.W_K[2, 3, 1] = value
    with pytest.raises(ValueError, match=r"must be finite, got 1 in layers\.1\.attention\.W_K"):
        circuit_weights(model)
