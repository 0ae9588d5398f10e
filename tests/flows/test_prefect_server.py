"""Prefect's server as the command line finds it."""

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from flows.prefect_server import _reach_server
from tasks.errors import UserError, WorkError


@pytest.mark.parametrize(
    ("url", "error"), [("http://127.0.0.1:9/api", "ConnectError"), ("http://h:x/api", "InvalidURL")]
)
def test_a_prefect_server_that_does_not_answer(url, error):
    with temporary_settings({PREFECT_API_URL: url, PREFECT_CLIENT_MAX_RETRIES: 0}), pytest.raises(UserError) as refusal:
        _reach_server()
    assert f"must answer at {url}, got {error}" in str(refusal.value)


def test_a_temporary_server_that_does_not_start(monkeypatch):
    def fails(**options):
        raise RuntimeError("It ended with code 1.")

    monkeypatch.setattr("flows.prefect_server.get_client", fails)
    with temporary_settings({PREFECT_API_URL: None}), pytest.raises(WorkError) as failure:
        _reach_server()
    assert "must start on this machine, got RuntimeError: It ended with code 1. Run the command again" in str(
        failure.value
    )


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
            _reach_server()
