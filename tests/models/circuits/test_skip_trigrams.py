"""Skip-trigrams against every triple there is, the corpus' own against a loop, and a planted bug pair."""

from itertools import product

import pytest
import torch
from planted import BOS, attention_of, skip_trigram_model
from random_models import random_model

from headstream.models.circuits import full_circuits
from headstream.models.circuits import skip_trigrams as module
from headstream.models.circuits.full_circuits import full_ov, full_qk
from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.circuits.skip_trigram_counts import SkipTrigramCounts
from headstream.models.circuits.skip_trigrams import skip_trigrams

SOURCE, DESTINATIONS, OUTPUTS = 5, (7, 11), (20, 30)


def draw_windows(d_vocab, n_windows=40, length=13, seed=0):
    return torch.randint(d_vocab, (n_windows, length), generator=torch.Generator().manual_seed(seed))


def planted_text(follows):
    """SOURCE ... d o for each d and its outputs in turn; the outputs come elsewhere as well."""
    windows = torch.randint(40, 97, (600, 31), generator=torch.Generator().manual_seed(0))
    rows = [(d, o) for d, outputs in follows.items() for o in outputs]
    for i, window in enumerate(windows):
        destination, output = rows[i % len(rows)]
        window[3], window[10], window[11], window[20] = SOURCE, destination, output, OUTPUTS[i // 2 % 2]
    return windows


def entries(found):
    return list(zip(found["source"].tolist(), found["destination"].tolist(), found["output"].tolist(), strict=True))


def test_counts_equal_a_loop():
    d_vocab = 7
    windows = draw_windows(d_vocab)
    corpus = SkipTrigramCounts(windows, d_vocab, BOS)
    expected_counts = [0, *((windows == token).sum().item() for token in range(1, d_vocab))]
    assert corpus.counts.tolist() == expected_counts
    every = torch.arange(d_vocab)
    n_pairs, n_entries = corpus.count(every, every.expand(d_vocab, -1), every.expand(d_vocab, -1))
    pairs, triples = torch.zeros_like(n_pairs), torch.zeros_like(n_entries)
    for window in windows.tolist():
        for place in range(1, len(window) - 1):
            for source in set(window[:place]):
                pairs[source, window[place]] += 1
                triples[source, window[place], window[place + 1]] += 1
    assert torch.equal(n_pairs, pairs)
    assert torch.equal(n_entries, triples)


@pytest.mark.parametrize("n", [17, 1000])
def test_the_strongest_are_those_of_all_triples(monkeypatch, n):
    monkeypatch.setattr(full_circuits, "_CHUNK_NUMBERS", 60)
    monkeypatch.setattr(module, "CANDIDATES_PER_SOURCE", 37)
    weights = circuit_weights(random_model())
    windows = torch.rand(900, 13, generator=torch.Generator().manual_seed(0)) ** 6 * 37  # small numbers come often
    corpus = SkipTrigramCounts(windows.long(), 37, BOS)
    frequency = corpus.counts / corpus.counts.sum()
    qk, ov = full_qk(weights, 1, 2), full_ov(weights, 1, 2)
    qk, ov = qk.left @ qk.right, ov.left @ ov.right
    qk, ov = qk - (qk @ frequency.double())[:, None], ov - ov.mean(1, keepdim=True)
    min_count = 60
    tokens = [token for token in range(1, 37) if corpus.counts[token] >= min_count]
    n_pairs, _ = corpus.count(torch.arange(37), torch.arange(37).expand(37, -1), torch.zeros(37, 1, dtype=torch.int64))
    assert 10 < len(tokens) < 36
    expected = []
    for source in tokens:
        of_source = [
            (qk[d, source].item() * ov[source, o].item(), (source, d, o))
            for d, o in product(tokens, tokens)
            if qk[d, source] > 0 and ov[source, o] > 0 and n_pairs[source, d] >= min_count
        ]
        expected += sorted(of_source, reverse=True)[: module.ENTRIES_PER_SOURCE]
    expected = sorted(expected, reverse=True)[:n]
    found = skip_trigrams(weights, 1, 2, corpus, n, min_count)
    assert entries(found) == [triple for _, triple in expected]
    torch.testing.assert_close(
        (found["qk_effect"] * found["ov_effect"]).tolist(), [strength for strength, _ in expected]
    )
    assert (found["n_pairs"] >= min_count).all()


def test_a_planted_bug_pair_is_found_and_only_that():
    weights = circuit_weights(skip_trigram_model(SOURCE, DESTINATIONS, OUTPUTS))
    corpus = SkipTrigramCounts(planted_text({7: (20,), 11: (30,)}), 97, BOS)
    found = skip_trigrams(weights, 0, 1, corpus, 20, min_count=50)
    facts = zip(
        found["is_bug"].tolist(), found["other_destination"].tolist(), found["other_output"].tolist(), strict=True
    )
    assert dict(zip(entries(found), facts, strict=True)) == {
        (5, 7, 20): (False, -1, -1),
        (5, 11, 30): (False, -1, -1),
        (5, 7, 30): (True, 11, 20),
        (5, 11, 20): (True, 7, 30),
    }
    assert found["n_pairs"].tolist() == [300] * 4
    assert found["corpus_probability"].tolist() == [0.0 if bug else 1.0 for bug in found["is_bug"].tolist()]
    for head in (0, 2):  # they write nothing
        assert entries(skip_trigrams(weights, 0, head, corpus, 20, min_count=50)) == []


def test_what_the_corpus_has_is_no_bug():
    weights = circuit_weights(skip_trigram_model(SOURCE, DESTINATIONS, OUTPUTS))
    corpus = SkipTrigramCounts(planted_text({7: (20, 30), 11: (20, 30)}), 97, BOS)
    found = skip_trigrams(weights, 0, 1, corpus, 20, min_count=50)
    assert len(found["source"]) == 4
    assert not found["is_bug"].any()


def test_no_evidence_no_bug():
    """The same text, ten windows of it: 5 places each are too few for what never comes there."""
    weights = circuit_weights(skip_trigram_model(SOURCE, DESTINATIONS, OUTPUTS))
    corpus = SkipTrigramCounts(planted_text({7: (20,), 11: (30,)})[:8], 97, BOS)
    found = skip_trigrams(weights, 0, 1, corpus, 20, min_count=1)
    assert len(found["source"]) == 4
    assert not found["is_bug"].any()


def test_sources_that_draw_attention_but_predict_nothing_take_no_place_of_those_that_predict():
    model = skip_trigram_model(SOURCE, DESTINATIONS, OUTPUTS)
    looked_at = range(50, 50 + module.SOURCES_PER_ENTRY)  # as many as are looked at for one entry
    attention_of(model, 0).W_K[1, looked_at, 0] = 2  # where the source has 1
    corpus = SkipTrigramCounts(planted_text({7: (20,), 11: (30,)}), 97, BOS)
    found = skip_trigrams(circuit_weights(model), 0, 1, corpus, 1, min_count=50)
    assert found["source"].tolist() == [SOURCE]


@pytest.mark.parametrize("min_count", [301, 10**6])
def test_pairs_too_rare_in_the_corpus_are_left_out(min_count):
    weights = circuit_weights(skip_trigram_model(SOURCE, DESTINATIONS, OUTPUTS))
    corpus = SkipTrigramCounts(planted_text({7: (20,), 11: (30,)}), 97, BOS)
    assert entries(skip_trigrams(weights, 0, 1, corpus, 20, min_count)) == []


def test_bos_is_no_part_of_any():
    weights = circuit_weights(skip_trigram_model(BOS, (BOS, 7), (BOS, 20)))
    windows = draw_windows(97, n_windows=300, length=31)
    windows[:, 0] = BOS
    assert entries(skip_trigrams(weights, 0, 1, SkipTrigramCounts(windows, 97, BOS), 20, min_count=1)) == []
