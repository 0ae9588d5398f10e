"""Path expansion: all paths together are the model, in every setting, and each is what paper says."""

from itertools import product

import pytest
import torch
from planted import induction_model
from random_models import D_VOCAB, N_CTX, random_model

from headstream.models.circuits.paths import head_paths, paths_by_order, virtual_head_paths, virtual_heads_of
from headstream.models.frozen import freeze_run
from headstream.models.nodes import Head

TOKENS = torch.randint(D_VOCAB, (2, 11), generator=torch.Generator().manual_seed(1))
HEADS = (2, 3, 2)
NORMS = [("none", "pre"), ("layernorm", "pre"), ("layernorm", "post"), ("rmsnorm", "pre"), ("rmsnorm", "post")]
POSITIONS = ["relative", "shortformer", "rotary", "learned", "sinusoidal", "none"]
SETTINGS = [
    {
        "positions": positions,
        "normalization": norm,
        "normalization_place": place,
        "biases": i % 2 == 0,
        "qk_normalization": i % 3 == 0,
        "feed_forward": ["none", "relu", "gelu"][i % 7 % 3],
    }
    for i, (positions, (norm, place)) in enumerate(product(POSITIONS, NORMS))
]
SETTINGS += [
    {
        **{"normalization": norm, "normalization_place": place, "biases": True, "feed_forward": "gelu"},
        **{"qk_normalization": True, "qk_normalization_over": "layer", "n_key_value_heads": 1},
    }
    for norm, place in (("layernorm", "output"), ("layernorm", "both"), ("rmsnorm", "output"), ("rmsnorm", "both"))
]
SETTINGS.append(
    {"logit_cap": 1.5, "score_cap": 2.0, "embedding_scale": 3.0, "normalization": "rmsnorm", "norm_offset": True}
)


def named(options):
    return "-".join(str(value) for value in options.values() if value not in (False, "none"))


def build(**options):
    return random_model(n_layers=3, n_heads=HEADS, **{"d_head": 6, **options})


def all_parts(run):
    paths = paths_by_order(run)
    return paths.orders.sum(0) + (0 if paths.feed_forward is None else paths.feed_forward)


@pytest.mark.parametrize("options", SETTINGS, ids=named)
def test_paths_sum_to_the_logits(options):
    model = build(**options)
    run = freeze_run(model, TOKENS)
    torch.testing.assert_close(model.unembed(all_parts(run)), run.trace.logits, rtol=0, atol=1e-10)
    single = model.float()
    run = freeze_run(single, TOKENS)
    error = (single.unembed(all_parts(run)) - run.trace.logits).abs().max() / run.trace.logits.std()
    assert error < 1e-4


@pytest.mark.parametrize("options", SETTINGS, ids=named)
def test_single_paths_sum_to_their_order(options):
    run = freeze_run(build(**options), TOKENS)
    orders = paths_by_order(run).orders
    heads, virtual = dict(head_paths(run)), dict(virtual_head_paths(run, virtual_heads_of(HEADS)))
    assert [str(path[0]) for path in heads] == ["L0H0", "L0H1", "L1H0", "L1H1", "L1H2", "L2H0", "L2H1"]
    assert len(virtual) == 2 * 3 + 2 * 2 + 3 * 2
    torch.testing.assert_close(sum(heads.values()), orders[1], rtol=0, atol=1e-10)
    torch.testing.assert_close(sum(virtual.values()), orders[2], rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", SETTINGS, ids=named)
def test_sources_sum_to_the_stream_and_to_the_scores(options):
    run = freeze_run(build(**options), TOKENS)
    streams = [*(layer.trace.residual_in for layer in run.layers), run.trace.residual_final]
    for sources, stream in zip(run.sources(), streams, strict=True):
        torch.testing.assert_close(sum(sources.values()), stream, rtol=0, atol=1e-10)
    for layer, sources in zip(run.layers, run.sources(), strict=False):
        q, k, _ = layer.attention.queries_keys_values(layer.read)
        by_query, by_key = layer.query_and_key_sources(sources)
        torch.testing.assert_close(sum(by_query.values()), q, rtol=0, atol=1e-10)
        torch.testing.assert_close(sum(by_key.values()), k, rtol=0, atol=1e-10)


def test_two_layers_are_the_formula_of_the_paper():
    """X W_U, A X OV W_U and A2 A1 X OV1 OV2 W_U, one sequence, head and pair at a time."""
    model = random_model(n_layers=2, n_heads=(2, 3))
    run = freeze_run(model, TOKENS)
    first, second = (layer.attention for layer in run.layers)
    for b, sequence in enumerate(TOKENS):
        x = model.W_E[sequence]
        torch.testing.assert_close(paths_by_order(run).orders[0, b], x)
        for (head,), part in head_paths(run):
            a, seen = run.layers[head.layer].attention, run.layers[head.layer].trace
            expected = seen.pattern[b, head.head] @ x @ a.W_V[head.head] @ a.W_O[head.head]
            torch.testing.assert_close(part[b], expected)
        for (one, two), part in virtual_head_paths(run, virtual_heads_of((2, 3))):
            pattern = run.layers[1].trace.pattern[b, two.head] @ run.layers[0].trace.pattern[b, one.head]
            OV = first.W_V[one.head] @ first.W_O[one.head] @ second.W_V[two.head] @ second.W_O[two.head]
            torch.testing.assert_close(part[b], pattern @ x @ OV)


@pytest.mark.parametrize("options", [{}, {"normalization": "layernorm", "normalization_place": "post", "biases": True}])
def test_orders_are_those_of_repeated_reruns(options):
    """Elhage et al.: rerun with heads that read what the last rerun had; each rerun has one order more."""
    model = build(**options)
    run = freeze_run(model, TOKENS)
    outputs = [torch.zeros_like(layer.trace.residual_in) for layer in run.layers]
    orders = paths_by_order(run).orders
    for order in range(len(run.layers) + 1):
        stream, read = run.trace.embedding, []
        for layer, output in zip(run.layers, outputs, strict=True):
            read.append(stream)
            stream = layer.carry(stream) + output + layer.bias() + layer.value_bias()
        final = run.final(stream)
        torch.testing.assert_close(final, orders[: order + 1].sum(0), rtol=0, atol=1e-10)
        outputs = [layer.all_heads(stream) for layer, stream in zip(run.layers, read, strict=True)]


def test_only_wanted_virtual_heads_come():
    run = freeze_run(build(), TOKENS)
    wanted = [(Head(0, 1), Head(2, 0)), (Head(1, 2), Head(2, 1))]
    assert [path for path, _ in virtual_head_paths(run, wanted)] == wanted


@pytest.mark.parametrize("heads", [(), (0,), (0, 2), (2, 0)])
def test_models_without_some_heads_have_paths(heads):
    model = random_model(n_layers=len(heads), n_heads=heads)
    run = freeze_run(model, TOKENS)
    torch.testing.assert_close(model.unembed(all_parts(run)), run.trace.logits)
    assert len(list(head_paths(run))) == sum(heads)
    assert list(virtual_head_paths(run, virtual_heads_of(heads))) == []


def test_planted_paths_are_the_only_ones():
    model = induction_model(29, n_ctx=32)
    run = freeze_run(model, torch.randint(1, 29, (3, 32), generator=torch.Generator().manual_seed(0)))
    assert {str(path[0]) for path, part in head_paths(run) if part.abs().max() > 1e-3} == {"L0H0", "L1H1"}
    assert not any(part.any() for _, part in virtual_head_paths(run, virtual_heads_of((2, 2))))


def test_a_feed_forward_layer_is_a_part_of_its_own():
    paths = paths_by_order(freeze_run(build(feed_forward="gelu"), TOKENS))
    assert paths.feed_forward is not None
    assert len(paths.orders) == 4
    model = build(feed_forward="gelu")
    for layer in model.layers:
        layer.feed_forward.W_out.zero_()
    assert not paths_by_order(freeze_run(model, TOKENS)).feed_forward.any()


def test_n_ctx_bounds_a_run():
    with pytest.raises(ValueError, match="n_ctx"):
        freeze_run(build(), torch.zeros(1, N_CTX + 1, dtype=torch.int64))
