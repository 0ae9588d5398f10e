"""Programs that run beside this one."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import until

from headstream.tasks import places
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.machines import guard, services
from headstream.tasks.machines.services import (
    KEPT_LOGS,
    MAX_RESTARTS,
    opened_services,
    require_free_address,
    rotate_log,
    run_program,
)

pytestmark = pytest.mark.process

ENDLESS = "import signal; signal.pause()"
PARENT = f"import signal, subprocess, sys; subprocess.Popen([sys.executable, '-c', '{ENDLESS}']); "
PARENT += "print('started', flush=True); signal.pause()"
WITH_CHILD = [sys.executable, "-c", PARENT]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    return tmp_path


def family(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def require_gone(processes: list[psutil.Process]) -> None:
    psutil.wait_procs(processes, timeout=30)
    assert not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_a_service_ends_with_all_its_children():
    with opened_services() as running:
        service = running.start("server", WITH_CHILD, os.environ)
        until(lambda: service.log.read_text() == "started\n")
        processes = family(service.process.pid)
        assert len(processes) == 2
        assert not service.has_ended()
    require_gone(processes)


def test_what_a_service_left_running_goes_on_until_the_end():
    with opened_services() as running:
        service = running.start("worker", WITH_CHILD, os.environ)
        until(lambda: service.log.read_text() == "started\n")
        (child,) = psutil.Process(service.process.pid).children()
        service.process.kill()
        until(service.has_ended)
        service.restart()
        running.trim()
        assert not service.has_ended()
        assert child.is_running()
    require_gone([child])


STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('started', flush=True); signal.pause()"
HOLDER = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who started the tests may have it ignored
from headstream.tasks.machines.services import opened_services
with opened_services() as running:
    for name, code in {programs}:
        print(running.start(name, [sys.executable, "-c", code], os.environ).log, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize(("number", "worker"), [(signal.SIGKILL, STUBBORN), (signal.SIGHUP, PARENT)])
def test_nothing_outlives_a_process_that_is_killed(number, worker):
    programs = [("server", PARENT), ("worker", worker)]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(programs=programs)], stdout=subprocess.PIPE, text=True, cwd=places.ROOT
    ) as process:
        assert process.stdout is not None
        logs = [Path(process.stdout.readline().strip()) for _ in programs]
        until(lambda: all(log.read_text() == "started\n" for log in logs))
        processes = family(process.pid)
        assert len(processes) == (5 if worker == STUBBORN else 6)  # itself, the guard, services and their children
        process.send_signal(number)
    require_gone(processes)


def test_nothing_outlives_its_guard_and_the_block():
    with opened_services() as running:
        own = psutil.Process()
        until(lambda: any(guard.__file__ in child.cmdline() for child in own.children()))
        (process,) = [child for child in own.children() if guard.__file__ in child.cmdline()]
        process.kill()
        process.wait()
        service = running.start("server", [sys.executable, "-c", ENDLESS], os.environ)
        processes = family(service.process.pid)
    require_gone(processes)


def test_a_service_that_ends_again_and_again_is_given_up():
    with opened_services() as running:
        service = running.start("worker", [sys.executable, "-c", "print('bye')"], os.environ)
        for _ in range(MAX_RESTARTS):
            until(service.has_ended)
            service.restart()
        until(service.has_ended)
        with pytest.raises(WorkError, match=r"the worker exited 6 times in 10 minutes: see .*worker\.log"):
            service.restart()
    assert service.log.read_text() == "bye\n" * (MAX_RESTARTS + 1)


def test_a_service_that_ends_seldom_is_not(monkeypatch):
    monkeypatch.setattr(services, "RESTARTS_SECONDS", 0.0)
    with opened_services() as running:
        service = running.start("worker", [sys.executable, "-c", ""], os.environ)
        for _ in range(MAX_RESTARTS + 2):
            until(service.has_ended)
            service.restart()


def test_logs_of_earlier_runs_are_kept_a_while():
    for i in range(8):
        with opened_services() as running:
            running.start("server", [sys.executable, "-c", f"print({i})"], os.environ).process.wait(60)
    logs = sorted(places.log_folder().glob("server.log*"))
    assert [log.read_text().strip() for log in logs] == ["7", "6", "5", "4", "3", "2"]


PRINTS_ON_SIGNAL = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: print("x" * 1999, flush=True))
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_a_log_does_not_grow_on(monkeypatch):
    monkeypatch.setattr(services, "LOG_BYTES", 1000)
    with opened_services() as running:
        service = running.start("server", [sys.executable, "-c", PRINTS_ON_SIGNAL], os.environ)
        until(lambda: service.log.read_text() == "ready\n")
        running.trim()
        assert service.log.read_text() == "ready\n"
        for before in ("ready\n", ""):
            service.process.send_signal(signal.SIGUSR1)
            text = before + "x" * 1999 + "\n"
            until(lambda text=text: service.log.read_text() == text)
            running.trim()
            assert service.log.read_text() == ""
            assert service.log.with_name("server.log.1").read_text() == text
        service.log.unlink()
        running.trim()


def test_a_call_that_fails_says_what_it_said():
    run_program([sys.executable, "-c", "pass"], os.environ)
    with pytest.raises(WorkError, match="failed: no such pool"):
        run_program([sys.executable, "-c", "import sys; sys.exit('no such pool')"], os.environ)


def test_an_address_must_be_free():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=f"listen at 127.0.0.1:{port}"):
            require_free_address("127.0.0.1", port)
    require_free_address("127.0.0.1", port)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_an_address_must_be_one_that_clients_can_use(host):
    with pytest.raises(UserError, match="must be an address of this machine"):
        require_free_address(host, 4200)


def test_older_logs_are_kept_up_to_a_number_of_them_unless_they_are_empty(tmp_path):
    log = tmp_path / "server.log"
    for i in range(KEPT_LOGS + 3):
        log.write_text(f"{i}" * (i % 2))  # every second one says nothing
        rotate_log(log)
        assert log.read_text() == ""
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {
        "server.log": "",
        "server.log.1": "7",
        "server.log.2": "5",
        "server.log.3": "3",
        "server.log.4": "1",
    }
    for _ in range(KEPT_LOGS):
        log.write_text("new")
        rotate_log(log)
    assert {path.read_text() for path in tmp_path.iterdir()} == {"", "new"}
