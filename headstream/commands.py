"""Commands of Headstream's, run from Python in a process of their own."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from headstream.tasks.errors import UserError, WorkError

PACKAGE = Path(__file__).parent
INTERRUPT_SECONDS = 3.0  # for an interrupted command to end


def run_command(words: list[str]) -> None:
    """Run a command of Headstream's in a process of its own, and print what it prints.

    Raises:
        UserError: the request was wrong, as the command's last line says.
        WorkError: the work failed, as that line says.
    """
    command = [sys.executable, "-P", "-m", "headstream", *words]
    folders = filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        last = _printed(process)
    if process.returncode:
        raise (UserError if process.returncode == 2 else WorkError)(last.removeprefix("headstream: ").strip())
    print(last, end="", flush=True)


def _printed(process: subprocess.Popen[str]) -> str:
    """Print what a process prints, line by line, until it ends, but for its last line, which is returned."""
    assert process.stdout is not None
    line = ""
    try:
        for following in process.stdout:
            print(line, end="", flush=True)
            line = following
    except KeyboardInterrupt:
        with suppress(subprocess.TimeoutExpired):
            process.wait(INTERRUPT_SECONDS)  # a terminal interrupts it, too
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        print(line + process.stdout.read(), end="", flush=True)
        raise
    return line
