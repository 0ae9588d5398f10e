"""An installation for faults to strike: a home with a Prefect of its own, where `headstream up` runs."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName, FlowRunFilterState, FlowRunFilterStateName
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelled

from faults.home import HEADSTREAM, Home, environment_for
from headstream.tasks.machines.services import free_port

COMMANDS = {"worker": "worker start", "server": "server start", "flow": "prefect.engine", "guard": "machines/guard.py"}
SECONDS = 600  # for anything to come about on a busy machine


class Installation:
    """The processes of an installation, and what its server says about runs."""

    up: subprocess.Popen[bytes]

    def __init__(self, folder: Path, corpus: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/api"
        self._notices, self._said = folder / "notices", folder / "up.txt"
        environment = environment_for(folder, self.url) | {
            "HEADSTREAM_CORPUS_ROOTS": str(corpus),
            "HEADSTREAM_ON_FAILURE": f"tee -a {self._notices}",
        }
        self.home = Home(folder / "home", environment | {"HEADSTREAM_HOME": str(folder / "home")})

    def start(self) -> None:
        """Start `headstream up`, and wait until it says that it is up."""
        with self._said.open("wb") as said:
            self.up = subprocess.Popen(
                [HEADSTREAM, "up", "--port", str(self.port)],
                env=self.home.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        wait_until(lambda: "is up" in self._said.read_text() or self.up.poll() is not None)
        assert self.up.poll() is None, self._said.read_text()

    def processes(self, part: str = "") -> list[psutil.Process]:
        """The running processes of one part of the installation, or of all."""
        found = []
        for process in psutil.process_iter():
            try:
                is_of_it = process.environ().get("HEADSTREAM_HOME") == str(self.home.folder)
                if is_of_it and COMMANDS.get(part, "") in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def kill(self, *parts: str) -> None:
        """Send kill -9 to parts of the installation, one right after the other."""
        victims = [process for part in parts for process in self.processes(part)]
        assert len(victims) >= len(parts)
        for process in victims:
            process.kill()

    @contextmanager
    def client(self) -> Iterator[SyncPrefectClient]:
        """A Prefect client for the installation's server."""
        with temporary_settings({PREFECT_API_URL: self.url}), get_client(sync_client=True) as client:
            yield client

    def ask_for(self, study: Mapping[str, Any]) -> UUID:
        """Ask for a run of `study/nightly`, and return its id."""
        with self.client() as client:
            deployment = client.read_deployment_by_name("study/nightly")
            return client.create_flow_run_from_deployment(deployment.id, parameters={"study": dict(study)}).id

    def begin(self, study: Mapping[str, Any]) -> UUID:
        """Ask for a run of `study/nightly`, and wait until it trains a model."""
        run = self.ask_for(study)
        staging = self.home.folder / "data" / "store" / ".staging"
        wait_until(lambda: self.state(run) == "Running" and any(staging.glob("*/.resume/*")))
        return run

    def was_told_of(self, run: UUID) -> bool:
        """Whether people were notified of a run."""
        return self._notices.exists() and str(run) in self._notices.read_text()

    def cancel_all(self) -> None:
        """Cancel the runs that an earlier test interrupted."""
        running = FlowRunFilter(state=FlowRunFilterState(name=FlowRunFilterStateName(any_=["Running"])))
        with self.client() as client:
            for run in client.read_flow_runs(flow_run_filter=running):
                client.set_flow_run_state(run.id, Cancelled(), force=True)

    def state(self, run: UUID) -> str | None:
        """The name of a run's state; None while the server does not answer."""
        try:
            with self.client() as client:
                return client.read_flow_run(run).state_name
        except httpx.HTTPError:
            return None

    def states(self, run: UUID) -> list[str]:
        """The names of all states that a run has been in."""
        with self.client() as client:
            return [state.name for state in client.read_flow_run_states(run)]

    def runs(self, name: str) -> list[FlowRun]:
        """All flow runs of a name."""
        with self.client() as client:
            return client.read_flow_runs(flow_run_filter=FlowRunFilter(name=FlowRunFilterName(any_=[name])))


def wait_until(what: Callable[[], object]) -> float:
    """Wait until something holds, and return the seconds that it took."""
    begun = time.monotonic()
    while not what():
        assert time.monotonic() - begun < SECONDS
        time.sleep(0.5)
    return time.monotonic() - begun
