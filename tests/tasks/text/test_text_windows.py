"""Which text models are measured on: of every document both parts have their share, and no token in common."""

from collections import Counter

import numpy as np
import pytest
import torch
from tiny import tiny_tokens

from headstream.models.bos import NO_BOS
from headstream.models.clustered_errors import clustered_mean
from headstream.models.stimuli import RunningText
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.bigram_counts import count_bigrams
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_reading import Tokens, TokenStream
from headstream.tasks.text.token_writing import write_tokens
from headstream.tasks.text.windows import evaluation_text, reference_text, training_text

BOS = 0


class Stub(Tokens):
    """Validation text of documents of so many tokens, BOS included; each token is its place."""

    bos = BOS

    def __init__(self, *lengths: int):
        stream = np.arange(sum(lengths))
        stream[np.cumsum(lengths)[:-1]] = BOS
        self.validation = TokenStream([stream])


class StubWithoutBos(Tokens):
    """The same of a model without BOS."""

    bos = NO_BOS

    def __init__(self, folder, *lengths: int):
        self.folder = folder
        self.validation = TokenStream([np.arange(sum(lengths))])
        np.save(folder / "validation_documents.npy", np.cumsum([0, *lengths[:-1]]))


def places(text: RunningText) -> list[int]:
    """Where each window begins."""
    assert (text.sequences[:, 0] == BOS).all()
    return text.sequences[:, 1].tolist()


def test_windows_of_a_document_go_to_one_part_and_the_other_in_turn():
    tokens = Stub(41, 31, 12)  # room for four windows, three, one
    evaluation, reference = evaluation_text(tokens, 10, 99), reference_text(tokens, 10, 99)
    assert places(evaluation) == [1, 21, 42, 62]
    assert evaluation.documents.tolist() == [0, 0, 1, 1]
    assert places(reference) == [11, 31, 52, 73]
    assert reference.documents.tolist() == [0, 0, 1, 2]


def test_without_bos_windows_lie_in_one_document_and_hold_as_much(tmp_path):
    tokens = StubWithoutBos(tmp_path, 11, 10, 3, 40)
    evaluation, reference = evaluation_text(tokens, 10, 99), reference_text(tokens, 10, 99)
    assert evaluation.sequences.tolist() == [list(range(at, at + 11)) for at in (0, 24, 50)]
    assert evaluation.documents.tolist() == [0, 3, 3]
    assert reference.sequences[:, 0].tolist() == [11, 37]
    assert reference.documents.tolist() == [1, 3]


def test_windows_are_spread_over_their_document():
    tokens = Stub(36)  # three windows in 35 tokens
    assert places(evaluation_text(tokens, 10, 99)) == [1, 24]
    assert places(reference_text(tokens, 10, 99)) == [12]


def test_documents_too_short_for_a_window_share_theirs():
    tokens = Stub(4, 5, 6, 23, 7, 3, 21)  # 14 tokens after the first BOS, 22, 9, 20
    evaluation, reference = evaluation_text(tokens, 10, 99), reference_text(tokens, 10, 99)
    assert places(evaluation) == [1, 27, 60 - 1]
    assert evaluation.sequences[0, 1:].tolist() == [1, 2, 3, BOS, 5, 6, 7, 8, BOS, 10]
    assert evaluation.documents.tolist() == [0, 3, 6]
    assert places(reference) == [16, 49]
    assert reference.documents.tolist() == [3, 6]


def test_a_context_longer_than_any_document_spans_many():
    tokens = Stub(*[7] * 30)
    evaluation, reference = evaluation_text(tokens, 50, 99), reference_text(tokens, 50, 99)
    assert len(evaluation.sequences) == len(reference.sequences) == 2
    assert (evaluation.sequences[:, 1:] == BOS).sum(1).min() >= 7


def test_one_document_is_one_cluster():
    assert set(evaluation_text(Stub(1000), 10, 20).documents.tolist()) == {0}


def test_room_for_one_window_gives_it_to_both_parts():
    tokens = Stub(15)
    assert torch.equal(evaluation_text(tokens, 10, 5).sequences, reference_text(tokens, 10, 5).sequences)


def test_few_windows_are_spread_over_all_documents():
    tokens = Stub(*[41] * 100)
    evaluation, reference = evaluation_text(tokens, 10, 20), reference_text(tokens, 10, 20)
    assert evaluation.documents.tolist() == reference.documents.tolist() == list(range(0, 100, 5))


@pytest.mark.parametrize("n_windows", [4, 10_000])
def test_real_parts_have_no_token_in_common(n_windows):
    tokens = Tokens.open(tiny_tokens())
    stream = tokens.validation.read(0, len(tokens.validation)).tolist()
    starts = [i for i, token in enumerate(stream) if token == tokens.bos]
    texts = [evaluation_text(tokens, 16, n_windows), reference_text(tokens, 16, n_windows)]
    windows = {tuple(window) for text in texts for window in text.sequences[:, 1:].tolist()}
    assert len(windows) == sum(len(text.sequences) for text in texts) > 7
    for text in texts:
        for window, document in zip(text.sequences[:, 1:].tolist(), text.documents.tolist(), strict=True):
            end = starts[document + 1] if document + 1 < len(starts) else len(stream)
            inside = stream[starts[document] + 1 : end]
            assert any(inside[i : i + 16] == window for i in range(len(inside)))
    if n_windows > 1000:
        most = [Counter(text.documents.tolist()) for text in texts]
        assert all(abs(most[0][document] - most[1][document]) <= 1 for document in range(len(starts)))


@pytest.fixture(scope="module")
def stdlib(tmp_path_factory) -> Tokens:
    """The Python standard library in 512 tokens."""
    corpus, tokens = (tmp_path_factory.mktemp(name) for name in ("corpus", "tokens"))
    write_corpus(CorpusConfig(source="python-stdlib"), corpus)
    write_tokens(TokenizerConfig(vocabulary=512), corpus, tokens)
    return Tokens.open(tokens)


def bigram_losses(tokens: Tokens, sequences: torch.Tensor) -> torch.Tensor:
    """Mean loss of each sequence under add-one counts of the training text."""
    seen = count_bigrams(tokens.train, tokens.vocabulary, len(tokens.train))
    counts = np.ones((tokens.vocabulary, tokens.vocabulary))
    counts[seen.source, seen.target] += seen.n_pairs
    log_p = torch.from_numpy(np.log(counts / counts.sum(1, keepdims=True)))
    return -log_p[sequences[:, 1:-1], sequences[:, 2:]].mean(1)


@pytest.mark.parametrize("n_windows", [64, 256, 10**5])
def test_both_parts_are_alike_and_halves_of_the_stream_are_not(stdlib, n_windows):
    """The losses of the parts differ by less than their standard errors; those of the halves by more."""
    parts = [text(stdlib, 128, n_windows) for text in (evaluation_text, reference_text)]
    alike = [clustered_mean(bigram_losses(stdlib, text.sequences), text.documents) for text in parts]
    assert abs(alike[0].mean - alike[1].mean) < min(found.sem for found in alike)
    stream, halves = stdlib.validation, []
    for first in (0, 1):
        windows = stream.spread_windows(n_windows, 128, (first / 2, (first + 1) / 2))
        halves.append(bigram_losses(stdlib, torch.from_numpy(np.insert(windows, 0, BOS, axis=1))).mean())
    assert abs(halves[0] - halves[1]) > 5 * abs(alike[0].mean - alike[1].mean)
    assert abs(halves[0] - halves[1]) > max(found.sem for found in alike)


def test_training_text_is_chosen_as_validation_text_is(stdlib):
    text = training_text(stdlib, 128, 256)
    assert text.sequences.shape == (256, 129)
    assert len(text.documents.unique()) > 100
