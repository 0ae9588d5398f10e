"""Files of prompts: every format, and what is refused, with its line."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headstream.tasks.errors import UserError
from headstream.tasks.prompts.prompt_files import read_prompts
from headstream.tasks.prompts.prompt_pair import PromptPair

ROW = {"prompt": "The keys", "corrupt": "The key", "answer": " are", "wrong": " is"}
HEADER = "prompt,corrupt,answer,wrong"


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", f"{HEADER}\nThe keys,The key, are, is\n"),
        ("bom.csv", f"\ufeff{HEADER}\nThe keys,The key, are, is\n"),
        ("a.tsv", "wrong\tanswer\tprompt\tcorrupt\n is\t are\tThe keys\tThe key\n"),
        ("a.jsonl", json.dumps(ROW) + "\n\n" + json.dumps(ROW) + "\n"),
    ],
)
def test_rows_are_read_as_they_are(name, text, tmp_path):
    (pair,) = read_prompts(written(tmp_path, name, text))
    assert pair[:4] == ("The keys", "The key", (" are",), (" is",))


def test_a_table_keeps_lists_of_answers(tmp_path):
    pq.write_table(
        pa.Table.from_pylist([ROW | {"answer": ["43", "44"], "wrong": ["007"], "template": "t"}]),
        tmp_path / "a.parquet",
    )
    assert read_prompts(tmp_path / "a.parquet") == [PromptPair("The keys", "The key", ("43", "44"), ("007",), "t", 1)]


def test_cells_keep_line_breaks_quotes_and_numbers(tmp_path):
    text = f'{HEADER}\n"two\nlines ""quoted"", 😀","سلام",007,7\nlast,one,a,b\n'
    first, second = read_prompts(written(tmp_path, "a.csv", text))
    assert first[:4] == ('two\nlines "quoted", 😀', "سلام", ("007",), ("7",))
    assert (first.line, second.line) == (2, 4)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", f"{HEADER}\n", "must hold pairs of prompts, got none"),
        ("a.csv", "", "must hold pairs of prompts, got none"),
        (
            "a.csv",
            "prompt,corrupt,anwser,wrong\na,b,c,d\n",
            "column 'anwser' that nothing reads. Did you mean 'answer'?",
        ),
        ("a.csv", "prompt,corrupt,answer\na,b,c\n", "line 2 of .* must have a text for wrong, got None"),
        ("a.csv", f"{HEADER}\na,b,c,d\na,b,,d\n", "line 3 of .* must have a text for answer, got ''"),
        ("a.csv", f"{HEADER}\na,b,c\n", "line 2 of .* must have 4 cells, as its header has, got 3"),
        ("a.csv", f'{HEADER}\n"a,b,c,d\n', "can't be read"),
        ("a.jsonl", "{]\n", "line 1 of .* must be JSON"),
        ("a.jsonl", "[1]\n", "line 1 of .* must be an object"),
        ("a.jsonl", '{"wrong": "a", "wrong": "b"}\n', "line 1 of .* must say each field once: 'wrong' stands twice"),
        ("a.jsonl", json.dumps(ROW | {"answer": 7}), "must have a text for answer, got 7"),
        ("a.txt", "", "prompts must be in .csv, .tsv, .jsonl, .parquet"),
    ],
)
def test_what_is_wrong_is_named(name, text, words, tmp_path):
    with pytest.raises(UserError, match=words):
        read_prompts(written(tmp_path, name, text))


def test_a_file_that_is_no_text_or_is_not_there(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="must be UTF-8"):
        read_prompts(tmp_path / "a.csv")
    with pytest.raises(UserError, match="No such file"):
        read_prompts(tmp_path / "b.csv")
