"""The artifact store: a result is a folder named by the hash of what decided it, there whole or not at all.

- root/<stage>/<key>/: the stage's files and manifest.json
- root/.staging/<uuid>/: an artifact being written; its writer holds the lock <uuid>.lock beside it
- root/.quarantine/: artifacts that no longer match their manifest, moved here by whoever found out
- root/.in-use.lock: locked by each run that is going on, shared with the others
"""

import errno
import fcntl
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO, Any
from uuid import NAMESPACE_URL, uuid4, uuid5

from filelock import FileLock, Timeout

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.files.system_errors import disk_errors_explained
from headstream.tasks.storage.artifact import MANIFEST, Artifact, Spec, read_manifest
from headstream.tasks.storage.sealing import RESUME, file_sha256, fsync, seal

_NAME = re.compile(r"[a-z0-9_-]+")
_DAMAGED = {errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.EIO}

log = logging.getLogger(__name__)


class Store:
    """Content-addressed artifacts in one folder; processes may share it, and be killed at any moment."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._staging = self.root / ".staging"

    def find(self, spec: Spec) -> Artifact | None:
        """The artifact that answers a spec, its files verified; None when it must be built (again)."""
        return self.open(spec.stage, spec.key)

    def open(self, stage: str, key: str) -> Artifact | None:
        """As `verified`, for a use of the artifact."""
        artifact = self.verified(stage, key)
        if artifact:
            with suppress(OSError):  # a read-only store is still readable
                os.utime(artifact.folder / MANIFEST)
        return artifact

    def verified(self, stage: str, key: str, among: frozenset[str] | None = None) -> Artifact | None:
        """The artifact of that name, its files verified, or those of them `among` some names.

        None when there is none, or it was corrupt.
        """
        return self._load(stage, key, verify=True, among=among)

    def days_unused(self, artifact: Artifact) -> float:
        """Days since a run last opened or made an artifact; 0 if it has just been removed."""
        with suppress(FileNotFoundError):
            return (time.time() - (artifact.folder / MANIFEST).stat().st_mtime) / 86400
        return 0.0

    def in_use(self) -> AbstractContextManager[object]:
        """Nothing is removed while the block runs; waits for a removal that is going on."""
        return self._lock_use(fcntl.LOCK_SH)

    def at_rest(self) -> AbstractContextManager[object]:
        """No run goes on while the block does; those that start meanwhile wait.

        Raises: WorkError when one goes on now.
        """
        try:
            return self._lock_use(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkError(
                f"no run must be going on while results are removed from {self.root}, but one is. Wait for its end."
            ) from None

    def quarantined(self) -> list[Path]:
        """Corrupt artifacts that were moved away."""
        return sorted((self.root / ".quarantine").glob("*"))

    def artifacts(self, stage: str | None = None) -> Iterator[Artifact]:
        """Every artifact, of one stage or of all, sorted by stage and key; their files are not verified."""
        for stage_folder in _named_folders(self.root):
            if stage in (None, stage_folder.name):
                for folder in _named_folders(stage_folder):
                    if artifact := self._load(stage_folder.name, folder.name, verify=False):
                        yield artifact

    def build(
        self,
        spec: Spec,
        write: Callable[[Path], Mapping[str, Any] | None],
        *,
        incidental: Collection[str] = (),
        resumable: bool = False,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Artifact:
        """Finds the artifact, or has `write` fill a folder and return the manifest's facts, and commits that.

        Runs that ask for the same key at once do the work once: the others wait, having called `on_wait`. With
        `resumable`, `write` gets the folder as an interrupted run left it; its subfolder `.resume` is for checkpoints,
        which are not committed.

        Raises: WorkError when the disk is full or can't be written; whatever `write` raises.
        """
        if found := self.find(spec):
            return found
        target, staging = self._folder(spec.stage, spec.key), self._unfinished(spec.stage, spec.key)
        with disk_errors_explained(self.root), self._locked(staging, on_wait):
            if found := self.find(spec):
                return found
            try:
                if resumable and (staging / RESUME).is_dir():
                    _remove_unfinished(staging)
                else:
                    self._discard(staging)
                    (staging / RESUME if resumable else staging).mkdir(parents=True)
                started = time.monotonic()
                facts = write(staging)
                seal(staging, spec, facts or {}, incidental, time.monotonic() - started)
                self._publish(staging, target)
            except BaseException as error:
                removed_by_others = not staging.exists()
                if not resumable:
                    self._discard(staging)
                if removed_by_others and isinstance(error, Exception):
                    raise FileNotFoundError(
                        errno.ENOENT, "it was removed while it was written", str(staging)
                    ) from error
                raise
            return read_manifest(target)

    def so_far(self, stage: str, key: str) -> Path | None:
        """The folder of an artifact, or what its writer has of it now; nothing is verified, and it may move away."""
        return next(filter(Path.is_dir, (self._folder(stage, key), self._unfinished(stage, key))), None)

    def interrupted(self, days: float) -> list[Path]:
        """Work that killed runs left and another could go on with, but none has for some days."""
        folders = [folder.parent for folder in sorted(self._staging.glob(f"*/{RESUME}"))]
        return [folder for folder in folders if (time.time() - _last_change(folder)) / 86400 >= days]

    def remove(self, folder: Path) -> None:
        """Deletes an artifact or interrupted work; no reader sees half of it, and what a kill leaves is swept."""
        with disk_errors_explained(self.root):
            self._staging.mkdir(exist_ok=True)
            self._discard(folder)

    def sweep(self) -> list[Path]:
        """Removes what killed runs left in staging, and returns it; what another run can go on with stays."""
        removed = []
        with disk_errors_explained(self.root):
            for name in sorted({path.stem for path in self._staging.glob("*")}):
                folder, lock = self._staging / name, self._staging / f"{name}.lock"
                with suppress(Timeout), FileLock(lock, timeout=0):
                    if folder.exists() and not (folder / RESUME).is_dir():
                        shutil.rmtree(folder, ignore_errors=True)
                        removed.append(folder)
                    # A run waiting for this lock sees that its file is unlinked, and makes a new one.
                    lock.unlink(missing_ok=True)
        return removed

    def quarantine(self, stage: str, key: str, reason: str) -> None:
        """Moves an artifact out of every reader's sight, kept for a look; the next build writes it again."""
        resting = self.root / ".quarantine" / f"{stage}-{key}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
        resting.parent.mkdir(exist_ok=True)
        os.rename(self._folder(stage, key), resting)
        log.warning("%s/%s is corrupt and will be built again: %s. Moved to %s", stage, key, reason, resting)

    def _folder(self, stage: str, key: str) -> Path:
        for name in (stage, key):
            if not _NAME.fullmatch(name):
                raise UserError(f"a stage or key must be of a-z, 0-9, _ and -, got {name!r}. Rename it.")
        return self.root / stage / key

    def _unfinished(self, stage: str, key: str) -> Path:
        return self._staging / str(uuid5(NAMESPACE_URL, f"headstream:{stage}/{key}"))

    def _load(self, stage: str, key: str, *, verify: bool, among: frozenset[str] | None = None) -> Artifact | None:
        folder = self._folder(stage, key)
        identity = _identity(folder)
        if identity is None:
            return None
        with disk_errors_explained(self.root):
            try:
                return _verified(folder, identity, among) if verify else read_manifest(folder)
            except (ValueError, OSError) as error:
                if isinstance(error, OSError) and error.errno not in _DAMAGED:
                    raise
                if _identity(folder) != identity:  # another run has moved it, or built it again, meanwhile
                    return self._load(stage, key, verify=verify, among=among)
                with suppress(FileNotFoundError):
                    self.quarantine(stage, key, str(error).splitlines()[0])
                return None

    def _lock_use(self, how: int) -> IO[str]:
        """Holds the lock on the use of this store until the file is closed."""
        with disk_errors_explained(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            file = (self.root / ".in-use.lock").open("a")
        try:
            fcntl.flock(file, how)
        except BaseException:
            file.close()
            raise
        return file

    @contextmanager
    def _locked(self, staging: Path, on_wait: Callable[[], None]) -> Iterator[None]:
        self._staging.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{staging}.lock")
        try:
            held = lock.acquire(timeout=0)
        except Timeout:
            on_wait()
            held = lock.acquire()
        with held:
            yield

    def _publish(self, staging: Path, target: Path) -> None:
        target.parent.mkdir(exist_ok=True)
        checkpoints = self._set_aside(staging / RESUME)
        fsync(staging)
        try:
            os.rename(staging, target)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            # Where locks don't work (some network file systems), another run can have committed meanwhile.
            if self._load(target.parent.name, target.name, verify=True):
                self._discard(staging)
            else:
                os.rename(staging, target)
        fsync(target.parent)
        fsync(self.root)
        shutil.rmtree(checkpoints, ignore_errors=True)

    def _set_aside(self, folder: Path) -> Path:
        """Gives a folder a name that only `sweep` finds, so that removing it may be interrupted."""
        aside = self._staging / str(uuid4())
        with suppress(FileNotFoundError):
            os.rename(folder, aside)
        return aside

    def _discard(self, folder: Path) -> None:
        shutil.rmtree(self._set_aside(folder), ignore_errors=True)


@cache
def _verified(folder: Path, identity: tuple[int, int], among: frozenset[str] | None) -> Artifact:
    """Reads an artifact and checks its files, once a process; one built again has another identity.

    Raises: ValueError when a file does not match the manifest.
    """
    artifact = read_manifest(folder)
    for name, stored in artifact.manifest.files.items():
        if (among is None or name in among) and file_sha256(folder / name) != stored.sha256:
            raise ValueError(f"{name} does not match its sha256")
    return artifact


def _named_folders(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_dir())
    return []


def _remove_unfinished(staging: Path) -> None:
    """Removes what a killed writer had not finished: a manifest, and the hidden files that libraries write first."""
    for path in [staging / MANIFEST, *staging.rglob(".*")]:
        if path.is_file():
            path.unlink()


def _last_change(folder: Path) -> float:
    """When anything in a folder last changed, in seconds of the clock."""
    return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))


def _identity(folder: Path) -> tuple[int, int] | None:
    """What tells a folder from another one of the same name, before or after it; None when there is none."""
    try:
        status = folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_mtime_ns
