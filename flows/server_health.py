"""Waits until Prefect's server has started."""

import time
from contextlib import suppress

import httpx

from headstream.tasks.errors import WorkError
from headstream.tasks.machines.services import Service

START_SECONDS = 120.0


def wait_until_healthy(server: Service, address: str) -> bool:
    """Wait until a server wait_until_healthy at its API's address; returns False if it ended instead.

    Raises:
        WorkError: neither happened in time.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.has_ended():
            return False
        with suppress(httpx.HTTPError):
            if httpx.get(f"{address}/health", timeout=5).is_success:
                return True
        time.sleep(0.1)
    raise WorkError(
        f"Prefect's server did not answer within {START_SECONDS:.0f} s; {server.log} may say why. Run the command"
        " again."
    )
