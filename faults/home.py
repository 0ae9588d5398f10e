"""A home for faults to strike: the real command in real processes, and what it leaves behind."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import duckdb
import psutil

from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.store import Store
from headstream.tasks.studies.housekeeping import check_all, require_all_passed
from headstream.tasks.study import stages

STAGES = tuple(name for name in stages.STAGES if name not in ("costs", "import"))  # those of faults/study.toml
FIRST = STAGES[:3]  # all that follows is made from these
ENDS = STAGES[-2:]

HEADSTREAM = str(Path(sys.executable).parent / "headstream")
SECONDS = 900  # for a run of a small study on a busy machine


@dataclass(frozen=True)
class Home:
    """One HEADSTREAM_HOME; `environment` is what its processes get."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def store(self) -> Store:
        """The store, read again each time, as another process would read it."""
        return Store(self.folder / "data" / "store")

    @property
    def warehouse(self) -> Path:
        return self.folder / "data" / "warehouse.duckdb"

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        """Start `headstream` with these arguments in the background."""
        return subprocess.Popen(
            [HEADSTREAM, *arguments],
            env={**self.environment, "HEADSTREAM_HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,  # type: ignore[call-overload]
        )

    def run(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        """Run `headstream` with these arguments to its end."""
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run_well(self, *arguments: str) -> str:
        """Run a command that must succeed, and give what it prints."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def artifacts(self, stage: str | None = None) -> list[Artifact]:
        return list(self.store.artifacts(stage))

    def results(self) -> dict[str, str]:
        """The hash of every artifact's files, weights included, except those that record the clock.

        Records of runs and their reports are left out: they tell of earlier runs as well.
        """
        found = [a for a in self.artifacts() if a.manifest.stage not in ENDS]
        return {f"{a.manifest.stage}/{a.manifest.key}": a.digest for a in found}

    def row_counts(self) -> dict[str, int]:
        """Rows of each table of the warehouse."""
        with duckdb.connect(str(self.warehouse), read_only=True) as connection:
            names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
            return {name: connection.sql(f'FROM "{name}"').count("*").fetchall()[0][0] for name in names}

    def rows(self, query: str) -> list[tuple]:
        """The rows that the warehouse answers a query with."""
        with duckdb.connect(str(self.warehouse), read_only=True) as connection:
            return connection.execute(query).fetchall()

    def staging(self, stage: str, key: str) -> Path:
        """Where a run of this home builds an artifact."""
        return self.folder / "data" / "store" / ".staging" / str(uuid5(NAMESPACE_URL, f"headstream:{stage}/{key}"))

    def stagings(self, artifacts: Iterable[Artifact]) -> list[Path]:
        """Where a run of this home builds artifacts that may be of another home."""
        return [self.staging(artifact.manifest.stage, artifact.manifest.key) for artifact in artifacts]

    def half_written(self) -> list[Path]:
        """Folders of artifacts that were begun and neither finished nor given up."""
        return [path for path in (self.folder / "data" / "store" / ".staging").iterdir() if path.is_dir()]

    def copy(self, folder: Path) -> "Home":
        """A copy of the home in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Home(folder, self.environment)

    def forget(self, *stages: str) -> None:
        """Remove all artifacts of these stages, and all records and reports, which every run ends with."""
        for stage in (*stages, *ENDS):
            shutil.rmtree(self.folder / "data" / "store" / stage, ignore_errors=True)


def made_from(stage: str) -> tuple[str, ...]:
    """A stage and the stages that a run repeats when its artifacts are missing."""
    return STAGES[STAGES.index(stage) :] if stage in FIRST else (stage,)


def require_same(home: Home, reference: Home) -> None:
    """Fails unless a home has the results, the weights and the rows of another, and nothing half-written."""
    differing = sorted(set(home.results().items()) ^ set(reference.results().items()))
    assert not differing
    assert home.row_counts() == reference.row_counts()
    assert not home.half_written()
    require_all_passed(check_all(home.store, home.warehouse))


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of the command alone; its children must end by themselves."""
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not [p.cmdline() for p in alive]


def runs_below(pid: int, *names: str) -> bool:
    """Whether a process below another has one of these words in its command line."""
    family = psutil.Process(pid).children(recursive=True)
    return any(name in " ".join(_command_line(process)) for process in family for name in names)


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def wait_until(what: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until a running command has brought something about."""
    deadline = time.monotonic() + SECONDS
    while not what():
        assert process.poll() is None, f"it ended too early: {process.communicate()[1]}"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wait_until_it_waits(process: subprocess.Popen[str]) -> None:
    """Wait until a running command waits for another run that holds a lock."""
    assert process.stderr
    assert any("waiting for another run" in line for line in process.stderr), "it ended too early"


def environment_for(folder: Path, api_url: str) -> dict[str, str]:
    """Environment of processes that talk to one Prefect server and keep nothing in the user's own folders."""
    return {
        **os.environ,
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": api_url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "COLUMNS": "200",  # or tables of text would be wrapped
    }
