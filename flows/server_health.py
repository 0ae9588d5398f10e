"""Whether a server of Prefect's has started."""

import time
from contextlib import suppress

import httpx

from headstream.tasks.errors import WorkError
from headstream.tasks.machines.services import Service

START_SECONDS = 120.0


def wait_until_healthy(server: Service, address: str) -> bool:
    """Whether a server wait_until_healthy at its API's address rather than ends, after waiting for either.

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
        f"Prefect's server must answer within {START_SECONDS:.0f} s, but did not: {server.log} may say why. Run the"
        " command again."
    )
