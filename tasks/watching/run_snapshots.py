"""What a run leaves for who watches it: how far it is, in one small file a study, which is replaced whole.

Nobody waits for anybody: the run writes whether somebody reads or not, and goes on if it can't. The file of a run that
ends well is removed; that of one that failed, or was killed, stays until the study runs again.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from headstream.tasks import places
from headstream.tasks.files.whole_files import written_whole

WRITE_SECONDS = 2.0
SILENT_SECONDS = 30.0  # after which a run on another machine counts as ended
CLOCK_SECONDS = 60.0  # by which two looks at when a process began may differ: clocks are set


@dataclass(frozen=True)
class RunSnapshot:
    """How far a study's last run came, if it didn't end well: in its own words, and whether and how it ended."""

    study: str
    told: Mapping[str, Any]
    goes_on: bool
    failure: str | None


@contextmanager
def snapshots_kept(study: str, told: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """While the block runs, and after it if it fails, others can read what the study tells of itself."""
    ended = threading.Event()

    def keep() -> None:
        while True:
            _write(study, told(), None)
            if ended.wait(WRITE_SECONDS):
                return

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        _stop(thread, ended)
        _write(study, told(), str(error) or type(error).__name__)
        raise
    _stop(thread, ended)
    forget_run(study)


def _stop(thread: threading.Thread, ended: threading.Event) -> None:
    ended.set()
    thread.join()


def forget_run(study: str) -> None:
    """Leave nothing of a study's last run: it is done."""
    with suppress(OSError):
        _file(study).unlink()


def snapshot_of(study: str) -> RunSnapshot | None:
    """How far a study's run is, or was when it failed or was killed; None if it ended well, or none is known."""
    file = _file(study)
    try:
        left = json.loads(file.read_bytes())
        goes_on = left["failure"] is None and _lives(left, time.time() - file.stat().st_mtime)
        return RunSnapshot(study, left["told"], goes_on, left["failure"])
    except (OSError, ValueError, LookupError, TypeError):  # there is none, or none that this release can read
        return None


def running_studies() -> list[str]:
    """The studies that are running now."""
    names = sorted(file.stem for file in places.running_folder().glob("[!.]*.json"))
    return [name for name in names if (run := snapshot_of(name)) and run.goes_on]


def _lives(left: Mapping[str, Any], silent: float) -> bool:
    """Whether the process that left this is alive; of one on another machine, whether it wrote a while ago."""
    if left["machine"] != socket.gethostname():
        return silent < SILENT_SECONDS
    try:
        process = psutil.Process(left["pid"])
        is_the_run = abs(process.create_time() - left["began"]) < CLOCK_SECONDS
        return is_the_run and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _write(study: str, told: Mapping[str, Any], failure: str | None) -> None:
    process, file = psutil.Process(), _file(study)
    left = {
        "told": told,
        "failure": failure,
        "machine": socket.gethostname(),
        "pid": process.pid,
        "began": process.create_time(),
    }
    with suppress(OSError):  # the run goes on unseen
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(file) as unfinished:
            unfinished.write_text(json.dumps(left))


def _file(study: str) -> Path:
    return places.running_folder() / f"{study}.json"
