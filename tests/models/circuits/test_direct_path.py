"""The direct path against bigrams: planted ones are fitted exactly, and numbers that one can do on paper."""

import math

import pytest
import torch
from planted import BOS, bigram_model, blank_model, dimensions, induction_model, plant_fixed_offset
from random_models import D_VOCAB, random_model

from headstream.models.circuits import direct_path
from headstream.models.circuits.direct_path import Bigrams, bigram_logits, fit_bigrams, mean_contributions


def bigrams_of(counts):
    """From a matrix of counts, [source, target]."""
    source, target = counts.nonzero().T
    return Bigrams(source, target, counts[source, target])


def random_counts(d_vocab, seed=0):
    return torch.randint(1, 200, (d_vocab, d_vocab), generator=torch.Generator().manual_seed(seed))


def every_token(d_vocab, n_ctx=31, n=40):
    return torch.randint(d_vocab, (n, n_ctx + 1), generator=torch.Generator().manual_seed(2))


def fit(model, counts, text, max_sources=10_000):
    bigrams = bigrams_of(counts)
    logits = bigram_logits(model, bigrams, mean_contributions(model, text), BOS, max_sources)
    return fit_bigrams(logits, int(counts.sum()))


def log_probabilities(counts):
    return (counts / counts.sum(1, keepdim=True)).log()


def test_planted_bigrams_are_explained_in_full():
    counts = random_counts(17)
    found = fit(bigram_model(log_probabilities(counts)).double(), counts, every_token(17))
    assert found["explained_share"] == pytest.approx(1, abs=1e-6)
    assert found["kl_nats"] == pytest.approx(0, abs=1e-6)
    assert found["correlation"] == pytest.approx(1, abs=1e-6)
    assert math.isnan(found["gap_coefficient"])
    assert found["n_sources"] == found["n_gap_sources"] == 16  # BOS is none
    assert found["coverage"] == pytest.approx(1 - counts[BOS].sum().item() / counts.sum().item())


def context_model(direct, by_head):
    """The direct path says `direct` of what follows a token, a head `by_head`, by the token before: [token, logits]."""
    model = blank_model((1,), len(direct), n_ctx=32)
    model.W_U[dimensions(model, "token")] = direct
    model.W_U[dimensions(model, "next_token")] = by_head
    plant_fixed_offset(model, layer=0, head=0, offset=1)
    return model.double()


def text_drawn_from(counts, seed=5, n=800, n_ctx=32):
    """Sequences in which tokens follow each other as counted; BOS opens them and doesn't come again."""
    generator = torch.Generator().manual_seed(seed)
    tokens = [torch.full((n,), BOS), torch.randint(1, len(counts), (n,), generator=generator)]
    for _ in range(n_ctx - 1):
        tokens.append(torch.multinomial(counts[tokens[-1]].double(), 1, generator=generator)[:, 0])
    return torch.stack(tokens, dim=1)


@pytest.mark.parametrize(("share", "wanted"), [(1, -1), (0.5, -0.5), (0, 0), (-0.5, 0.5)])
def test_the_part_that_the_direct_path_fills_in_is_found_on_the_text_of_the_bigrams(share, wanted):
    """On other text the head says something else after each token, and a gap that is filled is missed."""
    generator = torch.Generator().manual_seed(3)
    counts, other_counts = ((4 + 2 * torch.randn(17, 17, generator=generator)).exp().long() + 1 for _ in range(2))
    for own in (counts, other_counts):
        own[BOS], own[:, BOS] = 0, 0
    by_head = 2 * torch.randn(17, 17, generator=generator, dtype=torch.float64)
    by_head[BOS] = 0
    log_p = log_probabilities(counts.double()).nan_to_num(neginf=0)
    text = text_drawn_from(counts)
    left = mean_contributions(context_model(log_p, by_head), text).rest @ context_model(log_p, by_head).W_U
    model = context_model(log_p - share * left.nan_to_num(), by_head)
    assert fit(model, counts, text)["gap_coefficient"] == pytest.approx(wanted, abs=1e-6)
    again = text_drawn_from(counts, seed=6)
    assert fit(model, counts, again)["gap_coefficient"] == pytest.approx(wanted, abs=0.1)
    if share == 1:
        assert fit(model, counts, text_drawn_from(other_counts))["gap_coefficient"] > -0.5


def test_logits_that_do_not_tell_sources_apart_explain_nothing():
    counts = random_counts(17)
    counts[BOS] = 0
    unigram = (counts.sum(0) / counts.sum()).log().expand(17, 17)
    found = fit(bigram_model(unigram).double(), counts, every_token(17))
    assert found["explained_share"] == pytest.approx(0, abs=1e-6)
    assert found["direct_loss_nats"] == pytest.approx(found["unigram_loss_nats"], abs=1e-6)


def test_losses_on_paper():
    """After 1 come 2 and 3 as 3 to 1, after 2 always 1; the direct path says nothing: log 4 a token."""
    counts = torch.zeros(4, 4, dtype=torch.int64)
    counts[1, 2], counts[1, 3], counts[2, 1], counts[3, 1] = 30, 10, 40, 19  # 3 comes too seldom to be a source
    found = fit(bigram_model(torch.zeros(4, 4)).double(), counts, every_token(4))
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert found["bigram_loss_nats"] == pytest.approx(entropy / 2)
    unigram = -(0.5 * math.log(0.5) + 0.375 * math.log(0.375) + 0.125 * math.log(0.125))
    assert found["unigram_loss_nats"] == pytest.approx(unigram)
    assert found["direct_loss_nats"] == pytest.approx(math.log(4))
    assert found["kl_nats"] == pytest.approx(math.log(4) - entropy / 2)
    assert found["explained_share"] == pytest.approx((unigram - math.log(4)) / (unigram - entropy / 2))
    assert found["n_sources"] == 2
    assert found["coverage"] == pytest.approx(80 / 99)
    assert math.isnan(found["correlation"])


@pytest.mark.parametrize("chunk", [1, 2**22])
def test_fit_equals_whole_matrices(monkeypatch, chunk):
    monkeypatch.setattr(direct_path, "_CHUNK_NUMBERS", chunk)
    model, counts = random_model(n_layers=1, biases=True), random_counts(D_VOCAB)
    counts[torch.rand(counts.shape, generator=torch.Generator().manual_seed(4)) < 0.5] = 0
    text = every_token(D_VOCAB, n_ctx=19, n=60)
    found = fit(model, counts, text)
    kept = (counts.sum(1) >= 20) & (torch.arange(D_VOCAB) != BOS)
    constant = model.layers[0].attention.b_O
    direct = ((model.W_E + constant) @ model.W_U + model.b_U).log_softmax(1)[kept]
    joint, log_p = counts[kept].double() / counts[kept].sum(), log_probabilities(counts.double())[kept]
    assert found["direct_loss_nats"] == pytest.approx(-(joint * direct).sum().item())
    assert found["bigram_loss_nats"] == pytest.approx(-(joint * log_p)[joint > 0].sum().item())
    by_row = joint / joint.sum(1, keepdim=True)

    def correlation(wanted):
        x, y = direct.masked_fill(joint == 0, 0), wanted.masked_fill(joint == 0, 0)
        x, y = (v - (by_row * v).sum(1, keepdim=True) for v in (x, y))
        return ((joint * x * y).sum() / ((joint * x * x).sum() * (joint * y * y).sum()).sqrt()).item()

    def coefficient(*regressors):
        """Of the last of two regressors, by least squares over all bigrams."""
        columns = [v.masked_fill(joint == 0, 0) for v in (*regressors, direct)]
        columns = [(v - (by_row * v).sum(1, keepdim=True)) * joint.sqrt() for v in columns]
        *x, y = (v.flatten() for v in columns)
        return torch.linalg.lstsq(torch.stack(x, dim=1), y[:, None]).solution[-1].item()

    assert found["correlation"] == pytest.approx(correlation(log_p))
    tokens = text[:, :-1]
    rest = model(tokens) - (model.W_E[tokens] + constant) @ model.W_U - model.b_U
    mean_rest = torch.stack([rest[tokens == token].mean(0) for token in range(D_VOCAB)])[kept]
    assert found["n_gap_sources"] == found["n_sources"]
    assert found["gap_coefficient"] == pytest.approx(coefficient(log_p, mean_rest))


def test_norms_are_held_where_they_were():
    """Zero layers are the direct path alone, so with norms it has the model's own loss."""
    model, counts = random_model(n_layers=0, normalization="layernorm", biases=True), random_counts(D_VOCAB)
    text = every_token(D_VOCAB, n_ctx=19)
    means = mean_contributions(model, text)
    seen = means.n_positions > 0
    tokens = torch.arange(D_VOCAB)[seen]
    torch.testing.assert_close(means.direct[seen], model.final_norm(model.W_E[tokens]))
    torch.testing.assert_close(means.rest[seen], torch.zeros_like(means.rest[seen]), rtol=0, atol=1e-12)
    direct = bigram_logits(model, bigrams_of(counts), means, BOS, 10_000)
    logits = model(torch.arange(D_VOCAB)[:, None])[:, 0].log_softmax(1)
    torch.testing.assert_close(direct.direct - direct.log_normaliser, logits[direct.source, direct.target])


def test_what_the_text_lacks_is_no_gap_and_under_norms_no_source():
    text, counts = every_token(5, n_ctx=19), random_counts(D_VOCAB)
    plain = fit(random_model(n_layers=1), counts, text)
    assert plain["n_sources"] == D_VOCAB - 1
    assert plain["n_gap_sources"] == 4
    assert fit(random_model(n_layers=1, normalization="rmsnorm"), counts, text)["n_sources"] == 4


def test_the_most_frequent_sources_are_kept():
    counts = random_counts(D_VOCAB)
    model = random_model(n_layers=1)
    means = mean_contributions(model, every_token(D_VOCAB, n_ctx=19))
    found = bigram_logits(model, bigrams_of(counts), means, BOS, max_sources=3)
    frequent = counts.sum(1).argsort(descending=True).tolist()
    assert found.source.unique().tolist() == sorted([token for token in frequent if token != BOS][:3])


def test_the_planted_induction_model_knows_no_bigrams():
    found = fit(induction_model(17, n_ctx=32), random_counts(17), every_token(17))
    assert found["explained_share"] < 0.01
    assert math.isnan(found["correlation"])


def test_no_source_no_fit():
    found = fit(random_model(n_layers=1), torch.ones(D_VOCAB, 1, dtype=torch.int64), every_token(D_VOCAB, n_ctx=19))
    assert found["n_sources"] == 0
    assert found["coverage"] == 0
    assert math.isnan(found["explained_share"])
    assert math.isnan(found["correlation"])


def test_one_source_leaves_nothing_to_explain():
    counts = torch.zeros(5, 5, dtype=torch.int64)
    counts[2] = 30
    found = fit(bigram_model(torch.zeros(5, 5)).double(), counts, every_token(5))
    assert found["unigram_loss_nats"] == pytest.approx(found["bigram_loss_nats"])
    assert math.isnan(found["explained_share"])
