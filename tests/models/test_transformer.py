"""The transformer against its definition, written a second time in float64, one head at a time."""

import pytest
import torch
from torch.nn import functional as F
from tried_options import untried

from headstream.models.architecture import Architecture
from headstream.models.attention_patterns import relative_scores
from headstream.models.transformer import Transformer
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.headstream import DEFINED, headstream_logits

# A prime each, so that no two dimensions can be mistaken for one another.
BATCH, POS, D_VOCAB, D_MODEL, D_HEAD, D_VALUE, D_MLP, N_CTX = 2, 7, 13, 11, 6, 5, 17, 19
SMALL = {"d_model": D_MODEL, "d_head": D_HEAD, "d_value": D_VALUE, "n_ctx": N_CTX}


def build(seed=0, **options):
    """A float64 model whose every parameter is random, those that start at 0 or 1 included."""
    model = Transformer(Architecture(**{**SMALL, "n_heads": 3, **options}), D_VOCAB).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.5, generator=generator)
    return model.requires_grad_(False)


def draw_tokens(n=POS):
    return torch.randint(D_VOCAB, (BATCH, n), generator=torch.Generator().manual_seed(1))


def reference_logits(model, tokens):
    """By the definition that files of Headstream's are read with a second time: its only code in common is torch's."""
    parameters = dict(model.named_parameters())
    tensors = FileTensors(frozenset(parameters), parameters.__getitem__)
    return headstream_logits(tensors, model.architecture.model_dump(), tokens)


POSITIONS = ["relative", "shortformer", "learned_shortformer", "rotary", "learned", "sinusoidal", "none"]
LIKE_LLAMA = {
    **{"n_heads": 6, "n_key_value_heads": 2, "positions": "rotary", "rotary_base": 500.0, "rotary_pairs": "half-split"},
    **{"normalization": "rmsnorm", "norm_epsilon": 1e-3, "feed_forward": "swiglu", "d_mlp": D_MLP},
}
LIKE_NEOX = {
    **{"positions": "rotary", "rotary_fraction": 0.7, "rotary_pairs": "half-split", "parallel_sublayers": True},
    **{"normalization": "layernorm", "feed_forward": "gelu", "d_mlp": D_MLP, "biases": True},
}
SPARSE = [
    {"attention": "local", "attention_window": 3},
    {"attention": "strided", "attention_window": 3, "stride": 2},
    {"attention": "top_k", "top_k": 3},
]
OPTIONS = [
    *({"positions": positions, **sparse} for positions in POSITIONS for sparse in SPARSE),
    {"biases": True, "qk_normalization": True, "n_layers": 3, "n_heads": (2, 0, 1), **SPARSE[1]},
    *({"positions": positions} for positions in POSITIONS),
    *(
        {"normalization": norm, "normalization_place": place, "feed_forward": "gelu", "d_mlp": D_MLP}
        for norm in ("layernorm", "rmsnorm")
        for place in ("pre", "post", "output", "both")
    ),
    *({"positions": positions, "biases": True, "qk_normalization": True} for positions in POSITIONS),
    {"feed_forward": "relu", "d_mlp": D_MLP, "biases": True},
    *(
        {"feed_forward": kind, "d_mlp": D_MLP, "biases": True, "normalization": "layernorm"}
        for kind in ("gelu_tanh", "swiglu", "geglu", "geglu_tanh")
    ),
    LIKE_LLAMA,
    {**LIKE_LLAMA, "normalization_place": "output", "qk_normalization": True, "qk_normalization_over": "layer"},
    {**LIKE_NEOX, "normalization_place": "both", "qk_normalization": True, "qk_normalization_over": "layer"},
    {
        **LIKE_LLAMA,
        "rotary_stretch": 3.0,
        "n_layers": 3,
        "windowed_layers": (1,),
        "windowed_rotary_base": 9.0,
        **SPARSE[0],
    },
    {**LIKE_LLAMA, "rotary_stretch": 8.0, "rotary_stretched_wavelengths": (7.0, 300.0)},
    {**LIKE_LLAMA, "qkv_biases": True, "tied_embeddings": True, "attention": "local", "attention_window": 3},
    {"n_heads": (4, 0, 2), "n_layers": 3, "n_key_value_heads": 2, "biases": True, "qk_normalization": True},
    LIKE_NEOX,
    {"parallel_sublayers": True, "feed_forward": "gelu", "d_mlp": D_MLP, "rotary_fraction": 0.4, "positions": "rotary"},
    {"tied_embeddings": True, "biases": True},
    {"output_biases": True},
    {"score_cap": 0.7, "logit_cap": 1.3, "embedding_scale": 3.0, "tied_embeddings": True, "biases": True, **SPARSE[0]},
    *(
        {
            "normalization": norm,
            "norm_offset": True,
            "qk_normalization": True,
            "qk_normalization_over": over,
            **SPARSE[2],
        }
        for norm, over in (("layernorm", "head"), ("rmsnorm", "layer"))
    ),
    {"score_cap": 2.0, "positions": "rotary", "normalization": "rmsnorm", "norm_offset": True},
    {"key_smearing": True, "biases": True, "qk_normalization": True},
    {"key_smearing": True, "positions": "rotary", "n_heads": 4, "n_key_value_heads": 2, **SPARSE[0]},
    {"score_scale": 0.9, "n_layers": 3, "windowed_layers": (0, 2), **SPARSE[0]},
    {"n_layers": 3, "n_heads": (2, 0, 3), "biases": True, "normalization": "layernorm"},
    {"n_layers": 0, "normalization": "rmsnorm"},
]


def named(options):
    return " ".join(f"{name}={value}" for name, value in options.items())


@pytest.mark.parametrize("options", OPTIONS, ids=named)
def test_forward_equals_the_reference(options):
    model, tokens = build(**options), draw_tokens()
    torch.testing.assert_close(model(tokens), reference_logits(model, tokens), rtol=0, atol=1e-10)


def test_whatever_the_reference_defines_is_compared():
    assert untried(DEFINED, [build(**options).architecture for options in OPTIONS]) == []


@pytest.mark.parametrize("options", OPTIONS, ids=named)
def test_trace_is_the_forward_pass_and_adds_up(options):
    model, tokens = build(**options), draw_tokens()
    trace = model.trace(tokens)
    torch.testing.assert_close(trace.logits, model(tokens), rtol=0, atol=1e-12)
    stream = trace.embedding
    for layer, weights in zip(trace.layers, model.layers, strict=True):
        torch.testing.assert_close(layer.residual_in, stream)
        torch.testing.assert_close(layer.pattern.sum(-1), torch.ones_like(layer.pattern.sum(-1)))
        b_O = weights.attention.b_O
        by_head = layer.head_outputs.sum(1) + (0 if b_O is None else b_O)
        torch.testing.assert_close(layer.attention_out, by_head, rtol=0, atol=1e-12)
        if model.architecture.normalization_place != "post" or model.architecture.normalization == "none":
            written = weights.attention_out_norm(by_head)
            if layer.feed_forward_out is not None:
                written = written + weights.feed_forward_out_norm(layer.feed_forward_out)
            torch.testing.assert_close(layer.residual_out, stream + written, rtol=0, atol=1e-12)
        stream = layer.residual_out
    torch.testing.assert_close(trace.residual_final, model.final_norm(stream))
    torch.testing.assert_close(trace.logits, model.unembed(trace.residual_final))


@pytest.mark.parametrize("options", OPTIONS, ids=named)
def test_fused_attention_mixes_the_same(options):
    model, tokens = build(**options), draw_tokens()
    for layer, seen in zip(model.layers, model.trace(tokens).layers, strict=True):
        read = layer.read(seen.residual_in)
        torch.testing.assert_close(layer.attention.mix_fused(read), seen.z, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=named)
def test_no_token_changes_what_came_before_it(options):
    model, tokens = build(**options), draw_tokens()
    changed = tokens.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % D_VOCAB
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :4], after[:, :4], rtol=0, atol=1e-12)
    assert (before[:, 4:] - after[:, 4:]).abs().amax(2).min() > 1e-6


def test_pattern_and_values_are_those_of_torch():
    attention = build(positions="none").layers[0].attention
    x = torch.randn(BATCH, POS, D_MODEL, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    q, k, v = (torch.einsum("bpd,hde->bhpe", x, w) for w in (attention.W_Q, attention.W_K, attention.W_V))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(attention.mix(x)[1], expected)


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_masked_head_is_a_removed_head(positions):
    """Zeros in `head_mask` give the logits of the model without these heads; 1 changes nothing."""
    model = build(positions=positions, n_layers=2, n_heads=(3, 2), biases=True)
    kept = ([0, 2], [])
    smaller = build(positions=positions, n_layers=2, n_heads=(2, 0), biases=True)
    state = model.state_dict()
    for name in state:
        layer = 0 if name.startswith("layers.0.") else 1
        by_head = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "position_bias")
        if name.startswith("layers.") and name.endswith(by_head):
            state[name] = state[name][kept[layer]]
    smaller.load_state_dict(state)
    tokens = draw_tokens()
    mask = [torch.tensor([1.0, 0.0, 1.0]).double(), torch.zeros(2).double()]
    torch.testing.assert_close(model(tokens, mask), smaller(tokens), rtol=0, atol=1e-12)
    torch.testing.assert_close(model.trace(tokens, mask).logits, model(tokens, mask), rtol=0, atol=1e-12)
    ones = [torch.ones(3).double(), torch.ones(2).double()]
    torch.testing.assert_close(model(tokens, ones), model(tokens), rtol=0, atol=0)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_relative_scores_gather_the_bias_by_distance(n):
    bias = torch.randn(3, n, dtype=torch.float64, requires_grad=True)
    scores, expected = relative_scores(bias), torch.full((3, n, n), float("-inf"), dtype=torch.float64)
    for query in range(n):
        for key in range(query + 1):
            expected[:, query, key] = bias[:, query - key]
    torch.testing.assert_close(scores, expected)
    weight = torch.randn(3, n, n, dtype=torch.float64)
    gradients = [torch.autograd.grad((s.exp() * weight).sum(), bias, retain_graph=True)[0] for s in (scores, expected)]
    torch.testing.assert_close(*gradients)


def test_too_long_a_sequence_is_refused():
    with pytest.raises(ValueError, match=f"must fit n_ctx={N_CTX}, got 20 positions"):
        build()(draw_tokens(20))


def test_initialisation_repeats_with_its_seed():
    first, second, other = (
        Transformer(Architecture(**SMALL, n_heads=3, biases=True, normalization="layernorm"), D_VOCAB).initialize(
            torch.Generator().manual_seed(seed)
        )
        for seed in (0, 0, 1)
    )
    for name, parameter in first.state_dict().items():
        torch.testing.assert_close(parameter, second.state_dict()[name], rtol=0, atol=0)
    assert not torch.equal(first.W_E, other.W_E)
    assert abs(first.W_U.std().item() * D_MODEL**0.5 - 0.8) < 0.15
    assert all((p == 0).all() for n, p in first.named_parameters() if n.rpartition(".")[2].startswith("b_"))
