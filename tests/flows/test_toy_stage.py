"""A stage of one's own, which reads a third artifact: every command, the index and the report take it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import tiny_text

from headstream.flows import command_line
from headstream.tasks import places

HEADSTREAM = f"import toy_stages; from {command_line.__name__} import main; main()"
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


def headstream(prompts: Path, *arguments: str) -> str:
    """What the command prints of a process that has imported the stages."""
    folders = os.pathsep.join([str(places.ROOT), str(places.ROOT / "tests")])
    variables = {"HEADSTREAM_HOME": str(prompts.parent / "home"), "PYTHONPATH": folders}
    command = [sys.executable, "-c", HEADSTREAM, *arguments]
    done = subprocess.run(
        command, cwd=prompts.parent, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def stages_to_run(prompts: Path) -> list[str]:
    lines = [line.split() for line in headstream(prompts, "plan", "toy.toml").splitlines()]
    return [words[0] for words in lines if {"to", "run"} <= {*words[2:4]} or {"to", "run"} <= {*words[3:5]}]


def test_every_command_takes_it(prompts):
    stages = ["corpus", "tokens", "prompts", "training", "behaviour", "echo"]
    assert stages_to_run(prompts) == stages
    assert "Report: " in headstream(prompts, "run", "toy.toml")
    assert stages_to_run(prompts) == []
    query = "select count(*), count(distinct score) from importance where method = 'echo'"
    assert headstream(prompts, "sql", query, "--format", "csv").splitlines()[1] == "2,1"
    assert "study toy" in headstream(prompts, "check")
    assert "prompts/" not in headstream(prompts, "gc", "--dry-run", "--days", "0")
    prompts.write_text("another prompt that is long enough to be read\n")
    assert stages_to_run(prompts) == ["prompts", "echo"]
