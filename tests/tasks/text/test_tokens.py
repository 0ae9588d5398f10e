import json
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tokenizers import Tokenizer, processors

from headstream.models.bos import NO_BOS
from headstream.tasks.errors import UserError
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.corpus_reading import read_documents
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_reading import Tokens, TokenStream, require_context
from headstream.tasks.text.token_writing import (
    BOS,
    TRAINING_PIECE,
    encode,
    train_tokenizer,
    write_given_tokens,
    write_tokens,
)

WORDS = "the residual stream carries what each head writes; naïve ones (of 東京) see 'it' as\n    one   sum.\t<|bos|>"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    choose = random.Random(5)
    lines = (json.dumps({"text": " ".join(choose.choices(WORDS.split(" "), k=70))}) for _ in range(211))
    (folder / "text.jsonl").write_text("\n".join(lines))
    write_corpus(CorpusConfig(paths=(str(folder / "text.jsonl"),), validation_fraction=0.2), folder)
    return folder


@pytest.fixture(scope="module")
def written(corpus, tmp_path_factory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("tokens")
    return folder, write_tokens(TokenizerConfig(vocabulary=307), corpus, folder)


@pytest.fixture(scope="module")
def tokens(written) -> Tokens:
    return Tokens.open(written[0])


def test_streams_hold_every_document_after_bos(corpus, tokens, written):
    for split, stream in (("train", tokens.train), ("validation", tokens.validation)):
        ids = stream.read(0, len(stream))
        assert ids.dtype == np.uint16
        assert ids[0] == tokens.bos == 0
        documents = np.split(ids, np.flatnonzero(ids == tokens.bos))[1:]
        texts = [document.text for document in read_documents(corpus, split)]
        assert [tokens.tokenizer.decode(document[1:].tolist()) for document in documents] == texts
        assert written[1][f"{split}_tokens"] == len(stream)


def test_counts_and_facts(tokens, corpus, written):
    facts = written[1]
    assert tokens.vocabulary == facts["vocabulary"] == 307
    np.testing.assert_array_equal(tokens.counts, np.bincount(tokens.train.read(0, len(tokens.train)), minlength=307))
    size = sum(len(document.text.encode()) for document in read_documents(corpus, "train"))
    assert {name: facts[name] for name in ("empty", "skipped", "replaced", "left_out")} == {
        "empty": 0,
        "skipped": 0,
        "replaced": 0,
        "left_out": 0,
    }
    assert facts["bytes_per_token"] == pytest.approx(size / tokens.counts[1:].sum())


def test_the_same_corpus_gives_the_same_bytes(corpus, written, tmp_path):
    fractions: list[float] = []
    assert write_tokens(TokenizerConfig(vocabulary=307), corpus, tmp_path, fractions.append) == written[1]
    assert fractions[-1] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in written[0].iterdir())
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (written[0] / path.name).read_bytes()


def test_a_small_corpus_reaches_a_smaller_vocabulary(tmp_path, corpus):
    facts = write_tokens(TokenizerConfig(vocabulary=100_000), corpus, tmp_path)
    assert 307 < facts["vocabulary"] < 2_000
    assert Tokens.open(tmp_path).vocabulary == facts["vocabulary"]


def test_a_vocabulary_above_uint16_is_stored_in_uint32(tmp_path):
    choose = random.Random(3)
    words = ["".join(choose.choices("abcdefghijklmnopqrstuvwxyz", k=11)) for _ in range(18_000)]
    (tmp_path / "words.txt").write_text("\n".join(words))
    config = CorpusConfig(paths=(str(tmp_path / "words.txt"),), document_bytes=1_000)
    write_corpus(config, tmp_path)
    assert write_tokens(TokenizerConfig(vocabulary=66_000), tmp_path, tmp_path)["vocabulary"] == 66_000
    tokens = Tokens.open(tmp_path)
    ids = tokens.train.read(0, len(tokens.train))
    assert (ids.dtype, ids.max() > 65_535) == (np.uint32, True)
    assert tokens.tokenizer.decode(ids[1:99].tolist()).split()[:3] == words[:3]


@given(st.text(max_size=80))
def test_any_text_survives_encoding(tokens, text):
    ((ids, lengths),) = encode(tokens.tokenizer, [text], np.uint16, tokens.bos)
    assert (ids[0], lengths.tolist()) == (tokens.bos, [len(ids)])
    assert tokens.bos not in ids[1:]
    assert tokens.tokenizer.decode(ids[1:].tolist()) == text


def test_batches_join_to_what_one_batch_gives(tokens, monkeypatch):
    texts = [WORDS[start:] for start in range(30)]
    ((whole, lengths),) = encode(tokens.tokenizer, texts, np.uint16, tokens.bos)
    monkeypatch.setattr("headstream.tasks.text.token_writing.BATCH_BYTES", 250)
    batches = list(encode(tokens.tokenizer, texts, np.uint16, tokens.bos))
    assert len(batches) > 5
    np.testing.assert_array_equal(np.concatenate([ids for ids, _ in batches]), whole)
    np.testing.assert_array_equal(np.concatenate([n for _, n in batches]), lengths)
    assert not list(encode(tokens.tokenizer, [], np.uint16, tokens.bos))


def test_a_given_tokenizer_reads_the_corpus_alone(tokens, tmp_path):
    """Its special tokens are text, nothing it would add is there, and without BOS documents are told apart."""
    given = Tokenizer.from_str(tokens.tokenizer.to_str())
    given.add_special_tokens(["<|end|>"])
    end = given.token_to_id("<|end|>")
    given.post_processor = processors.TemplateProcessing(single="<|end|> $A <|end|>", special_tokens=[("<|end|>", end)])
    given.enable_truncation(3)
    texts = {f"{n}.txt": f"<|end|> {n} " + "river runs to sea " * 9 for n in range(9)}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    corpus, plain, opened = (tmp_path / name for name in ("corpus", "plain", "opened"))
    for folder in (corpus, plain, opened):
        folder.mkdir()
    write_corpus(CorpusConfig(paths=(str(tmp_path / "*.txt"),), validation_fraction=0.4), corpus)
    facts = [
        write_given_tokens(given.to_str(), bos, end + 5, corpus, at) for bos, at in ((NO_BOS, plain), (end, opened))
    ]
    for folder, bos in ((plain, NO_BOS), (opened, end)):
        read = Tokens.open(folder)
        assert (read.vocabulary, read.bos) == (end + 5, bos)
        assert read.token_labels()[-1] == f"<unused·{end + 4}>"
        found = []
        for split in ("train", "validation"):
            stream, starts = read.stream(split), read.document_starts(split)
            for start, stop in zip(starts, [*starts[1:], len(stream)], strict=True):
                ids = stream.read(start, stop).tolist()
                assert (ids[:1] == [end]) is (bos == end)
                ids = ids[1:] if bos == end else ids
                assert end not in ids
                assert b"".join(read.token_bytes[each] for each in ids).decode() == read.tokenizer.decode(ids)
                found.append(read.tokenizer.decode(ids))
        assert sorted(found) == sorted(texts.values())
    assert facts[0]["bytes_per_token"] == facts[1]["bytes_per_token"]


@given(st.text("ab \n.", max_size=3_000) | st.text(max_size=600))
def test_training_pieces_are_short_and_join_to_the_text(text):
    pieces = TRAINING_PIECE.findall(text)
    assert "".join(pieces) == text
    assert all(len(piece) <= 512 for piece in pieces)


def test_words_of_a_million_characters_train_and_encode_quickly(tmp_path):
    (tmp_path / "dna.txt").write_text("".join(random.Random(7).choices("ACGT", k=1_000_000)))
    write_corpus(
        CorpusConfig(paths=(str(tmp_path / "dna.txt"),), document_bytes=100_000, validation_fraction=0.3), tmp_path
    )
    assert write_tokens(TokenizerConfig(vocabulary=300), tmp_path, tmp_path)["bytes_per_token"] > 2


def test_the_tokenizer_is_trained_on_a_sample_spread_over_the_corpus(tmp_path, corpus):
    seen = []

    class Recorder:
        def findall(self, text: str) -> list[str]:
            seen.append(text)
            return [text]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headstream.tasks.text.token_writing.TRAINING_PIECE", Recorder())
        train_tokenizer(TokenizerConfig(sample_bytes=20_000), corpus)
    texts = [document.text for document in read_documents(corpus, "train")]
    places = [texts.index(text) / len(texts) for text in seen]
    assert sum(len(text.encode()) for text in seen) == pytest.approx(20_000, abs=800)
    assert places[0] == 0
    assert places[-1] > 0.95
    assert 0 < np.diff(places).min() <= np.diff(places).max() < 0.05


# Reading


def stream(lengths: list[int]) -> TokenStream:
    bounds = np.cumsum([0, *lengths])
    shards = [np.arange(start, stop, dtype=np.uint16) for start, stop in pairwise(bounds)]
    return TokenStream(shards)


@given(st.lists(st.integers(1, 13), max_size=6), st.data())
def test_windows_and_reads_equal_slices_across_shards(lengths, data):
    tokens, ids = stream(lengths), np.arange(sum(lengths))
    assert len(tokens) == len(ids)
    start = data.draw(st.integers(0, len(ids)))
    stop = data.draw(st.integers(start, len(ids)))
    np.testing.assert_array_equal(tokens.read(start, stop), ids[start:stop])
    if len(ids):
        length = data.draw(st.integers(1, len(ids)))
        starts = np.array(data.draw(st.lists(st.integers(0, len(ids) - length), max_size=9)), dtype=np.int64)
        windows = tokens.windows(starts, length)
        assert (windows.dtype, windows.shape) == (np.int64, (len(starts), length))
        for window, first in zip(windows, starts, strict=True):
            np.testing.assert_array_equal(window, ids[first : first + length])


def test_reads_beyond_the_ends_are_refused():
    for start, stop in ((-1, 3), (3, 2), (0, 13)):
        with pytest.raises(IndexError, match="must hold"):
            stream([5, 7]).read(start, stop)
    for starts in ([-1], [0, 10]):
        with pytest.raises(IndexError, match=r"starts must lie in 0\.\.9"):
            stream([5, 7]).windows(starts, 3)


def test_shards_are_filled_to_their_limit_and_read_as_one(corpus, tokens, tmp_path, monkeypatch):
    monkeypatch.setattr("headstream.tasks.text.token_writing.SHARD_BYTES", 2_002)
    write_tokens(TokenizerConfig(vocabulary=307), corpus, tmp_path)
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("train-*.bin"))]
    assert len(sizes) > 5
    assert set(sizes[:-1]) == {2_002}
    sharded = Tokens.open(tmp_path).train
    np.testing.assert_array_equal(sharded.read(0, len(sharded)), tokens.train.read(0, len(tokens.train)))
    starts = np.arange(0, len(sharded) - 17, 11)
    np.testing.assert_array_equal(sharded.windows(starts, 17), tokens.train.windows(starts, 17))


def test_a_read_within_a_shard_is_a_read_only_view_of_the_file(tokens):
    view = tokens.train.read(3, 11)
    assert view.base is not None
    assert not view.flags.writeable


def test_labels_read_well(tokens):
    labels = tokens.token_labels()
    assert len(labels) == tokens.vocabulary
    assert len(set(labels)) == len(labels)
    assert labels[tokens.bos] == BOS
    for text, label in {
        "a": "a",
        " ": "·",
        "\n": "\\n",
        "\t": "\\t",
        "\0": "\\x00",
        "\\": "\\",
        " the": "·the",
    }.items():
        (token,) = tokens.tokenizer.encode(text).ids
        assert labels[token] == label
    assert [labels[token] for token in tokens.tokenizer.encode("·").ids] == ["\\xc2", "\\xb7"]
    assert [labels[token] for token in tokens.tokenizer.encode("☃").ids] == ["\\xe2", "\\x98", "\\x83"]
    assert all(label.isprintable() for label in labels)


def test_too_few_tokens_for_a_context_are_refused(tokens):
    shortest = min(len(tokens.train), len(tokens.validation))
    require_context(tokens, shortest - 1)
    with pytest.raises(
        UserError, match=rf"validation split has {shortest:,} tokens, and needs more than n_ctx = {shortest:,}\. Add"
    ):
        require_context(tokens, shortest)


def test_a_vocabulary_below_the_bytes_is_refused():
    with pytest.raises(ValidationError, match="greater than or equal to 257"):
        TokenizerConfig(vocabulary=256)
    assert TokenizerConfig(vocabulary=257).vocabulary == 257
