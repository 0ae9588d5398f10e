"""A full disk: one clear line, nothing half-written, old results can be queried, and given room the run completes.

The disk is a tmpfs, which fills up for every process and library alike, as a real one does; a limit on the size of
files (RLIMIT_FSIZE) would let many small files pass.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from faults.home import STAGES, Home, made_from, require_same, wait_until, wait_until_it_waits
from faults.prefect_states import is_running, last_message, now

TASKS = {"training": "train", "study": "record the study", "report": "write the report"}
BEFORE_PREFECT = ("corpus", "tokens")


@dataclass(frozen=True)
class Disk:
    """A home on a disk of its own."""

    home: Home

    def leave(self, room: int) -> None:
        """Make the disk so small that this many bytes are free."""
        status = os.statvfs(self.home.folder)
        self.resize((status.f_blocks - status.f_bfree) * status.f_frsize + room)

    def resize(self, size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", self.home.folder], check=True)


@pytest.fixture
def disk(tmp_path, reference) -> Iterator[Disk]:
    """A copy of the finished home on a disk of its own."""
    folder = tmp_path / "home"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a disk to fill can't be mounted: {mounted.stderr.strip()}")
    try:
        disk = Disk(reference.copy(folder))
        disk.resize(8 << 30)
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def run_into_full_disk(disk: Disk, study: Path, task: str | None, locks: list[Path], room: int) -> str:
    """Fill the disk when a run has reached what these locks guard, and give the last line that the run prints.

    That is a task of Prefect's, or text if none is named.
    """
    home, start = disk.home, now()
    with ExitStack() as held:
        for lock in locks:
            held.enter_context(FileLock(lock))
        process = home.start("run", str(study))
        if task:
            wait_until(lambda: is_running(home, task, start), process)
        else:
            wait_until_it_waits(process)
        disk.leave(room)
    _, err = process.communicate()
    assert process.returncode == 1
    assert "Traceback" not in err, err
    return err.splitlines()[-1]


def require_clear_end(disk: Disk, said: str) -> None:
    assert said.startswith("headstream: ")
    assert "room for" in said
    assert "Free disk space" in said
    assert all(disk.home.store.open(a.manifest.stage, a.manifest.key) for a in disk.home.artifacts())
    assert not disk.home.store.quarantined()
    assert not [path for path in disk.home.half_written() if not (path / ".resume").exists()]
    assert disk.home.run_well("sql", "select count(*) as n from models", "--format", "csv").split() == ["n", "2"]


@pytest.mark.fault(
    "the disk fills up while `{stage}` is made",
    "exit code 1 and one line; nothing half-written; `sql` answers; given room, the same rows and weights",
)
@pytest.mark.parametrize("stage", STAGES)
def test_full_at_a_stage(stage, disk, reference, study):
    home = disk.home
    home.forget(*made_from(stage))
    wanted = reference.artifacts(stage)
    locks = [Path(f"{folder}.lock") for folder in home.stagings(wanted)]
    room = min(sum(file.bytes for file in artifact.manifest.files.values()) for artifact in wanted) // 2
    task = None if stage in BEFORE_PREFECT else TASKS.get(stage, f"measure {stage}")
    said = run_into_full_disk(disk, study, task, locks, room)
    require_clear_end(disk, said)
    assert task is None or "room for" in last_message(disk.home)
    disk.resize(8 << 30)
    home.run_well("run", str(study))
    require_same(home, reference)


@pytest.mark.fault(
    "the disk fills up while the warehouse is built",
    "exit code 1 and one line; the old warehouse stays; given room, the same rows and weights",
)
def test_full_while_indexing(disk, reference, study):
    home = disk.home
    home.forget()
    lock = home.warehouse.with_name(f"{home.warehouse.name}.lock")
    said = run_into_full_disk(disk, study, "index results", [lock], home.warehouse.stat().st_size // 2)
    require_clear_end(disk, said)
    assert "room for" in last_message(home)
    disk.resize(8 << 30)
    home.run_well("run", str(study))
    require_same(home, reference)


@pytest.mark.fault("a disk with too little room from the start", "exit code 1 and one line before anything is made")
def test_full_before_a_run(disk, study):
    disk.home.forget(*STAGES)
    disk.leave(1 << 20)
    done = disk.home.run("run", str(study))
    assert done.returncode == 1
    assert "The study will write about" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr, done.stderr
    assert not disk.home.artifacts()
