"""Layer-wise relevance propagation: on paper, against loops over single outputs, and what it keeps and loses."""

import pytest
import torch
from planted import blank_model, plant_fixed_offset
from random_models import D_VOCAB, random_model

from headstream.models.heads import relevance as rules
from headstream.models.heads.importance_methods import head_scores
from headstream.models.heads.references import mean_z
from headstream.models.heads.relevance import relevance
from headstream.models.heads.scoring_inputs import ScoringInputs


def tokens(n=2, length=6, seed=1):
    return torch.randint(D_VOCAB, (n, length), generator=torch.Generator().manual_seed(seed))


def share(r, terms):
    """What each term of one sum gets of its relevance."""
    eps = 1e-5
    up, down = sum(t for t in terms if t > 0), -sum(t for t in terms if t < 0)
    strength = up / (up + eps) + down / (down + eps)
    if strength == 0:
        return [0.0 for _ in terms]
    return [r / strength * abs(t) / ((up if t > 0 else down) + eps) for t in terms]


def test_terms_of_both_signs_get_half_each_on_paper():
    assert share(1.0, [3.0, 1.0, -2.0]) == pytest.approx([0.375, 0.125, 0.5], abs=1e-5)
    assert share(2.0, [3.0, 1.0]) == pytest.approx([1.5, 0.5], abs=1e-5)
    assert share(1.0, [1.0, -1e-9]) == pytest.approx([1, 0], abs=1e-3)
    assert share(1.0, [0.0, 0.0]) == [0, 0]


def matrix_loop(r, x, weight):
    found = torch.zeros_like(x)
    for j in range(len(r)):
        found += torch.tensor(share(r[j].item(), (x * weight[:, j]).tolist()), dtype=x.dtype)
    return found


def sum_loop(r, a, b):
    pairs = [share(r[i].item(), [a[i].item(), b[i].item()]) for i in range(len(r))]
    return torch.tensor(pairs, dtype=a.dtype).T


def relevance_loop(model, tokens_):
    """Of one sequence: heads' relevance [head, pos] a layer, and the stream's before each layer and at the end."""
    trace = model.trace(tokens_[None])
    n = len(tokens_)
    final = trace.residual_final[0]
    predicted = trace.logits[0].argmax(-1, keepdim=True)
    r = torch.stack([matrix_loop(torch.ones(1), final[p], model.W_U[:, predicted[p]]) for p in range(n)])
    heads, streams = [], [r]
    for layer, seen in list(zip(model.layers, trace.layers, strict=True))[::-1]:
        a, x, out, r = layer.attention, seen.residual_in[0], layer.attention_out_norm(seen.attention_out[0]), r.clone()
        if layer.feed_forward is not None:
            ff = layer.feed_forward
            middle = layer.attention_norm(x + out) if layer.post else x + out
            read = middle if layer.post else layer.feed_forward_norm(x if layer.parallel else middle)
            hidden = ff.hidden(read[None])[0]
            beside = torch.zeros_like(r)
            for p in range(n):
                out_p = layer.feed_forward_out_norm(seen.feed_forward_out[0, p])
                r[p], r_out = sum_loop(r[p], middle[p], out_p)
                through = matrix_loop(matrix_loop(r_out, hidden[p], ff.W_out), read[p], ff.W_in)
                (beside if layer.parallel else r)[p] += through
        z, read = seen.z[0], layer.read(seen.residual_in)[0]
        n_heads, _, d_value = z.shape
        r_z = torch.zeros_like(z)
        for p in range(n):
            r[p], r_out = sum_loop(r[p], x[p], out[p])
            r[p] += beside[p] if layer.feed_forward is not None else 0
            r_z[:, p] = matrix_loop(r_out, z[:, p].flatten(), a.W_O.flatten(0, 1)).view(n_heads, d_value)
        values = torch.stack([read @ a.W_V[h] + (0 if a.b_V is None else a.b_V[h]) for h in range(n_heads)])
        r_values = torch.zeros_like(values)
        for h in range(n_heads):
            for p in range(n):
                for j in range(d_value):
                    terms = (seen.pattern[0, h, p] * values[h, :, j]).tolist()
                    r_values[h, :, j] += torch.tensor(share(r_z[h, p, j].item(), terms), dtype=r.dtype)
        W_V = torch.cat([*a.W_V], dim=1)
        for p in range(n):
            r[p] += matrix_loop(r_values[:, p].flatten(), read[p], W_V)
        heads.append(r_z.sum(-1))
        streams.append(r)
    return heads[::-1], streams[::-1]


@pytest.mark.parametrize(
    "options",
    [
        {"n_heads": 2},
        {"n_heads": 2, "feed_forward": "gelu", "normalization": "layernorm", "biases": True},
        {"n_heads": 1, "feed_forward": "relu", "normalization": "rmsnorm", "normalization_place": "post"},
        {"n_heads": 2, "feed_forward": "relu", "normalization": "rmsnorm", "normalization_place": "output"},
        {"n_layers": 1, "n_heads": 2, "positions": "shortformer", "tied_embeddings": True},
        {"n_heads": 2, "n_key_value_heads": 1, "feed_forward": "swiglu", "d_mlp": 9},
        {"n_heads": 2, "feed_forward": "gelu", "d_mlp": 9, "parallel_sublayers": True, "normalization": "layernorm"},
    ],
)
def test_relevance_is_that_of_loops_over_single_outputs(options):
    model, text = random_model(**options), tokens()
    all_heads, all_streams = relevance(model, model.trace(text), None)
    for i in range(2):
        heads, streams = relevance_loop(model, text[i])
        for a, b in zip(all_heads, heads, strict=True):
            assert torch.allclose(a[i], b, atol=1e-10)
        for a, b in zip(all_streams, streams, strict=True):
            assert torch.allclose(a[i], b, atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"n_layers": 3},
        {"n_layers": 3, "biases": True, "feed_forward": "gelu", "normalization": "layernorm"},
        {"normalization": "rmsnorm", "normalization_place": "post", "positions": "rotary", "d_head": 6},
        {"n_layers": 3, "n_heads": (1, 0, 2)},
        {"n_layers": 0},
    ],
)
def test_relevance_is_kept_and_never_negative(options):
    model, text = random_model(**options), tokens(n=3, length=11)
    all_heads, all_streams = relevance(model, model.trace(text), None)
    assert len(all_streams) == len(model.layers) + 1
    for stream in all_streams:
        assert (stream >= 0).all()
        assert torch.allclose(stream.sum((1, 2)), torch.full((3,), 11.0, dtype=torch.float64), atol=1e-10)
    for heads in all_heads:
        assert (heads.sum((1, 2)) <= 11).all()


def test_what_a_bias_alone_explains_is_lost():
    model, text = random_model(n_layers=1, output_biases=True), tokens()
    model.layers[0].attention.W_O.zero_()
    trace = model.trace(text)
    _, streams = relevance(model, trace, None)
    bias, x = trace.layers[0].attention_out, trace.layers[0].residual_in
    kept, _ = rules._to_terms(streams[1], torch.stack([x, bias]), dim=0)
    assert torch.allclose(streams[0], kept)
    assert (streams[0].sum() < streams[1].sum()).all()


def test_where_all_terms_raise_the_logit_each_head_gets_its_part_of_it():
    model = random_model(n_layers=1, n_heads=3)
    for parameter in model.parameters():
        parameter.abs_()
    trace = model.trace(tokens())
    predicted = trace.logits.argmax(-1)
    parts = (trace.layers[0].head_outputs * model.W_U.T[predicted][:, None]).sum(-1)
    logit = trace.logits.gather(-1, predicted[..., None])[..., 0]
    assert torch.allclose(relevance(model, trace, None)[0][0], parts / logit[:, None], rtol=1e-4)


def test_the_only_head_that_writes_gets_all_and_the_others_nothing():
    model = blank_model((3, 2), 29, n_ctx=32)
    plant_fixed_offset(model, layer=0, head=1, offset=1, into="previous")
    plant_fixed_offset(model, layer=1, head=0, offset=1, of="previous")
    text = torch.randint(1, 29, (4, 33), generator=torch.Generator().manual_seed(0))
    text[:, 0] = 0
    first, second = head_scores("lrp", ScoringInputs(model, text, mean_z(model, text)))
    predicted = (32 - 3) / 32  # from the first position on whose token before the last is no BOS
    assert first.tolist() == pytest.approx([0, predicted, 0], abs=0.04)
    assert second.tolist() == pytest.approx([predicted, 0], abs=0.04)


def test_pruned_heads_pass_nothing_on():
    model, text = random_model(), tokens(n=3)
    mask = [torch.tensor([1.0, 0.0, 1.0]), torch.ones(3)]
    heads, streams = relevance(model, model.trace(text, mask, mean_z(model, text)), mask)
    assert (heads[0][:, 1] == 0).all()
    assert (heads[0][:, [0, 2]] > 0).all()
    assert (streams[0].sum() <= streams[1].sum() + 1e-9).all()
