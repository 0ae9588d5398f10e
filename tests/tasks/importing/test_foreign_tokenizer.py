"""Which token opened every document in a model's training, by what the files beside its weights say."""

import json
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from written_models import write_words

from headstream.tasks.errors import UserError
from headstream.tasks.importing.foreign_tokenizer import find_tokenizer, given_tokenizer

VOCABULARY = {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3}


def words(*, adds_bos: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(WordLevel(VOCABULARY, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ("<s>", "</s>")])
    if adds_bos:
        tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


@pytest.mark.parametrize(
    ("adds_bos", "options", "config", "bos", "told"),
    [
        (False, None, {}, None, ""),
        (False, None, {"bos_token_id": 1, "eos_token_id": 2}, 1, ""),
        (False, None, {"bos_token_id": 2, "eos_token_id": 2}, None, "</s> separates documents, so it isn't BOS"),
        (False, None, {"bos_token_id": 2, "eos_token_id": [1, 2]}, None, "</s> separates documents"),
        *((False, None, {"bos_token_id": bos, "eos_token_id": 2}, None, "") for bos in (99, -1, 1 << 40, [1], "<s>")),
        (True, None, {"bos_token_id": 1, "eos_token_id": 2}, 1, ""),
        (True, None, {"bos_token_id": 2, "eos_token_id": 2}, 1, "BOS is </s>, and documents are read with <s>"),
        (True, {"add_bos_token": None, "bos_token": "</s>"}, {}, 1, ""),
        (False, {"bos_token": "<s>"}, {}, None, ""),
        (True, {"add_bos_token": True, "bos_token": "<s>"}, {"bos_token_id": 1}, 1, ""),
        (False, {"add_bos_token": False, "bos_token": "<s>"}, {"bos_token_id": 1}, None, ""),
        (True, {"add_bos_token": False, "bos_token": "<s>"}, {"bos_token_id": 1}, None,
         "tokenizer_config.json puts nothing before a text, and tokenizer.json <s>: the first counts"),
        (False, {"add_bos_token": True, "bos_token": "<s>"}, {}, 1, "puts <s> before a text, and tokenizer.json no"),
        (True, {"add_bos_token": True, "bos_token": "</s>"}, {}, 2, "puts </s> before a text, and tokenizer.json <s>"),
        (False, {"add_bos_token": True, "bos_token": {"content": "</s>"}}, {"bos_token_id": 1}, 2, "BOS is <s>"),
        (False, {"add_bos_token": True, "bos_token": "absent"}, {"bos_token_id": 1}, 1, "asks for a BOS that the"),
        (True, {"add_bos_token": True}, {"bos_token_id": 1}, 1, "asks for a BOS that the tokenizer hasn't got"),
    ],
)  # fmt: skip
def test_bos_is_what_opened_documents_and_contradictions_are_told(
    adds_bos, options, config: dict[str, Any], bos, told, tmp_path
):
    words(adds_bos=adds_bos).save(str(tmp_path / "tokenizer.json"))
    if options is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    tokenizer, files, notes = find_tokenizer(tmp_path, config)
    assert tokenizer.bos == bos
    assert told in " ".join(notes)
    assert bool(notes) == bool(told)
    assert (tokenizer.entries, tokenizer.id_of("</s>"), tokenizer.id_of("none")) == (4, 2, None)
    assert len(files) == 1 + (options is not None)


def test_vocabulary_and_merges_of_older_models_make_a_tokenizer(tmp_path):
    vocabulary = {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\nĠ ab\n")
    tokenizer, files, _ = find_tokenizer(tmp_path, {})
    assert Tokenizer.from_str(tokenizer.json).encode("ab ab a").ids == [3, 4, 2, 0]
    assert [path.name for path in files] == ["vocab.json", "merges.txt"]


def test_texts_are_read_whole_whatever_length_a_tokenizer_asks_for(tmp_path):
    tokenizer = words()
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    found, _, _ = find_tokenizer(tmp_path, {})
    assert found.read().encode("a a a a").ids == [3, 3, 3, 3]


def test_a_tokenizer_may_be_given(tmp_path):
    write_words(tmp_path / "tokenizer.json", 7)
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        assert given_tokenizer(path, 9).entries == 7
    for path, d_vocab, said in (
        (tmp_path, 5, "has 7 ids, more than the 5 rows of the embedding"),
        (tmp_path / "vocab.txt", 9, "must be a file tokenizer.json or its folder"),
        (tmp_path / "none", 9, "must be a file tokenizer.json or its folder"),
    ):
        with pytest.raises(UserError) as refused:
            given_tokenizer(path, d_vocab)
        assert said in str(refused.value)
    (tmp_path / "tokenizer.json").rename(tmp_path / "tokenizer.model")
    with pytest.raises(UserError, match=r"there is no tokenizer.json in .*: tokenizer.model isn't read"):
        given_tokenizer(tmp_path, 9)
