"""Housekeeping: checks that everything stored is as it was written, and finds what no study needs."""

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
    """The outcome of one check: its subject, whether it passed, and what was found, with the remedy if it failed."""

    subject: str
    passed: bool
    finding: str


def check_all(store: Store, warehouse: Path) -> Iterator[Check]:
    """Check every artifact, that studies have all the artifacts they name, the warehouse and the environment.

    A corrupt artifact is moved to the quarantine, as when a run finds it: the next run makes it again.
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
        lacking = f"lacks {missing} of {len(named)} artifacts. Run `headstream run {study}`."
        yield Check(f"study {study}", not missing, lacking if missing else "is complete")
    if not records and not warehouse.exists():
        yield Check("warehouse", True, "none yet: no study has run")
    else:
        state = "is up to date"
        if not is_current(store, warehouse):
            state = "is out of date. Run `headstream index`."
        elif not is_whole(warehouse):
            state = "is damaged. Run `headstream index`."
        yield Check("warehouse", state == "is up to date", state)
    yield Check("packages", True, ", ".join(f"{name} {package_version(name)}" for name in PACKAGES))
    yield Check("machine", True, describe_machine())
    free = shutil.disk_usage(next(path for path in (store.root, *store.root.parents) if path.exists())).free
    enough = free > LOW_DISK_BYTES
    remedy = "" if enough else ". Free some: `headstream gc`."
    yield Check("disk", enough, f"{free / 1e9:,.1f} GB free{remedy}")


def require_all_passed(checks: Iterable[Check]) -> None:
    """Raise WorkError naming the checks that failed, if any did."""
    failed = [check.subject for check in checks if not check.passed]
    if failed:
        raise WorkError(f"checks failed: {', '.join(failed)}. `headstream check` says what to do about each.")


def find_unneeded(store: Store, keep_days: float) -> list[tuple[str, Path, int]]:
    """Artifacts that no study's latest record leads to, and interrupted work, if no run has used them for some days.

    Returns a description, the folder and the size in bytes of each. The days protect what a study that is running, or
    will be resumed, has made or found: it names them only when it ends.
    """
    needed = _needed(store)
    artifacts = [a for a in store.artifacts() if _name(a) not in needed and store.days_unused(a) >= keep_days]
    found = [("/".join(_name(a)) + f" of {a.manifest.created[:16]}", a.folder, a.bytes) for a in artifacts]
    for folder in store.interrupted(keep_days):
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
        found.append((f"interrupted work {folder.name}", folder, size))
    return found


def _needed(store: Store) -> set[tuple[str, str]]:
    """Stage and key of each study's latest record, of everything it was made from, and of the reports made from it."""
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
    """The machine that models would train on, in words."""
    if torch.cuda.is_available():
        device = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}"
    else:
        device = f"{os.cpu_count()} CPU cores" + (", bfloat16" if cpu_multiplies_bfloat16() else "")
    return f"{device}, {'a' if has_compiler() else 'no'} C++ compiler"
