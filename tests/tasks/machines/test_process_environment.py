"""A command in surroundings that nobody would wish for."""

import os
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from io import BufferedWriter
from pathlib import Path
from urllib.request import proxy_bypass

import pytest

from headstream.tasks.machines.process_environment import (
    Output,
    bypass_proxies,
    choose_prefect_home,
    isolate_child_processes,
    tolerate_warnings,
)
from headstream.tasks.machines.stopping import StopRequested, raising_on_signals

ROOT = Path(__file__).resolve().parents[3]


def test_no_proxy_stands_before_this_machine(monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("NO_PROXY", "example.org,localhost")
    isolate_child_processes()
    bypass_proxies("10.1.1.1")
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "example.org,localhost,127.0.0.1,::1,10.1.1.1"
    assert [bool(proxy_bypass(host)) for host in ("localhost:4200", "127.0.0.1:80", "example.org", "example.com")] == [
        True, True, True, False,
    ]  # fmt: skip


HEADSTREAM = f"{sys.executable} -m headstream"


@pytest.mark.parametrize("options", [["error"], ["ignore::UserWarning", "error::DeprecationWarning"], ["e", "default"]])
def test_no_warning_of_a_library_is_an_error(monkeypatch, options):
    monkeypatch.setenv("PYTHONWARNINGS", ",".join(options))
    monkeypatch.setattr(sys, "warnoptions", [*options])
    kept = [option for option in options if option[0] != "e"]
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("error")
        tolerate_warnings()
        warnings.warn("torch does so", DeprecationWarning, stacklevel=1)
    assert (sys.warnoptions, os.environ["PYTHONWARNINGS"]) == (kept, ",".join(kept))


def test_options_that_make_no_errors_are_left(monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "default,ignore::DeprecationWarning")
    monkeypatch.setattr(sys, "warnoptions", ["default", "ignore::DeprecationWarning"])
    with warnings.catch_warnings():
        before = [*warnings.filters]
        tolerate_warnings()
        assert warnings.filters == before
    assert os.environ["PYTHONWARNINGS"] == "default,ignore::DeprecationWarning"


STUDIES = f"{HEADSTREAM} studies"


def test_prefects_database_is_where_it_can_be_written_and_profiles_are_the_users(monkeypatch, tmp_path):
    for variable in ("PREFECT_HOME", "PREFECT_PROFILES_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    blocked, own = tmp_path / "file" / "prefect", tmp_path / "home" / "data" / "prefect"
    (tmp_path / "file").touch()
    choose_prefect_home(blocked, own)
    assert os.environ["PREFECT_HOME"] == str(own)
    assert own.is_dir()
    assert "PREFECT_PROFILES_PATH" not in os.environ
    monkeypatch.delenv("PREFECT_HOME")
    (tmp_path / ".prefect").mkdir()
    (tmp_path / ".prefect" / "profiles.toml").write_text("[profiles.own]\n")
    choose_prefect_home(tmp_path / "first", own)
    assert os.environ["PREFECT_HOME"] == str(tmp_path / "first")
    assert os.environ["PREFECT_PROFILES_PATH"] == str(tmp_path / ".prefect" / "profiles.toml")
    monkeypatch.setenv("PREFECT_HOME", "elsewhere")
    choose_prefect_home(own)
    assert os.environ["PREFECT_HOME"] == os.path.abspath("elsewhere")


CLOSED = "headstream: the output is closed, so nothing can be printed. Leave it open, or send it to /dev/null.\n"
FULL = "headstream: the output can't be written: No space left on device. Send it elsewhere.\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (f"{STUDIES} > /dev/null", 0, ""),
        (f"{STUDIES} >&-", 1, CLOSED),
        (f"{STUDIES} 2>&- > /dev/null", 0, ""),
        (f"{STUDIES} <&- >&- 2>&-", 1, ""),
        (f"{STUDIES} > /dev/full", 1, FULL),
        (f"{STUDIES} | true", 141, ""),
        (f"{HEADSTREAM} --help > /dev/full", 1, FULL),
        (f"{HEADSTREAM} plan nowhere 2> /dev/full", 2, ""),
        (f"{HEADSTREAM} plan nowhere 2>&1 | true", 2, ""),
    ],
)
def test_what_is_not_printed_is_told_by_the_exit_code(command, code, said, tmp_path):
    environment = {**os.environ, "HEADSTREAM_HOME": str(tmp_path)}
    shell = ["bash", "-o", "pipefail", "-c", command]
    done = subprocess.run(shell, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.process
def test_a_reader_that_goes_away_ends_a_command_that_prints_on():
    printed = (
        "from headstream.tasks.machines.process_environment import configure_output, output_written\n"
        "configure_output()\nwith output_written():\n while True: print('x' * 100_000)"
    )
    shell = ["bash", "-o", "pipefail", "-c", f'{sys.executable} -c "$1" | head -c 1', "-", printed]
    done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (141, "x", "")


def test_what_a_signal_cuts_short_is_not_written_again():
    """More than a pipe holds: a part has been written when the signal comes, and the buffer doesn't know."""
    reader, writer = os.pipe()
    told = "".join(f"{i}\n" for i in range(30_000)).encode()
    signals = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
    with ThreadPoolExecutor(1) as threads, open(reader, "rb") as pipe:
        with raising_on_signals(), BufferedWriter(Output(writer), len(told)) as stream:
            stream.write(told)
            signals.start()
            with pytest.raises(StopRequested):
                stream.flush()
            written = threads.submit(pipe.read)
            stream.flush()
        os.close(writer)
        assert len(written.result()) > 0
        assert told.startswith(written.result())


@pytest.mark.process
def test_a_folder_that_was_removed_is_refused_in_one_line(tmp_path):
    (tmp_path / "gone").mkdir()
    command = f"cd gone; rmdir ../gone; {Path(sys.executable).parent}/headstream studies"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "headstream: the current folder was deleted. Change to another one.\n"


@pytest.mark.process
def test_letters_that_the_locale_lacks(tmp_path):
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {**os.environ, **ascii_only, "HEADSTREAM_HOME": str(tmp_path)}
    (tmp_path / "own.toml").write_text('name = "own"\nquestion = "Wofür?"\n', encoding="utf-8")
    printed = "from headstream.tasks.machines.process_environment import configure_output as p; p(); print(chr(252))"
    for arguments in (["-m", "headstream", "plan", str(tmp_path / "own.toml")], ["-c", printed]):
        done = subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == "ü\n".encode()
