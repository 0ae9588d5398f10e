"""The page that is served on the loopback address, and what isn't."""

import http.client

import pytest

from headstream.tasks.errors import UserError
from headstream.tasks.watching.page_server import PageServer, served_page


@pytest.fixture
def server():
    with served_page(0) as server:
        yield server


def get(server: PageServer, path: str = "/", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*server.server_address)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_page_and_its_version_are_the_last_that_were_shown(server, tmp_path):
    status, text = get(server)
    assert (status, "No checkpoint" in text) == (200, True)
    for version in ("1", "2"):
        (tmp_path / version).write_text(f"page {version} é")
        server.show(tmp_path / version, version)
        assert get(server) == (200, f"page {version} é")
        assert get(server, "/version") == (200, version)


def test_only_this_machine_is_served(server):
    assert server.server_address[0] == "127.0.0.1"
    port = server.server_port
    for host, status in ((f"localhost:{port}", 200), ("127.0.0.1", 403), (f"evil.example:{port}", 403)):
        assert get(server, Host=host)[0] == status


@pytest.mark.parametrize("path", ["/etc/passwd", "/../x", "/version/", "/?x"])
def test_there_is_no_other_page(server, path):
    assert get(server, path)[0] == 404


def test_nothing_can_be_sent(server):
    connection = http.client.HTTPConnection(*server.server_address)
    connection.request("POST", "/", body="x")
    assert connection.getresponse().status == 501


def test_a_port_that_is_taken_is_named(server):
    with pytest.raises(UserError, match=rf"listen on port {server.server_port}"):
        served_page(server.server_port).__enter__()
