"""A run is interrupted on its terminal: it ends at once, with one line, and the same command continues from there."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from terminals import Terminal
from waiting import until

from faults.home import HEADSTREAM, SECONDS, STAGES, Home, made_from, require_same, runs_below

CODES = {"Ctrl-C": 130, "SIGTERM": 143, "SIGHUP": 129}
LINE = r"headstream: stopped[^\n]*; the same command continues from there\."
HOLDS = "it ends within 3 s, with one line and no process left; the next run has the same rows and weights"


@pytest.fixture
def interrupted(record_property) -> Callable[..., str]:
    """Interrupts a run on a terminal when something has come about; what the run then says."""

    def interrupt(terminal: Terminal, when: Callable[[], object], *signals: str) -> str:
        until(lambda: when() or terminal.process.poll() is not None, SECONDS)
        assert terminal.process.poll() is None, terminal.shown
        before = len(terminal.shown)
        for each in signals or ["Ctrl-C"]:
            terminal.interrupt(each)
        code = terminal.ended(SECONDS)
        said = terminal.shown.splitlines()[-1]
        record_property("seen", f"exit code {code} after {terminal.seconds:.1f} s: {said}")
        assert code in {CODES[each] for each in signals or ["Ctrl-C"]}  # of two at once, either may be taken first
        assert re.fullmatch(LINE, said), terminal.shown
        assert not re.search("Traceback|Error|WARN|prefect|http", terminal.shown[before:])
        assert terminal.seconds < 3
        return said

    return interrupt


def started(home: Home, study: Path) -> Terminal:
    """`headstream run` on a terminal."""
    return Terminal([HEADSTREAM, "run", str(study)], {**home.environment, "HEADSTREAM_HOME": str(home.folder)})


def alone(home: Home) -> Home:
    """The same home, in which runs start a Prefect server of their own."""
    return replace(home, environment={n: value for n, value in home.environment.items() if n != "PREFECT_API_URL"})


def require_next_run(home: Home, reference: Home, study: Path) -> None:
    """Fails unless the next run ends as one that nothing disturbed."""
    home.run_well("run", str(study))
    require_same(home, reference)


@pytest.mark.fault("Ctrl-C while `{stage}` is made", HOLDS)
@pytest.mark.parametrize("stage", STAGES)
def test_in_a_stage(stage, finished, reference, study, interrupted):
    finished.forget(*made_from(stage))
    wanted = finished.stagings(reference.artifacts(stage))
    interrupted(started(finished, study), lambda: any(folder.exists() for folder in wanted))
    require_next_run(finished, reference, study)


@pytest.mark.fault("Ctrl-C while the warehouse is built", HOLDS)
def test_while_indexing(finished, reference, study, interrupted):
    finished.forget()
    interrupted(started(finished, study), lambda: [*finished.warehouse.parent.glob("*.building*")])
    require_next_run(finished, reference, study)


@pytest.mark.fault("Ctrl-C while programs are loaded", HOLDS)
def test_at_the_beginning(finished, reference, study, interrupted):
    finished.forget("behaviour")
    log = finished.folder / "data" / "logs" / "run.log"
    log.unlink()
    interrupted(started(finished, study), log.exists)
    require_next_run(finished, reference, study)


@pytest.mark.fault("Ctrl-C while the run starts a Prefect server", HOLDS)
def test_while_the_server_starts(finished, reference, study, interrupted):
    home = alone(finished)
    home.forget("behaviour")
    terminal = started(home, study)
    interrupted(terminal, lambda: runs_below(terminal.process.pid, "uvicorn"))
    require_next_run(finished, reference, study)


@pytest.mark.fault("{signals} while models train, beside a Prefect server of the run's own", HOLDS)
@pytest.mark.parametrize(
    "signals", ["Ctrl-C", "Ctrl-C, Ctrl-C", "SIGTERM", "SIGTERM, SIGTERM", "SIGHUP", "SIGHUP, SIGTERM"]
)
def test_while_models_train(signals, finished, reference, study, interrupted):
    home = alone(finished)
    home.forget("training")
    terminal = started(home, study)
    interrupted(terminal, lambda: "tokens/s" in terminal.shown, *signals.split(", "))
    require_next_run(finished, reference, study)


@pytest.mark.fault("Ctrl-C while a model is compiled", "it ends within 3 s, with one line and no process left")
def test_while_compiling(finished, reference, study, interrupted, tmp_path):
    compiled = tmp_path / "compiled.toml"
    compiled.write_text(_renamed(study, "compiled").replace('compile = "never"', 'compile = "always"'))
    terminal = started(finished, compiled)
    interrupted(terminal, lambda: "compiling" in terminal.shown and runs_below(terminal.process.pid, "g++", "cc1plus"))
    assert finished.results() == reference.results()


@pytest.mark.fault("Ctrl-C after a training was saved", "the next run says from where it goes on, and does")
def test_what_was_saved_is_gone_on_from(finished, study, interrupted, tmp_path):
    long = tmp_path / "long.toml"
    long.write_text(_renamed(study, "long").replace("tokens = 400_000", "tokens = 40_000_000"))
    staging = finished.folder / "data" / "store" / ".staging"

    def both_were_saved() -> bool:
        saved = [*staging.glob("*/.resume/state.safetensors")]
        return len(saved) == 2 and all(time.time() - file.stat().st_mtime > 1 for file in saved)

    said = interrupted(started(finished, long), both_were_saved)
    percents = re.findall(r"[\d.]+ %", said)
    assert said.startswith("headstream: stopped: 2 models at ")
    terminal = started(finished, long)
    words = [f"goes on from {percent}" for percent in percents]
    again = interrupted(terminal, lambda: all(word in terminal.shown for word in words))
    assert re.findall(r"[\d.]+ %", again) == percents


def _renamed(study: Path, name: str) -> str:
    """The text of a study, called otherwise."""
    return study.read_text().replace('name = "faulty"', f'name = "{name}"')
