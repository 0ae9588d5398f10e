"""Telling people of a run that failed: a web hook or a command, named by HEADSTREAM_ON_FAILURE."""

import json
import os
import shlex
import subprocess
from logging import getLogger
from typing import Any

import httpx

SECONDS = 30.0

log = getLogger(__name__)


def tell_of_failure(flow: Any, flow_run: Any, state: Any) -> None:
    """Post a JSON notice to the address, or hand it to the command on its standard input.

    A notice that can't be delivered is logged: it must not change how the run ended.
    """
    target = os.environ.get("HEADSTREAM_ON_FAILURE")
    if not target:
        return
    notice = {
        "flow": flow.name,
        "run": flow_run.name,
        "flow_run_id": str(flow_run.id),
        "state": state.name,
        "message": state.message,
    }
    try:
        if target.startswith(("http://", "https://")):
            httpx.post(target, json=notice, timeout=SECONDS).raise_for_status()
        else:
            subprocess.run(shlex.split(target), input=json.dumps(notice), text=True, timeout=SECONDS, check=True)
    except Exception as error:  # of the address, the network, or the command
        log.error("the notice of %s was not delivered: %s", flow_run.name, type(error).__name__)
