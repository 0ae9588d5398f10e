"""Notices of runs that failed, and an end to runs that take too long."""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL

from headstream.flows.hooks import fail_after, notify_of_failure
from headstream.tasks import places

FAILED = (
    SimpleNamespace(name="study"),
    SimpleNamespace(name="quick", id="1234"),
    SimpleNamespace(name="Failed", message="1 of 3 models failed"),
)
NOTICE = {"flow": "study", "run": "quick", "flow_run_id": "1234", "state": "Failed", "message": "1 of 3 models failed"}


def test_a_command_is_told_of_a_failure(monkeypatch, tmp_path):
    code = f"import sys; open({str(tmp_path / 'notice')!r}, 'w').write(sys.stdin.read())"
    monkeypatch.setenv("HEADSTREAM_ON_FAILURE", f'{sys.executable} -c "{code}"')
    notify_of_failure(*FAILED)
    assert json.loads((tmp_path / "notice").read_text()) == NOTICE


def test_an_address_is_told_of_a_failure(monkeypatch):
    received = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        monkeypatch.setenv("HEADSTREAM_ON_FAILURE", f"http://127.0.0.1:{server.server_port}/")
        notify_of_failure(*FAILED)
        thread.join()
    assert received == [NOTICE]


@pytest.mark.parametrize(
    "target", ["", " ", "no-such-command --really", "http://127.0.0.1:9/", "http://h/x\n", "http://h:x/", "'unbalanced"]
)
def test_a_notice_that_cannot_be_delivered_is_logged_without_its_address(target, monkeypatch, caplog):
    monkeypatch.setenv("HEADSTREAM_ON_FAILURE", target)
    notify_of_failure(*FAILED)
    assert ("was not delivered" in caplog.text) == bool(target)
    assert not target.strip() or target not in caplog.text


OVERDUE = """
import threading
from types import SimpleNamespace
from prefect import flow
from prefect.runtime import flow_run
from headstream.flows.hooks import fail_after, notify_of_failure

@flow(on_failure=[notify_of_failure])
def endless():
    run = SimpleNamespace(id=flow_run.id, deployment_id="any", name="endless")
    print(run.id, flush=True)
    fail_after(1.8)(endless, run, None)
    threading.Thread(target=threading.Event().wait).start()  # no daemon: it would keep the process
    threading.Event().wait()

endless()
"""


@pytest.mark.usefixtures("prefect_server")
def test_an_overdue_run_fails_with_its_process(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", PREFECT_API_URL.value())
    code = f"import sys; open({str(tmp_path / 'notice')!r}, 'w').write(sys.stdin.read())"
    monkeypatch.setenv("HEADSTREAM_ON_FAILURE", f'{sys.executable} -c "{code}"')
    done = subprocess.run([sys.executable, "-c", OVERDUE], cwd=places.ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(done.stdout.strip()).state
    assert state.name == "TimedOut"
    assert state.is_failed()
    assert state.message.startswith("took longer than 0.0005 hours")
    assert json.loads((tmp_path / "notice").read_text())["message"] == state.message


def test_a_run_in_another_process_than_its_own_is_not_watched(monkeypatch):
    fail_after(0.0)(None, SimpleNamespace(deployment_id=None), None)
