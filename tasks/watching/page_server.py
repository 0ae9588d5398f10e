"""Serves one page, and its version, on the loopback address to browsers on this machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TypeVar

from headstream.tasks.errors import UserError

LOOPBACK = "127.0.0.1"
Served = TypeVar("Served", bound="PageServer")
POLL_SECONDS = 0.1  # between checks for the end
EMPTY_PAGE = (
    "<!doctype html><meta charset='utf-8'><title>Headstream</title><meta http-equiv='refresh' content='2'>"
    "<p>No checkpoint has been measured yet. This page shows them as soon as there are some.</p>"
)


class PageServer(ThreadingHTTPServer):
    """Serves one page, which may change."""

    daemon_threads = True

    def __init__(self, port: int, handler: type["PageHandler"] | None = None) -> None:
        super().__init__((LOOPBACK, port), handler or PageHandler)
        self.page = EMPTY_PAGE.encode()
        self.version = ""

    @property
    def address(self) -> str:
        """The page's address for browsers."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def show(self, page: Path, version: str) -> None:
        """Serve a file's present content; open pages of another version will reload it."""
        self.page, self.version = page.read_bytes(), version

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore browsers that disconnect in the middle of a response."""


class PageHandler(BaseHTTPRequestHandler):
    """Answers requests for the page and its version, of browsers on this machine alone."""

    server: PageServer

    def is_for_this_machine(self) -> bool:
        """Tell if a request may be answered; if not, it is refused here.

        A page of another site whose name was pointed at this machine (DNS rebinding) sends that name.
        """
        named = {f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")}
        if self.headers.get("Host") in named:
            return True
        self.answer(403, b"This page is for this machine alone.", "text/plain")
        return False

    def do_GET(self) -> None:
        if not self.is_for_this_machine():
            return
        if self.path == "/version":
            self.answer(200, self.server.version.encode(), "text/plain")
        elif self.path != "/":
            self.answer(404, b"There is one page, /.", "text/plain")
        else:
            self.answer(200, self.server.page, "text/html; charset=utf-8")

    def answer(self, status: int, content: bytes, kind: str) -> None:
        """Send an answer that nothing keeps."""
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(content)), "Cache-Control": "no-store"}
        for name, value in {**headers, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@contextmanager
def served_page(port: int) -> Iterator[PageServer]:
    """Start a server on a port, or with 0 on any free one.

    Raises:
        UserError: the port is taken.
    """
    with running(PageServer, port) as server:
        yield server


@contextmanager
def running(start: Callable[[int], Served], port: int) -> Iterator[Served]:
    """Start a server of some kind on a port, or with 0 on any free one; it ends with the block.

    Raises:
        UserError: the port is taken.
    """
    try:
        server = start(port)
    except OSError as error:
        raise UserError(
            f"can't listen on port {port}: {error.strerror}. Choose another --port, or leave it out."
        ) from None
    with server:
        Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
