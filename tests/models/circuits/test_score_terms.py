"""Where scores come from: shares against a slow reference, and planted models whose scores have one source."""

import math
from collections import defaultdict

import pytest
import torch
from planted import BOS, blank_model, induction_model, query_composed_model
from random_models import D_VOCAB, random_model

from headstream.models import batching
from headstream.models.circuits.score_terms import ScoreTerm, score_terms
from headstream.models.nodes import MLP, Head, Terminal

SEQUENCES = torch.randint(D_VOCAB, (3, 12), generator=torch.Generator().manual_seed(1))
SEQUENCES[:, 0] = BOS
SETTINGS = [
    {"positions": "none"},
    {"positions": "relative", "biases": True},
    {"positions": "shortformer"},
    {"positions": "rotary", "normalization": "layernorm"},
    {"positions": "learned", "feed_forward": "relu", "qk_normalization": True},
    {"positions": "learned_shortformer", "qkv_biases": True, "qk_normalization": True},
    {"positions": "rotary", "rotary_fraction": 0.7, "rotary_pairs": "half-split", "norm_epsilon": 0.5},
    {"parallel_sublayers": True, "feed_forward": "geglu", "normalization": "layernorm", "norm_epsilon": 0.5},
    {"positions": "sinusoidal", "normalization": "rmsnorm", "normalization_place": "post", "biases": True},
]


def planted_text(d_vocab=29, n=64):
    tokens = torch.randint(1, d_vocab, (4, n + 1), generator=torch.Generator().manual_seed(0))
    tokens[:, 0] = BOS
    return tokens


def shares_of(terms, layer, head):
    """The sources of a head's scores, those that do nothing left out."""
    own = [term for term in terms if term.head == (layer, head)]
    return {(term.query_source, term.key_source): term.share for term in own if not abs(term.share) < 1e-6}


@pytest.mark.parametrize("options", SETTINGS)
def test_shares_sum_to_1(options):
    model = random_model(n_layers=3, n_heads=(2, 3, 2), **{"d_head": 6, **options})
    totals = defaultdict(float)
    for term in score_terms(model, SEQUENCES, BOS):
        totals[term.head] += term.share
    assert list(totals) == [Head(i, head) for i, n in enumerate((2, 3, 2)) for head in range(n)]
    assert list(totals.values()) == pytest.approx([1] * 7)


def test_shares_are_covariances_of_centred_rows():
    """One head, sequence, query and key at a time."""
    model = random_model(n_layers=2, n_heads=(2, 1))
    trace, own = model.trace(SEQUENCES[:, :-1]), model.layers[1].attention
    parts = {Terminal.EMBEDDING: trace.embedding} | {Head(0, i): trace.layers[0].head_outputs[:, i] for i in range(2)}
    covariances, variance, n_pairs = defaultdict(float), 0.0, 0
    for b, sequence in enumerate(SEQUENCES[:, :-1]):
        for i in range(len(sequence)):
            keys = [j for j in range(i + 1) if BOS not in (sequence[i], sequence[j])]
            row = defaultdict(list)
            for j in keys:
                for query_source, of_query in parts.items():
                    for key_source, of_key in parts.items():
                        product = (of_query[b, i] @ own.W_Q[0]) @ (of_key[b, j] @ own.W_K[0])
                        row[query_source, key_source].append(product / math.sqrt(own.W_Q.shape[2]))
                row["distance", "distance"].append(own.position_bias[0, i - j])
            n_pairs += len(keys)
            centred = {pair: torch.stack(scores) - sum(scores) / len(scores) for pair, scores in row.items()}
            whole = sum(centred.values())
            for pair, scores in centred.items():
                covariances[pair] += (scores @ whole).item()
            variance += (whole @ whole).item() if keys else 0
    found = [term for term in score_terms(model, SEQUENCES, BOS) if term.head == (1, 0)]
    assert len(found) == 3 * 3 + 1
    for term in found:
        covariance = covariances[term.query_source, term.key_source]
        assert term.share == pytest.approx(covariance / variance, abs=1e-10)
        assert term.covariance == pytest.approx(covariance / n_pairs, abs=1e-10)


def test_sources_that_are_not_told_apart_are_summed_up():
    model = random_model(n_layers=3, n_heads=(2, 3, 2), feed_forward="gelu")
    every, few = (score_terms(model, SEQUENCES, BOS, most) for most in (None, 2))
    for head in (Head(1, 2), Head(2, 1)):
        whole, kept = (
            {(term.query_source, term.key_source): term for term in terms if term.head == head}
            for terms in (every, few)
        )
        for side in (0, 1):
            told_apart = {pair[side] for pair in kept if isinstance(pair[side], Head | MLP)}
            assert len(told_apart) == 2
            sizes = defaultdict(float)
            for pair, term in whole.items():
                sizes[pair[side]] += term.covariance
            sublayers = [source for source in sizes if isinstance(source, Head | MLP)]
            sublayers.sort(key=lambda source: abs(sizes[source]))
            assert told_apart == set(sublayers[-2:])
            for source in (*told_apart, Terminal.EMBEDDING):
                assert sum(term.covariance for pair, term in kept.items() if pair[side] == source) == pytest.approx(
                    sizes[source]
                )
        for composition in ("direct", "Q", "K", "QK", "position", "feed-forward"):
            before, after = (
                sum(term.share for term in terms.values() if term.composition == composition) for terms in (whole, kept)
            )
            assert after == pytest.approx(before)


def test_batching_changes_nothing(monkeypatch):
    model = random_model(n_layers=2)
    whole = score_terms(model, SEQUENCES, BOS)
    monkeypatch.setattr(batching, "BATCH_NUMBERS", 1)
    for a, b in zip(whole, score_terms(model, SEQUENCES, BOS), strict=True):
        assert (a.head, a.query_source, a.key_source) == (b.head, b.query_source, b.key_source)
        assert a.share == pytest.approx(b.share)


def test_a_planted_induction_head_reads_the_previous_token_head_by_its_keys():
    terms = score_terms(induction_model(29, n_ctx=64), planted_text(), BOS)
    assert shares_of(terms, 0, 0) == {("distance", "distance"): pytest.approx(1)}
    assert shares_of(terms, 1, 1) == {(Terminal.EMBEDDING, Head(0, 0)): pytest.approx(1)}
    (found,) = [term for term in terms if term.head == (1, 1) and term.share > 0.5]
    assert found.composition == "K"
    assert found.covariance > 10


def test_planted_q_composition_is_on_the_query_side():
    terms = score_terms(query_composed_model(29, n_ctx=64), planted_text(), BOS)
    assert shares_of(terms, 1, 1) == {(Head(0, 0), Terminal.EMBEDDING): pytest.approx(1)}
    assert [term.composition for term in terms if term.head == (1, 1) and term.share > 0.5] == ["Q"]


def test_heads_that_attend_evenly_have_no_shares():
    terms = score_terms(blank_model((1, 1), 7, n_ctx=8), planted_text(7, 8), BOS)
    assert all(math.isnan(term.share) and term.covariance == 0 for term in terms)


@pytest.mark.parametrize(
    ("query_source", "key_source", "composition"),
    [
        (Terminal.EMBEDDING, Terminal.POSITION, "direct"),
        (Terminal.BIAS, Head(0, 1), "K"),
        (Head(3, 1), Terminal.POSITION, "Q"),
        (Head(0, 1), Head(1, 0), "QK"),
        (Head(0, 1), MLP(0), "feed-forward"),
        ("distance", "distance", "position"),
        ("other heads", Terminal.EMBEDDING, "Q"),
        (Head(0, 1), "other MLPs", "feed-forward"),
    ],
)
def test_compositions_are_named_by_what_either_side_reads(query_source, key_source, composition):
    assert ScoreTerm(Head(4, 0), query_source, key_source, 0.0, 0.0).composition == composition


def test_no_layers_no_scores():
    assert score_terms(random_model(n_layers=0), SEQUENCES, BOS) == []
