"""Parts of speech on their way from CoNLL-U files to the bytes of the text that models read."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstream.tasks.errors import UserError
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.corpus_files import corpus_files
from headstream.tasks.text.corpus_reading import read_documents
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.documents import DocumentPart, Reader
from headstream.tasks.text.source_files import Budget, SourceFile
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.token_writing import write_tokens

TWO_DOCUMENTS = """\
# newdoc id = first
# text = Über the sea: 10 000 gulls.
1\tÜber\tüber\tADP\t_\t_\t0\t_\t_\t_
2\tthe\tthe\tDET\t_\t_\t0\t_\t_\t_
3\tsea\tsea\tNOUN\t_\t_\t0\t_\t_\tSpaceAfter=No
4\t:\t:\tPUNCT\t_\t_\t0\t_\t_\t_
5\t10 000\t10 000\tNUM\t_\t_\t0\t_\t_\t_
6\tgulls\tgull\tNOUN\t_\t_\t0\t_\t_\tSpaceAfter=No
7\t.\t.\tPUNCT\t_\t_\t0\t_\t_\t_

1-2\tdel\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t0\t_\t_\t_
2\tel\tel\tDET\t_\t_\t0\t_\t_\t_
3\tmar\tmar\tNOUN\t_\t_\t0\t_\t_\tSpaceAfter=No
3.1\tsalt\tsalt\tADJ\t_\t_\t_\t_\t_\t_
4\t!\t!\tPUNCT\t_\t_\t0\t_\t_\t_

# newdoc
1\tWave\twave\tNOUN\t_\t_\t0\t_\t_\t_
2\tX\t_\t_\t_\t_\t0\t_\t_\t_
3\tshort line
"""


def parts(path: Path, document_bytes: int = 1 << 20) -> list[DocumentPart]:
    rules = CorpusConfig(paths=[str(path)], document_bytes=document_bytes)
    reader = Reader(rules, Budget(max_expansion=200, max_bytes=1 << 30))
    return list(reader.read(SourceFile(path, path.name, path.stat().st_size)))


def tagged(part: DocumentPart) -> list[tuple[str, str]]:
    raw = part.text.encode()
    return [(raw[start:end].decode(), tag) for start, end, tag in part.words]


def test_words_are_where_the_text_has_them(tmp_path):
    (tmp_path / "a.conllu").write_text(TWO_DOCUMENTS)
    first, second = parts(tmp_path / "a.conllu")
    assert first.text == "Über the sea: 10 000 gulls.\ndel mar!\n"
    assert tagged(first) == [
        *[("Über", "ADP"), ("the", "DET"), ("sea", "NOUN"), (":", "PUNCT"), ("10 000", "NUM"), ("gulls", "NOUN")],
        *[(".", "PUNCT"), ("mar", "NOUN"), ("!", "PUNCT")],  # "del" is two words in one: it has no single tag
    ]
    assert second.text == "Wave X short line\n"
    assert tagged(second) == [("Wave", "NOUN")]


def test_words_are_tagged_as_far_as_the_text_comment_has_them(tmp_path):
    lines = "# text = A  b, c\n1\tA\t_\tX\n2\tb\t_\tY\n3\t;\t_\tZ\n4\tc\t_\tX\n"
    (tmp_path / "a.conllu").write_text(lines)
    (part,) = parts(tmp_path / "a.conllu")
    assert part.text == "A  b, c\n"
    assert tagged(part) == [("A", "X"), ("b", "Y")]


WORD = st.tuples(st.text("aé東.", min_size=1, max_size=9), st.sampled_from(["NOUN", "VERB", "_"]), st.booleans())


@given(st.lists(st.lists(WORD, min_size=1, max_size=9), min_size=1, max_size=40))
def test_every_word_keeps_its_tag_wherever_documents_are_cut(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("conllu") / "a.conllu"
    lines = [
        "".join(
            f"{number}\t{form}\t_\t{tag}\t_\t_\t_\t_\t_\t{'_' if space else 'SpaceAfter=No'}\n"
            for number, (form, tag, space) in enumerate(sentence, start=1)
        )
        for sentence in sentences
    ]
    path.write_text("\n".join(lines))
    expected = [(form, tag) for sentence in sentences for form, tag, _ in sentence if tag != "_"]
    found = parts(path, document_bytes=256)
    assert [word for part in found for word in tagged(part)] == expected


def test_a_word_that_is_cut_in_two_has_no_tag(tmp_path):
    (tmp_path / "a.conllu").write_text(f"1\t{'a' * 200}\t_\tX\n2\t{'b' * 100}\t_\tY\n3\tc\t_\tZ\n")
    found = parts(tmp_path / "a.conllu", document_bytes=256)
    assert [tagged(part) for part in found] == [[("a" * 200, "X")], [("c", "Z")]]


def test_a_line_that_is_no_word_is_named(tmp_path):
    (tmp_path / "a.conllu").write_text("1\tA\ta\tDET\n\n2 spaces for tabs\n")
    with pytest.raises(
        UserError, match=r"a word's line must be a number, a tab and its form, got .* line 3 of a\.conllu"
    ):
        parts(tmp_path / "a.conllu")


def test_words_of_validation_text_reach_the_tokens(tmp_path):
    sentences = "".join(f"# newdoc\n1\tNo\tno\tX\t_\n2\t{number}\t_\tNUM\t_\n\n" for number in range(90))
    (tmp_path / "a.conllu").write_text(sentences)
    (tmp_path / "b.txt").write_text("plain\n")
    corpus, encoded = tmp_path / "corpus", tmp_path / "tokens"
    for folder in (corpus, encoded):
        folder.mkdir()
    config = CorpusConfig(paths=(str(tmp_path / "a.conllu"), str(tmp_path / "b.txt")), validation_fraction=0.4)
    assert len(corpus_files(config)) == 2
    write_corpus(config, corpus)
    write_tokens(TokenizerConfig(vocabulary=260), corpus, encoded)
    documents = [document.text.encode() for document in read_documents(corpus, "validation")]
    words = Tokens.open(encoded).part_of_speech.to_pylist()
    found = [(documents[word["document"]][word["start"] : word["end"]], word["part_of_speech"]) for word in words]
    expected = [word for text in documents if text != b"plain\n" for word in ((b"No", "X"), (text.split()[1], "NUM"))]
    assert found == expected


def test_a_corpus_without_tags_has_no_file_for_them(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(500)))
    write_corpus(CorpusConfig(paths=(str(tmp_path / "a.txt"),), document_bytes=256, validation_fraction=0.3), tmp_path)
    write_tokens(TokenizerConfig(vocabulary=260), tmp_path, tmp_path)
    assert Tokens.open(tmp_path).part_of_speech is None
    assert not [*tmp_path.glob("part_of_speech*")]
    assert pq.read_metadata(tmp_path / "documents.parquet").num_rows > 10
