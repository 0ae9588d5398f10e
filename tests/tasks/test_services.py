"""Programs that run beside this one."""

import os
import socket
import sys
import time
from pathlib import Path

import psutil
import pytest

from tasks import places
from tasks.errors import RequestError, WorkError
from tasks.services import call, require_free, running

PARENT = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)']); "
PARENT += "print('started', flush=True); time.sleep(99)"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    return tmp_path


def wait_for(what) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_service_ends_with_all_its_children():
    with running("server", [sys.executable, "-c", PARENT], os.environ) as service:
        service.require_running()
        wait_for(lambda: service.log.read_text() == "started\n")
        family = [psutil.Process(service.process.pid), *psutil.Process(service.process.pid).children()]
        assert len(family) == 2
    psutil.wait_procs(family, timeout=30)
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family)


def test_a_service_that_ended_is_said_to_have():
    with running("worker", [sys.executable, "-c", "print('bye')"], os.environ) as service:
        service.process.wait(60)
        with pytest.raises(WorkError, match=r"the worker must go on, but it ended: see .*worker\.log"):
            service.require_running()


def test_logs_of_earlier_runs_are_kept_a_while():
    for i in range(8):
        with running("server", [sys.executable, "-c", f"print({i})"], os.environ) as service:
            service.process.wait(60)
    logs = sorted(places.log_folder().glob("server.log*"))
    assert [log.read_text().strip() for log in logs] == ["7", "6", "5", "4", "3", "2"]


def test_a_call_that_fails_says_what_it_said():
    call([sys.executable, "-c", "pass"], os.environ)
    with pytest.raises(WorkError, match="it said: no such pool"):
        call([sys.executable, "-c", "import sys; sys.exit('no such pool')"], os.environ)


def test_an_address_must_be_free():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(RequestError, match=f"got 127.0.0.1:{port}"):
            require_free("127.0.0.1", port)
    require_free("127.0.0.1", port)
