"""The artifact store: each result is a folder named by the hash of what decided it, there complete or not at all.

- root/<stage>/<key>/: the stage's files and manifest.json
- root/.staging/<uuid>/: an artifact being written; its writer holds the lock <uuid>.lock beside it
- root/.quarantine/: artifacts that no longer match their manifest, moved here by whoever found out
- root/.in-use.lock: locked by every run in progress, shared with the others
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
        """The artifact of a spec, its files verified; None when it must be built (again)."""
        return self.open(spec.stage, spec.key)

    def open(self, stage: str, key: str) -> Artifact | None:
        """The artifact that `verified` gives, marked as used now."""
        artifact = self.verified(stage, key)
        if artifact:
            with suppress(OSError):  # a read-only store is still readable
                os.utime(artifact.folder / MANIFEST)
        return artifact

    def verified(self, stage: str, key: str, among: frozenset[str] | None = None) -> Artifact | None:
        """The artifact of that name, its files verified, or only those `among` some names.

        None if there is none, or it was corrupt.
        """
        return self._load(stage, key, verify=True, among=among)

    def days_unused(self, artifact: Artifact) -> float:
        """Days since a run last opened or made the artifact; 0 if it has just been removed."""
        with suppress(FileNotFoundError):
            return (time.time() - (artifact.folder / MANIFEST).stat().st_mtime) / 86400
        return 0.0

    def shared_lock(self) -> AbstractContextManager[object]:
        """Lock the store for a run: nothing is removed during the block. Waits for a removal in progress."""
        return self._lock_use(fcntl.LOCK_SH)

    def exclusive_lock(self) -> AbstractContextManager[object]:
        """Lock the store for a removal: runs that start during the block wait for its end.

        Raises: WorkError when a run is in progress.
        """
        try:
            return self._lock_use(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkError(
                f"can't remove results from {self.root} while a run is in progress. Wait for it to finish."
            ) from None

    def quarantined(self) -> list[Path]:
        """Folders of corrupt artifacts that were moved away."""
        return sorted((self.root / ".quarantine").glob("*"))

    def artifacts(self, stage: str | None = None) -> Iterator[Artifact]:
        """Every artifact, of one stage or of all, sorted by stage and key; files are not verified."""
        for stage_folder in _named_folders(self.root):
            if stage in (None, stage_folder.name):
                for folder in _named_folders(stage_folder):
                    artifact = self._load(stage_folder.name, folder.name, verify=False)
                    if artifact:
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
        """Find the artifact, or have `write` fill a folder and return the manifest's facts, and commit that.

        If several runs ask for the same key at once, one does the work; the others call `on_wait` and wait. With
        `resumable`, `write` gets the folder as an interrupted run left it; its subfolder `.resume` is for the state
        of the run, which is not committed.

        Raises: WorkError when the disk is full or can't be written; whatever `write` raises.
        """
        found = self.find(spec)
        if found:
            return found
        target, staging = self._folder(spec.stage, spec.key), self._unfinished(spec.stage, spec.key)
        with disk_errors_explained(self.root), self._locked(staging, on_wait):
            found = self.find(spec)
            if found:
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
                        errno.ENOENT, "it was removed while it was being written", str(staging)
                    ) from error
                raise
            return read_manifest(target)

    def working_folder(self, stage: str, key: str) -> Path | None:
        """The folder of an artifact, finished or being written; nothing is verified, and it may move away."""
        for folder in (self._folder(stage, key), self._unfinished(stage, key)):
            if folder.is_dir():
                return folder
        return None

    def interrupted(self, days: float) -> list[Path]:
        """Folders of work that killed runs left, that could be resumed but hasn't been for some days."""
        folders = [folder.parent for folder in sorted(self._staging.glob(f"*/{RESUME}"))]
        return [folder for folder in folders if (time.time() - _last_change(folder)) / 86400 >= days]

    def remove(self, folder: Path) -> None:
        """Delete an artifact or interrupted work; no reader sees half of it, and `sweep` removes what a kill leaves."""
        with disk_errors_explained(self.root):
            self._staging.mkdir(exist_ok=True)
            self._discard(folder)

    def sweep(self) -> list[Path]:
        """Remove what killed runs left in staging, and return those folders; work that can be resumed stays."""
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
        """Move an artifact out of every reader's sight, and keep it for inspection; the next build writes it again."""
        moved = self.root / ".quarantine" / f"{stage}-{key}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
        moved.parent.mkdir(exist_ok=True)
        os.rename(self._folder(stage, key), moved)
        log.warning("%s/%s is corrupt and will be built again: %s. Moved to %s", stage, key, reason, moved)

    def _folder(self, stage: str, key: str) -> Path:
        for name in (stage, key):
            if not _NAME.fullmatch(name):
                raise UserError(f"a stage or key must consist of a-z, 0-9, _ and -, got {name!r}. Rename it.")
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
        """Take the lock on the use of this store, which is held until the file is closed."""
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
            # Where locks don't work (some network file systems), another run may have committed meanwhile.
            if self._load(target.parent.name, target.name, verify=True):
                self._discard(staging)
            else:
                os.rename(staging, target)
        fsync(target.parent)
        fsync(self.root)
        shutil.rmtree(checkpoints, ignore_errors=True)

    def _set_aside(self, folder: Path) -> Path:
        """Give a folder a name that only `sweep` finds, so that its removal may be interrupted."""
        aside = self._staging / str(uuid4())
        with suppress(FileNotFoundError):
            os.rename(folder, aside)
        return aside

    def _discard(self, folder: Path) -> None:
        shutil.rmtree(self._set_aside(folder), ignore_errors=True)


@cache
def _verified(folder: Path, identity: tuple[int, int], among: frozenset[str] | None) -> Artifact:
    """Read an artifact and check its files, once per process; one that is built again has another identity.

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
    """Remove what a killed writer had not finished: a manifest, and hidden files, which libraries write first."""
    for path in [staging / MANIFEST, *staging.rglob(".*")]:
        if path.is_file():
            path.unlink()


def _last_change(folder: Path) -> float:
    """The time of the last change to anything in a folder, in seconds since the epoch."""
    return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))


def _identity(folder: Path) -> tuple[int, int] | None:
    """A value that differs between two folders of the same name, one after the other; None when there is none."""
    try:
        status = folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_mtime_ns
