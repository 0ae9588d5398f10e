"""A study that has run, in a home of its own, made by its steps without any flow."""

import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_artifacts import made_steps
from tiny import tiny_text

from headstream.tasks.graph.outcomes import outcomes, shared_artifacts
from headstream.tasks.machines.child_process import start_fork_server
from headstream.tasks.steps.report_steps import record_study
from headstream.tasks.study.schema import parse_study

CONTENT = f"""
name = "ours"
question = "Does the door open?"
corpus = {{ paths = ["{tiny_text()}"], validation_fraction = 0.2 }}
tokenizer.vocabulary = 270
grid = {{ n_heads = [[2, 3]], seed = [0, 1] }}
model = {{ n_layers = 2, d_model = 20, d_head = 5, n_ctx = 64 }}
training = {{ tokens = 16_000, batch_size = 8, warmup_steps = 5, checkpoints = 3 }}
analysis.stages = ["behaviour"]
analysis.behaviour = {{ loss_windows = 8, pattern_windows = 4, random_period_sequences = 4 }}
"""
STUDY = parse_study("ours.toml", tomllib.loads(CONTENT))


@pytest.fixture
def parts() -> dict[str, Any]:
    """What the study's file holds."""
    return tomllib.loads(CONTENT)


@pytest.fixture
def content() -> str:
    """The text of the study's file."""
    return CONTENT


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSTREAM_HOME", str(folder))
        patch.setenv("PREFECT_HOME", str(folder / "prefect"))
        patch.delenv("PREFECT_API_URL", raising=False)
        started = time.monotonic()
        start_fork_server()
        steps, made = made_steps(STUDY)
        record_study.fn(STUDY, outcomes(steps, made), shared_artifacts(steps, made), started)
        yield folder
