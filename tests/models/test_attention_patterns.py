"""Sparse attention: against a slow loop and against full attention with a mask, in value, gradient and memory."""

import math

import pytest
import torch
from planted import BOS, induction_model
from random_models import D_HEAD, D_VALUE, D_VOCAB, N_CTX, random_model
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headstream.models.architecture import Architecture
from headstream.models.attention_patterns import at_every_distance, keep_top, windowed_attention
from headstream.models.circuits.causal_checks import causal_checks
from headstream.models.circuits.full_circuits import position_spread
from headstream.models.circuits.identities import identity_errors
from headstream.models.circuits.paths import head_paths, paths_by_order, virtual_head_paths, virtual_heads_of
from headstream.models.circuits.score_terms import score_terms
from headstream.models.frozen import freeze_run
from headstream.models.heads.attended_keys import attention_on, induction_keys
from headstream.models.heads.patterns import pattern_statistics, visible_keys
from headstream.models.nodes import Edge, Head
from headstream.models.stimuli import Stimuli
from headstream.models.transformer import Transformer

SPARSE = [
    {"attention": "local", "attention_window": 5},
    {"attention": "strided", "attention_window": 3, "stride": 4},
    {"attention": "top_k", "top_k": 3},
]
TOKENS = torch.randint(1, D_VOCAB, (3, N_CTX), generator=torch.Generator().manual_seed(1))
TOKENS[:, 0] = BOS


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def looped(q, k, v, seen, stride):
    """Query by query."""
    mixed = torch.zeros(*q.shape[:3], v.shape[3], dtype=v.dtype)
    for head in range(q.shape[1]):
        for query in range(q.shape[2]):
            keys = [query - i * stride for i in range(seen.shape[1]) if query >= i * stride]
            own = seen[head % len(seen), : len(keys)]
            scores = torch.einsum("bd,bkd->bk", q[:, head, query], k[:, head, keys]) + own
            mixed[:, head, query] = torch.einsum("bk,bkv->bv", scores.softmax(-1), v[:, head, keys])
    return mixed


@pytest.mark.parametrize("n", [1, 2, 7, 53, 131])
@pytest.mark.parametrize(("window", "stride"), [(1, 1), (2, 1), (17, 1), (131, 1), (1, 3), (5, 3), (23, 2), (2, 61)])
@pytest.mark.parametrize("n_biased", [1, 3])
def test_windowed_attention_equals_a_loop(n, window, stride, n_biased):
    q, k, v = draw(2, 3, n, D_HEAD), draw(2, 3, n, D_HEAD, seed=1), draw(2, 3, n, D_VALUE, seed=2)
    seen = draw(n_biased, window, seed=3)
    expected = looped(q, k, v, seen, stride)
    torch.testing.assert_close(windowed_attention(q, k, v, seen, stride), expected, rtol=0, atol=1e-10)
    single = windowed_attention(*(x.float() for x in (q, k, v, seen)), stride)
    torch.testing.assert_close(single.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("n", "window", "stride"), [(7, 3, 1), (37, 17, 1), (11, 2, 3)])
def test_windowed_attention_has_the_right_gradient(n, window, stride):
    shapes = ((1, 2, n, 2), (1, 2, n, 2), (1, 2, n, 3), (2, window))
    inputs = [draw(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]
    assert torch.autograd.gradcheck(lambda *x: windowed_attention(*x, stride), inputs, fast_mode=True)


@pytest.mark.parametrize("positions", ["relative", "shortformer", "rotary", "learned", "sinusoidal", "none"])
@pytest.mark.parametrize("sparse", SPARSE)
def test_gradients_are_those_of_the_whole_pattern(positions, sparse):
    model = random_model(n_layers=2, d_head=6, positions=positions, biases=True, **sparse).requires_grad_()
    weight, parameters = draw(3, N_CTX, D_VOCAB), list(model.parameters())
    fused, whole = (
        torch.autograd.grad((logits.softmax(-1) * weight).sum(), parameters)
        for logits in (model(TOKENS), model.trace(TOKENS).logits)
    )
    for one, other in zip(fused, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_distances_are_spread():
    seen = torch.tensor([[1.0, 2.0, 3.0]])
    hidden = -math.inf
    assert at_every_distance(seen, 2, 7).tolist() == [[1, hidden, 2, hidden, 3, hidden, hidden]]
    assert at_every_distance(seen, 2, 3).tolist() == [[1, hidden, 2]]
    assert at_every_distance(seen, 1, 4).tolist() == [[1, 2, 3, hidden]]


@pytest.mark.parametrize(
    "sparse", [{"attention": "local", "attention_window": N_CTX}, {"attention": "top_k", "top_k": N_CTX}]
)
def test_a_pattern_that_sees_everything_is_full_attention(sparse):
    full = random_model()
    model = random_model(**sparse)
    torch.testing.assert_close(model(TOKENS), full(TOKENS), rtol=0, atol=1e-12)
    torch.testing.assert_close(model.trace(TOKENS).logits, full(TOKENS), rtol=0, atol=1e-12)


def test_strided_without_gaps_is_local():
    local, strided = (
        random_model(attention_window=5, **options)
        for options in ({"attention": "local"}, {"attention": "strided", "stride": 1})
    )
    torch.testing.assert_close(local(TOKENS), strided(TOKENS), rtol=0, atol=0)


def test_a_window_of_one_key_is_the_query_itself():
    model = random_model(n_layers=1, attention="local", attention_window=1)
    attention, read = model.layers[0].attention, model.embed(TOKENS)
    torch.testing.assert_close(attention.mix_fused(read), attention.queries_keys_values(read)[2])


# The highest scores.


def test_top_keys_equal_a_loop_and_ties_go_to_the_nearest():
    scores = torch.randint(4, (2, 3, 13, 13), generator=torch.Generator().manual_seed(0)).double()
    scores[:, :, torch.ones(13, 13, dtype=torch.bool).triu(1)] = -math.inf
    for k in (1, 2, 5, 13, 20):
        expected = torch.full_like(scores, -math.inf)
        for *place, query in torch.cartesian_prod(torch.arange(2), torch.arange(3), torch.arange(13)).tolist():
            row = scores[*place, query].tolist()
            for key in sorted(range(query + 1), key=lambda key: (-row[key], -key))[:k]:
                expected[*place, query, key] = row[key]
        torch.testing.assert_close(keep_top(scores, k), expected)


def test_only_kept_scores_have_a_gradient():
    scores = draw(2, 11, 11).requires_grad_()
    keep_top(scores, 3).softmax(-1).square().sum().backward()
    assert ((scores.grad != 0) == keep_top(scores, 3).isfinite()).all()


# Memory.


class LargestTensor(TorchDispatchMode):
    """Counts the numbers of the largest tensor that any operation returns, backward passes included."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.numbers = max([self.numbers, *(x.numel() for x in tree_leaves(out) if isinstance(x, torch.Tensor))])
        return out


@pytest.mark.parametrize("stride", [1, 7])
def test_8192_positions_never_make_a_square(stride):
    n, window = 8192, 128
    architecture = Architecture(
        n_layers=1, n_heads=1, d_model=8, n_ctx=n, attention="strided", attention_window=window, stride=stride
    )
    model = Transformer(architecture, 11).initialize(torch.Generator().manual_seed(0))
    with LargestTensor() as largest:
        model(torch.arange(n)[None] % 11).square().mean().backward()
    assert largest.numbers <= 2 * window * (n + stride * window)
    assert model.layers[0].attention.position_bias.grad.count_nonzero() == window


# What is measured on patterns.


@pytest.mark.parametrize("sparse", SPARSE)
@pytest.mark.parametrize("options", [{}, {"positions": "learned", "normalization": "layernorm", "biases": True}])
def test_paths_sum_to_the_logits(sparse, options):
    model = random_model(n_layers=3, n_heads=(2, 0, 1), **sparse, **options)
    run = freeze_run(model, TOKENS)
    orders = paths_by_order(run).orders
    torch.testing.assert_close(model.unembed(orders.sum(0)), model(TOKENS), rtol=0, atol=1e-10)
    torch.testing.assert_close(sum(part for _, part in head_paths(run)), orders[1], rtol=0, atol=1e-10)
    virtual = virtual_head_paths(run, virtual_heads_of((2, 0, 1)))
    torch.testing.assert_close(sum(part for _, part in virtual), orders[2], rtol=0, atol=1e-10)


@pytest.mark.parametrize("sparse", SPARSE)
def test_identities_hold_or_are_absent(sparse):
    errors = identity_errors(random_model(n_layers=1, **sparse), TOKENS)
    absent = {"pattern-bilinear", "one-head-is-attention"} if sparse["attention"] == "top_k" else set()
    assert {"paths-sum", "terms-add", "heads-independent", "source-decides"} <= set(errors)
    assert ({"pattern-bilinear", "one-head-is-attention"} & set(errors)) == (
        {"pattern-bilinear", "one-head-is-attention"} - absent
    )
    assert max(errors.values()) < 1e-10


@pytest.mark.parametrize("sparse", SPARSE)
def test_shares_of_score_terms_sum_to_1(sparse):
    model, totals = (
        random_model(n_layers=2, n_heads=2, **sparse),
        dict.fromkeys(map(Head, (0, 0, 1, 1), (0, 1, 0, 1)), 0.0),
    )
    for term in score_terms(model, TOKENS, BOS):
        totals[term.head] += term.share
    assert list(totals.values()) == pytest.approx([1] * 4)


@pytest.mark.parametrize("sparse", SPARSE)
def test_causal_checks_select_keys_anew(sparse):
    """Without the writer in the reader's queries, by a model rerun by hand."""
    model = random_model(n_layers=2, n_heads=1, **sparse)
    stimuli = Stimuli(BOS, TOKENS, TOKENS[:0], None, None, torch.arange(len(TOKENS)))
    trace, attention = model.trace(TOKENS[:, :-1]), model.layers[1].attention
    x = trace.layers[1].residual_in
    q, k, _ = attention.queries_keys_values(x)
    q = q - trace.layers[0].head_outputs @ attention.W_Q
    bias, moved = attention.position_bias[0], 0.0
    for b, query in torch.cartesian_prod(torch.arange(3), torch.arange(N_CTX - 1)).tolist():
        keys = [key for key in range(query + 1) if query - key in model.architecture.visible_distances]
        scores = {key: (q[b, 0, query] @ k[b, 0, key] / math.sqrt(D_HEAD) + bias[query - key]).item() for key in keys}
        kept = sorted(scores, key=scores.get, reverse=True)[: model.architecture.kept_keys]
        row = torch.zeros(N_CTX - 1, dtype=torch.float64)
        row[kept] = torch.tensor([scores[key] for key in kept]).double().softmax(0)
        moved += (row - trace.layers[1].pattern[b, 0, query]).abs().sum().item() / 2
    (found,) = causal_checks(model, stimuli, [(Edge(Head(0, 0), Head(1, 0), "Q"),)])
    assert found.pattern_change == pytest.approx(moved / (3 * (N_CTX - 1)), abs=1e-6)
    assert found.pattern_change > 1e-3


@pytest.mark.parametrize("distances", [range(1), range(5), range(0, 12, 4), range(11)])
def test_visible_keys_are_those_at_the_distances_seen(distances):
    visible = visible_keys(TOKENS[:, :11], BOS, with_bos=True, distances=distances)
    for query in range(11):
        seen = [key for key in range(11) if query - key in distances] if query else []
        assert visible[0, query].nonzero().flatten().tolist() == seen


def test_even_attention_to_a_window_has_entropy_1():
    model = random_model(positions="none", attention="strided", attention_window=3, stride=2)
    for layer in model.layers:
        layer.attention.W_Q.zero_()
    pattern = model.trace(TOKENS).layers[0].pattern
    visible = visible_keys(TOKENS, BOS, with_bos=True, distances=model.architecture.visible_distances)
    entropy = pattern_statistics(pattern, visible)["entropy"]
    torch.testing.assert_close(entropy[:, :, 2:], torch.ones_like(entropy[:, :, 2:]))
    assert entropy[:, :, :2].isnan().all()


@pytest.mark.parametrize("distances", [range(5), range(0, 12, 4)])
def test_spread_of_positions_is_that_of_visible_keys(distances):
    bias = draw(3, N_CTX)
    variances = [bias[:, [d for d in distances if d <= query]].var(1, unbiased=False) for query in range(N_CTX)]
    torch.testing.assert_close(position_spread(bias, distances), torch.stack(variances).mean(0).sqrt())


@pytest.mark.parametrize(
    ("sparse", "finds_it"),
    [
        ({"attention": "local", "attention_window": 30}, True),
        ({"attention": "local", "attention_window": 20}, False),  # what followed lies 23 back
        ({"attention": "strided", "attention_window": 30, "stride": 2}, False),  # the token before can't be seen
        ({"attention": "top_k", "top_k": 2}, True),
    ],
)
def test_planted_induction_works_where_its_keys_are_seen(sparse, finds_it):
    full = induction_model(61, n_ctx=64)
    model = Transformer(Architecture(**{**full.architecture.model_dump(), **sparse}), 61)
    model.load_state_dict(full.state_dict())
    tokens = torch.cat([torch.zeros(1, dtype=torch.int64), torch.arange(1, 25).repeat(2)])[None]
    attention = attention_on(model.trace(tokens).layers[1].pattern[:, 1:], induction_keys(tokens, BOS))
    assert (attention.nanmean() > 0.9) == finds_it
    assert finds_it or attention.nanmean() < 0.1
