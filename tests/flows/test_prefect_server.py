"""Prefect's server as the command line finds it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import httpx
import psutil
import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect_database import put_prefect_database, shared_folder
from waiting import until

from headstream.flows import prefect_server
from headstream.flows.prefect_server import _reach_server, starting_server
from headstream.tasks import places
from headstream.tasks.errors import UserError, WorkError

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    for name in ("HEADSTREAM_HOME", "PREFECT_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.mark.parametrize(
    ("url", "error"), [("http://127.0.0.1:9/api", "ConnectError"), ("http://h:x/api", "InvalidURL")]
)
def test_a_prefect_server_that_does_not_answer(url, error):
    with temporary_settings({PREFECT_API_URL: url, PREFECT_CLIENT_MAX_RETRIES: 0}), pytest.raises(UserError) as refusal:
        _reach_server(url)
    assert f"does not answer at {url}: {error}" in str(refusal.value)


ANSWERS = {
    "nothing": b"",
    "no HTTP": b"220 mail.example.org\r\n",
    "a page": b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
    "an error": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
    "half": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_server_that_is_not_prefects_or_never_answers_is_told_of_in_one_line(monkeypatch, answer):
    monkeypatch.setattr(prefect_server, "REACH_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as thread:

        def serve() -> socket.socket:
            connection, _ = listening.accept()
            connection.recv(4096)
            connection.sendall(ANSWERS[answer])
            return connection  # open, so that the client waits

        served = thread.submit(serve)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
        with temporary_settings({PREFECT_API_URL: url}), pytest.raises(UserError) as refusal:
            _reach_server(url)
        served.result().close()
    assert str(refusal.value).startswith(f"Prefect's server does not answer at {url}: ")
    assert "\n" not in str(refusal.value)


def test_a_temporary_server_that_does_not_start_is_not_waited_for(monkeypatch, tmp_path):
    monkeypatch.setenv("PREFECT_SERVER_DATABASE_CONNECTION_URL", "sqlite+aiosqlite:////proc/prefect.db")
    failed = pytest.raises(WorkError, match=r"temporary server exited with code \d; .*run-server\.log")
    with temporary_settings({PREFECT_API_URL: None}), starting_server() as server, failed:
        server.result(timeout=60)


def test_a_temporary_server_answers_and_ends_with_the_block(tmp_path, tmp_path_factory):
    put_prefect_database(shared_folder(tmp_path_factory.getbasetemp()), tmp_path)

    async def used():
        with temporary_settings({PREFECT_API_URL: None}), starting_server() as server:
            server.result()
            address = PREFECT_API_URL.value()
            assert httpx.get(f"{address}/version").is_success
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{address}/version")

    with ThreadPoolExecutor(1) as thread:  # other tests may have left a loop running in this one
        thread.submit(asyncio.run, used()).result()  # as in a notebook, whose loop runs already


KILLED = """
import os, signal
from headstream.flows.prefect_server import starting_server
with starting_server():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_temporary_server_ends_with_a_run_that_is_killed_as_soon_as_it_began(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(places.ROOT), "MARK": str(tmp_path)}
    environment.pop("PREFECT_API_URL", None)
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "data" / "logs" / "run-server.log").exists()
    until(lambda: not [process for process in psutil.process_iter() if mark(process) == str(tmp_path)])


def mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("MARK")
    except psutil.Error:
        return None


def test_a_prefect_server_that_wants_a_password():
    class Locked(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(401)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Locked) as server:
        Thread(target=server.handle_request).start()
        url = f"http://127.0.0.1:{server.server_port}/api"
        with temporary_settings({PREFECT_API_URL: url}), pytest.raises(UserError, match="PREFECT_API_AUTH_STRING"):
            _reach_server(url)
