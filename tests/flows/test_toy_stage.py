"""A stage of one's own, which reads a third artifact: every command, the index and the report take it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL
from tiny import tiny_text

from headstream.flows import command_line
from headstream.tasks import places

# Commands one after the other in one process that has imported the stages, and what each prints.
COMMANDS = f"""
import contextlib, io, json, pathlib, sys
import toy_stages
from {command_line.__name__} import main

def called(*arguments):
    sys.argv, printed = ["headstream", *arguments], io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main()
    return printed.getvalue()

plan = ("plan", "toy.toml")
query = "select count(*), count(distinct score) from importance where method = 'echo'"
said = [called(*plan), called("run", "toy.toml"), called(*plan), called("sql", query, "--format", "csv")]
said += [called("check"), called("gc", "--dry-run", "--days", "0")]
pathlib.Path("prompts.txt").write_text("another prompt that is long enough to be read\\n")
print(json.dumps([*said, called(*plan)]))
"""
STUDY = """
name = "toy"
corpus = {{ paths = ["{text}"], validation_fraction = 0.2 }}
tokenizer.vocabulary = 270
model = {{ d_model = 16, n_heads = 2, n_ctx = 16, n_layers = 1 }}
training = {{ tokens = 4000, batch_size = 8, warmup_steps = 5, checkpoints = 2 }}
analysis.stages = ["behaviour", "echo"]
analysis.behaviour = {{ loss_windows = 8, pattern_windows = 4, random_period_sequences = 4 }}
analysis.prompts.path = "{prompts}"
"""


@pytest.fixture(scope="module")
def prompts(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("toy") / "prompts.txt"
    path.write_text("the river runs to the sea\nand the wind sings to the river\n")
    path.with_name("toy.toml").write_text(STUDY.format(text=tiny_text(), prompts=path))
    return path


def stages_to_run(plan: str) -> list[str]:
    lines = [line.split() for line in plan.splitlines()]
    return [words[0] for words in lines if {"to", "run"} <= {*words[2:4]} or {"to", "run"} <= {*words[3:5]}]


def test_every_command_takes_it(prefect_server, prompts):
    folders = os.pathsep.join([str(places.ROOT), str(places.ROOT / "tests")])
    variables = {"HEADSTREAM_HOME": str(prompts.parent / "home"), "PYTHONPATH": folders}
    variables["PREFECT_API_URL"] = PREFECT_API_URL.value()
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=prompts.parent,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, answer, after, rows, check, unneeded, edited = json.loads(done.stdout.splitlines()[-1])
    assert stages_to_run(before) == ["corpus", "tokens", "prompts", "training", "behaviour", "echo"]
    assert "Report: " in answer
    assert stages_to_run(after) == []
    assert rows.splitlines()[1] == "2,1"
    assert "study toy" in check
    assert "prompts/" not in unneeded
    assert stages_to_run(edited) == ["prompts", "echo"]
