"""Snapshots of a run's progress for those who watch it, in one small file per study that is replaced as a whole.

Nobody waits for anybody: the run writes whether somebody reads or not, and continues if it can't. The file of a run
that succeeds is removed; that of one that failed, or was killed, stays until the study runs again.
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
CLOCK_SECONDS = 60.0  # by which two readings of a process's start may differ, since clocks are adjusted


@dataclass(frozen=True)
class RunSnapshot:
    """The progress of a study's run that is running, failed or was killed; `failure` is the message of a failure."""

    study: str
    progress: Mapping[str, Any]
    is_running: bool
    failure: str | None


@contextmanager
def snapshots_kept(study: str, progress: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """Keep a snapshot of a study's progress for others to read during the block, and after it if it fails."""
    ended = threading.Event()

    def keep() -> None:
        while True:
            _write(study, progress(), None)
            if ended.wait(WRITE_SECONDS):
                return

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        _stop(thread, ended)
        _write(study, progress(), str(error) or type(error).__name__)
        raise
    _stop(thread, ended)
    forget_run(study)


def _stop(thread: threading.Thread, ended: threading.Event) -> None:
    ended.set()
    thread.join()


def forget_run(study: str) -> None:
    """Remove the snapshot of a study's last run, which is done."""
    with suppress(OSError):
        _file(study).unlink()


def snapshot_of(study: str) -> RunSnapshot | None:
    """The progress of a study's run, or of its last one if that failed or was killed; None if there is none."""
    file = _file(study)
    try:
        written = json.loads(file.read_bytes())
        is_running = written["failure"] is None and _is_alive(written, time.time() - file.stat().st_mtime)
        return RunSnapshot(study, written["progress"], is_running, written["failure"])
    except (OSError, ValueError, LookupError, TypeError):  # there is none, or none that this release can read
        return None


def running_studies() -> list[str]:
    """The studies that are running now."""
    names = sorted(file.stem for file in places.running_folder().glob("[!.]*.json"))
    snapshots = [snapshot_of(name) for name in names]
    return [snapshot.study for snapshot in snapshots if snapshot and snapshot.is_running]


def _is_alive(written: Mapping[str, Any], silent_seconds: float) -> bool:
    """True if the process that wrote a snapshot is alive or, on another machine, has written recently."""
    if written["machine"] != socket.gethostname():
        return silent_seconds < SILENT_SECONDS
    try:
        process = psutil.Process(written["pid"])
        is_the_run = abs(process.create_time() - written["began"]) < CLOCK_SECONDS
        return is_the_run and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _write(study: str, progress: Mapping[str, Any], failure: str | None) -> None:
    process, file = psutil.Process(), _file(study)
    written = {
        "progress": progress,
        "failure": failure,
        "machine": socket.gethostname(),
        "pid": process.pid,
        "began": process.create_time(),
    }
    with suppress(OSError):  # the run continues unseen
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(file) as unfinished:
            unfinished.write_text(json.dumps(written))


def _file(study: str) -> Path:
    return places.running_folder() / f"{study}.json"
