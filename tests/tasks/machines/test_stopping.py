"""Signals to a process that is at work in every way: threads, children, and theirs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import Terminal

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
CODES = {"Ctrl-C": 130, "SIGTERM": 143, "SIGHUP": 129}

# A main thread that fails when a child dies, a thread and children that print for ever, of which one lives apart.
AT_WORK = """
import subprocess, threading, time
from headstream.tasks.machines.quiet_output import output_to_log
from headstream.tasks.machines.stopping import stopping_at_signals

NOISE = "trap '' HUP; while true; do echo noise; echo noise >&2; sleep 0.1; done"

def show(terminal):
    while True:
        print(".", end="", flush=True, file=terminal)
        time.sleep(0.01)

if __name__ == "__main__":
    with stopping_at_signals() as words, output_to_log(words) as terminal:
        models = ": 2 models"
        words.how_far = lambda: models + " at 20 % and 35 %"
        threading.Thread(target=show, args=(terminal,), daemon=True).start()
        subprocess.Popen(["sh", "-c", NOISE], start_new_session=True)
        child = subprocess.Popen(["sh", "-c", f"sh -c \\"{NOISE}\\"; true"])
        print("READY", file=terminal, flush=True)
        child.wait()
        models = ": no model"
        raise SystemExit("the child died")
"""
LINE = "headstream: stopped: 2 models at 20 % and 35 %; the same command continues from there."


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    return {**os.environ, "HEADSTREAM_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def script(tmp_path) -> list[str]:
    (tmp_path / "at_work.py").write_text(AT_WORK)
    return [sys.executable, str(tmp_path / "at_work.py")]


@pytest.mark.parametrize("how", [["Ctrl-C"], ["Ctrl-C", "Ctrl-C"], ["SIGTERM"], ["SIGTERM", "Ctrl-C"], ["SIGHUP"]])
def test_a_signal_ends_all_with_one_line(how, environment, script):
    terminal = Terminal(script, environment)
    terminal.wait_for("READY")
    for each in how:
        terminal.interrupt(each)
    assert len(terminal.family) >= 3  # it, and two that it started; one of these may yet start another
    assert terminal.ended() in {CODES[each] for each in how}  # two at once are taken in either order
    told = terminal.shown.removesuffix("^C")  # of a key that comes after the last words the terminal still tells
    assert told.splitlines()[-1] == LINE
    assert "noise" not in terminal.shown
    assert "Traceback" not in terminal.shown


def test_a_signal_that_is_to_be_ignored_is(environment, script):
    terminal = Terminal(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *script], environment)
    terminal.wait_for("READY")
    terminal.interrupt("SIGHUP")
    terminal.interrupt("SIGTERM")
    assert terminal.ended() == CODES["SIGTERM"]


def test_without_a_signal_handlers_are_as_before():
    from headstream.tasks.machines.stopping import SIGNALS, stopping_at_signals

    before = {number: signal.getsignal(number) for number in SIGNALS}
    with stopping_at_signals():
        assert signal.getsignal(signal.SIGINT) is not before[signal.SIGINT]
    assert {number: signal.getsignal(number) for number in SIGNALS} == before


def test_a_signal_while_words_are_put_off_is_answered_afterwards(environment):
    """It would wait for ever if the main thread stood still with what the watcher needs."""
    code = """
import os, signal, time
from headstream.tasks.machines.stopping import stopping_at_signals
with stopping_at_signals() as words:
    words.how_far = lambda: " there"
    with words.deferred():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        print("went on", flush=True)
    time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30)
    line = "headstream: stopped there; the same command continues from there.\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "went on\n", line)


def test_a_signal_as_the_block_ends_is_not_lost(environment):
    code = """
import os, signal
from headstream.tasks.machines.stopping import stopping_at_signals
set_wakeup_fd = signal.set_wakeup_fd
with stopping_at_signals():
    signal.set_wakeup_fd = lambda fd: (os.kill(os.getpid(), signal.SIGINT), set_wakeup_fd(fd))
signal.pause()
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 130


def test_what_is_printed_goes_to_the_log_and_afterwards_to_where_it_did(environment):
    code = """
import subprocess, sys
from headstream.tasks.machines.quiet_output import output_to_log
from headstream.tasks.machines.stopping import StopMessage
print("before")
with output_to_log(StopMessage()) as terminal:
    print("inside")
    subprocess.run(["sh", "-c", "echo child; echo child >&2"])
    print("shown", file=terminal)
print("after", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("before\n", "shown\nafter\n")
    log = Path(environment["HEADSTREAM_HOME"]) / "data" / "logs" / "run.log"
    assert log.read_text() == "inside\nchild\nchild\n"
