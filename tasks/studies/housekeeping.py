"""Keeping house: whether everything stored is as it was written, and what of it no study needs."""

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from headstream.tasks.errors import WorkError
from headstream.tasks.results.warehouse import is_current, is_whole
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.latest_records import latest_records
from headstream.tasks.storage.provenance import package_version
from headstream.tasks.storage.store import Store
from headstream.tasks.training.numerics import cpu_multiplies_bfloat16, has_compiler

LOW_DISK_BYTES = 2 << 30
PACKAGES = ("headstream", "torch", "duckdb", "prefect", "pyarrow", "tokenizers")


@dataclass(frozen=True)
class Check:
    """One thing that was checked, whether it is well, and what was seen, with what to do if it isn't."""

    what: str
    holds: bool
    seen: str


def check_all(store: Store, warehouse: Path) -> Iterator[Check]:
    """Verify every artifact, that studies have all they name, the warehouse and the environment.

    A corrupt artifact is moved to the quarantine, as when a study meets it: the next run makes it again.
    """
    known = store.quarantined()
    artifacts = [a for a in store.artifacts() if store.verified(a.manifest.stage, a.manifest.key)]
    corrupt = [path.name for path in store.quarantined() if path not in known]
    size = sum(artifact.bytes for artifact in artifacts) / 1e6
    yield Check("artifacts", not corrupt, f"{len(artifacts)} artifacts, {size:,.0f} MB: as they were written")
    for name in corrupt:
        yield Check(name, False, "was corrupt, and is in quarantine now. Run its study again.")
    records = latest_records(store)
    for study, record in records.items():
        named = record.manifest.inputs.values()
        missing = sum(not (store.root / i.stage / i.key).is_dir() for i in named)
        seen = f"lacks {missing} of {len(named)} artifacts. Run `headstream run {study}`." if missing else "is complete"
        yield Check(f"study {study}", not missing, seen)
    if not records and not warehouse.exists():
        yield Check("warehouse", True, "none yet: no study has run")
    else:
        wrong = None if is_current(store, warehouse) else "is out of date"
        wrong = wrong or (None if is_whole(warehouse) else "is damaged")
        yield Check("warehouse", not wrong, f"{wrong}. Run `headstream index`." if wrong else "is up to date")
    yield Check("packages", True, ", ".join(f"{name} {package_version(name)}" for name in PACKAGES))
    yield Check("machine", True, describe_machine())
    free = shutil.disk_usage(next(path for path in (store.root, *store.root.parents) if path.exists())).free
    enough = free > LOW_DISK_BYTES
    yield Check("disk", enough, f"{free / 1e9:,.1f} GB free" + ("" if enough else ". Free some: `headstream gc`."))


def require_all_well(checks: Iterable[Check]) -> None:
    """Raises WorkError, with their names, when some checks found something that is not well."""
    if failed := [check.what for check in checks if not check.holds]:
        raise WorkError(
            f"all must be well, but these are not: {', '.join(failed)}. `headstream check` says what to do about each."
        )


def find_unneeded(store: Store, keep_days: float) -> list[tuple[str, Path, int]]:
    """Artifacts that no study's latest record leads to, and interrupted work; both unused by any run for some days.

    Of each what it holds in words, its folder and its size in bytes.

    The days are for what a study that is running, or will go on, has made or found, and will only name when it ends.
    """
    needed = _needed(store)
    artifacts = [a for a in store.artifacts() if _name(a) not in needed and store.days_unused(a) >= keep_days]
    found = [("/".join(_name(a)) + f" of {a.manifest.created[:16]}", a.folder, a.bytes) for a in artifacts]
    for folder in store.interrupted(keep_days):
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
        found.append((f"interrupted work {folder.name}", folder, size))
    return found


def _needed(store: Store) -> set[tuple[str, str]]:
    """Stage and key of each study's latest record, of what it is made from, and of the reports made from it."""
    by_name = {_name(a): a for a in store.artifacts()}
    reached: set[tuple[str, str]] = set()
    to_visit = [_name(record) for record in latest_records(store).values()]
    to_visit += [name for name, a in by_name.items() if a.manifest.stage == "report" and _inputs(a) & {*to_visit}]
    while to_visit:
        name = to_visit.pop()
        if name not in reached and name in by_name:
            reached.add(name)
            to_visit += _inputs(by_name[name])
    return reached


def _name(artifact: Artifact) -> tuple[str, str]:
    return artifact.manifest.stage, artifact.manifest.key


def _inputs(artifact: Artifact) -> set[tuple[str, str]]:
    return {(i.stage, i.key) for i in artifact.manifest.inputs.values()}


def describe_machine() -> str:
    """Where models would train, in words."""
    if torch.cuda.is_available():
        device = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}"
    else:
        device = f"{os.cpu_count()} CPU cores" + (", bfloat16" if cpu_multiplies_bfloat16() else "")
    return f"{device}, {'a' if has_compiler() else 'no'} C++ compiler"
