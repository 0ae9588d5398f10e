"""Whatever a study file holds, the command line answers with a valid study or with one line."""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from datetime import date, datetime, time
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstream.flows import command_line, plan_command
from headstream.tasks.storage.artifact import json_sha256
from headstream.tasks.study.schema import MAX_GRID_MODELS, Study, parse_study
from headstream.tasks.study.sources import MAX_BYTES

STUDY: dict[str, Any] = {
    "name": "mine",
    "question": "Does it?",
    "max_models": 100,
    "runner": "threads",
    "corpus": {"paths": ["a/*.txt"], "text_field": "text", "validation_fraction": 0.2, "max_expansion": 10.0},
    "tokenizer": {"vocabulary": 270, "sample_bytes": 1000},
    "grid": {"n_layers": [0, 1], "seed": [0, 1], "feed_forward": ["none", "gelu"]},
    "variants": {"plain": {}, "wide": {"d_head": 32, "batch_size": 4}},
    "model": {"d_model": 16, "n_heads": 2, "n_ctx": 16, "attention": "full"},
    "training": {"tokens": 4000, "learning_rate": 0.01, "checkpoints": 3, "device": "cpu"},
    "analysis": {
        "stages": ["behaviour", "pruning"],
        "behaviour": {"loss_windows": 8},
        "weight_circuits": {"level": 0.01},
        "pruning": {"gate_lambdas": [0.1]},
        "probes": {"penalty": 0.001},
    },
    "costs": {"n_ctx": [256, 512], "n_heads": [1, 2], "base_d_model": 64},
    "resources": {"jobs": 2, "cpus": 1.0},
}


@pytest.fixture(scope="module", autouse=True)
def file(tmp_path_factory) -> Iterator[Path]:
    """The study file, which each example writes anew."""
    path = tmp_path_factory.mktemp("garbage") / "study.toml"
    with patch.object(sys, "argv", ["headstream", "plan", str(path)]):
        yield path


def answer(content: bytes) -> Study | str:
    """The study that `headstream plan` would plan, or the line that it prints."""
    planned: list[Study] = []
    Path(sys.argv[2]).write_bytes(content)
    with (
        patch.object(plan_command, "print_plan", lambda study, *_: planned.append(study)),
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
        pytest.raises(SystemExit) as stop,
    ):
        command_line.main()
    assert out.getvalue() == ""
    if planned:
        assert (stop.value.code, err.getvalue()) == (0, "")
        return planned[0]
    assert stop.value.code == 2
    return err.getvalue()


def check(content: bytes) -> None:
    found = answer(content)
    if isinstance(found, str):
        assert found.startswith("headstream: ")
        assert found[-1] == "\n"
        assert found[:-1].isprintable()
        assert len(found) < 1000
    else:
        config = found.model_dump(mode="json", exclude_none=True)
        assert json_sha256(config)
        assert len(found.cells) <= MAX_GRID_MODELS
        assert parse_study("the same", config).recorded == found.recorded


# TOML of any value


class Hexadecimal(int):
    """A number that may be too large to be written in decimals."""

    def __repr__(self) -> str:
        return hex(self)


def toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{toml(key)} = {toml(inner)}' for key, inner in value.items())}}}"
        case date() | time():
            return value.isoformat()
    return repr(value)


def document(content: dict[str, Any]) -> bytes:
    return "".join(f"{toml(key)} = {toml(value)}\n" for key, value in content.items()).encode()


def nested(depth: int) -> Any:
    value: Any = 1
    for i in range(depth):
        value = [value] if i % 2 else {"a": value}
    return value


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
plain = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.dates(),
    st.times(),
    st.datetimes(),
    st.sampled_from([0, -1, 1, 10**9, 2**31, 2**63, 10**18, 10**400, Hexadecimal(1 << 20_000)]),
    st.sampled_from([0.0, -0.0, 1e-300, 1e300, math.nan, math.inf, -math.inf]),
    st.sampled_from(["", " ", "1", "\n", "\0", "../x", "~x/y", "x" * 20_000, "\x1b[31m", "\u202e", "[bold]", "None"]),
    st.sampled_from([[], {}, [[]], [{}], list(range(3000)), ["a"] * 2000, nested(60), nested(300)]),
    st.sampled_from([date(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), time(0)]),
)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=8
)


def places(content: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Every key, with the table that it is in."""
    inner = [place for value in content.values() if isinstance(value, dict) for place in places(value)]
    return [(content, key) for key in content] + inner


@st.composite
def mutations(draw: st.DrawFn) -> dict[str, Any]:
    """A valid study with some of its keys dropped, renamed, added or given another value."""
    content = deepcopy(STUDY)
    for _ in range(draw(st.integers(1, 3))):
        table, key = draw(st.sampled_from(places(content)))
        match draw(st.sampled_from(["drop", "rename", "add", "value", "value", "value", "item"])):
            case "drop":
                del table[key]
            case "rename":
                table[draw(texts | st.sampled_from([key[:-1], f"{key}s", key.upper()]))] = table.pop(key)
            case "add":
                table[draw(texts)] = draw(values)
            case "value":
                table[key] = draw(values)
            case "item":
                table[key] = [draw(values)] + (table[key] if isinstance(table[key], list) else [])
        if not content:
            break
    return content


# The tests

ANSWER = "a valid study, or exit code 2 and one line; never a traceback"


def test_the_study_that_is_mutated_is_valid():
    found = answer(document(STUDY))
    assert isinstance(found, Study)
    assert len(found.cells) == 12  # of 16 places: without layers, feed_forward changes nothing


DEEP = b".".join([b"a"] * 2_000)
REFUSED = {
    "empty": b"",
    "no text": b"\xff\xfe",
    "NUL": b"name = '\0'",
    "large": b"#" * (MAX_BYTES + 1),
    "deep list": b"a = " + b"[" * 20_000,
    "deep table": b"a = " + b"{a=" * 10_000,
    "deep header": b"[" + DEEP + b"]",
    "deep name": b"name." + DEEP + b" = 1",
    "deep axis": b"name = 'a'\n[grid.seed." + DEEP + b"]",
    "deep value of an axis": b"name = 'a'\ngrid.seed = [{" + DEEP + b" = 1}]",
    "deep variant": b"name = 'a'\n[variants.x.seed." + DEEP + b"]",
    "deep section": b"name = 'a'\n[analysis." + DEEP + b"]",
    "long number": b"max_models = " + b"9" * 5_000,
    "long hexadecimal number": b"max_models = 0x" + b"f" * 20_000,
    "long value of an axis": b"name = 'a'\ngrid.seed = [0x" + b"f" * 20_000 + b"]",
    "long value": b"name = '" + b"a" * 60_000 + b"'",
    "long key": b"a" * 60_000 + b" = 1",
    "long path": b"name = 'a'\ncorpus.paths = ['" + b"a" * 60_000 + b"']",
    "keys that steer a terminal": b'name = "a"\nvariants."\\u001b[31m\\n\\u202e" = {}',
    "huge grid": b"name = 'a'\ngrid = {seed = [" + b"1," * 9_000 + b"], tokens = [" + b"1," * 9_000 + b"]}",
    "huge max_models": b"name = 'a'\nmax_models = 1000000000",
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_what_is_too_large_or_too_deep(content):
    check(content)
    assert isinstance(answer(content), str)


@pytest.mark.fault("200 study files of random bytes", ANSWER)
@given(st.binary(max_size=200))
def test_random_bytes(content):
    check(content)


signs = st.lists(st.sampled_from([*"a1.=[]{}'\"\n", "name", "grid", "inf", "2025-01-01"]), max_size=40)


@pytest.mark.fault("200 study files of random text", ANSWER)
@given(texts | signs.map("".join))
def test_random_text(content):
    check(content.encode())


@pytest.mark.fault("200 study files of random TOML", ANSWER)
@given(st.dictionaries(texts | st.sampled_from(list(STUDY)), values, max_size=6).map(document))
def test_random_toml(content):
    check(content)


@pytest.mark.fault("200 study files that are valid but for up to three random changes", ANSWER)
@given(mutations().map(document))
def test_mutated_studies(content):
    check(content)
