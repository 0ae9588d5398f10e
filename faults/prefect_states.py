"""What Prefect's server says about runs."""

from datetime import UTC, datetime
from typing import Any

import httpx

from faults.home import Home


def is_running(home: Home, task: str, since: datetime) -> bool:
    """Whether a task whose name begins like this has started since then and is still running."""
    wanted = {
        "name": {"like_": task},
        "state": {"type": {"any_": ["RUNNING"]}},
        "start_time": {"after_": since.isoformat()},
    }
    return any(run["name"].startswith(task) for run in _found(home, "task_runs", task_runs=wanted))


def last_message(home: Home) -> str:
    """The message of the state of the study's last run."""
    (run,) = _found(home, "flow_runs", sort="START_TIME_DESC", limit=1)
    return run["state"]["message"]


def now() -> datetime:
    return datetime.now(UTC)


def _found(home: Home, kind: str, **wanted: Any) -> list[dict[str, Any]]:
    response = httpx.post(f"{home.environment['PREFECT_API_URL']}/{kind}/filter", json=wanted, timeout=30)
    return response.raise_for_status().json()
