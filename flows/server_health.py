"""Waits until Prefect's server has started."""

import time
from contextlib import suppress

import httpx

from headstream.tasks.errors import WorkError
from headstream.tasks.machines.services import Service

START_SECONDS = 120.0


def wait_until_healthy(server: Service, address: str) -> bool:
    """Wait until a server answers at its API's address; returns False if it ended instead.

    Raises:
        WorkError: neither happened in time.
    """
    deadline = time.monotonic() + START_SECONDS
    with httpx.Client(timeout=5) as client:  # to make one for each look would take a third of a core from the server
        while time.monotonic() < deadline:
            if server.has_ended():
                return False
            with suppress(httpx.HTTPError):
                if client.get(f"{address}/health").is_success:
                    return True
            time.sleep(0.1)
    raise WorkError(
        f"Prefect's server did not answer within {START_SECONDS:.0f} s; {server.log} may say why. Run the command"
        " again."
    )
