"""Where a study's tasks run, and what is refused."""

import builtins
import sys
from unittest.mock import MagicMock

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.machines.runners import opened_runner
from headstream.tasks.study.resources_config import ResourcesConfig


def test_ray_must_be_installed_if_it_is_asked_for(monkeypatch):
    real = builtins.__import__

    def without_ray(name, *arguments, **options):
        if name.split(".")[0] in ("ray", "prefect_ray"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "headstream.tasks.machines.ray_cluster", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_ray)
    with pytest.raises(UserError, match="which is not installed"), opened_runner("ray", ResourcesConfig()):
        pass


@pytest.fixture
def ray(monkeypatch) -> MagicMock:
    """Stands in for Ray's task runner, where Ray isn't installed."""
    modules = ["ray", "ray.util", "ray.util.queue", "ray.util.scheduling_strategies"]
    for name in [*modules, "prefect_ray", "prefect_ray.context", "prefect_ray.task_runners"]:
        monkeypatch.setitem(sys.modules, name, MagicMock())
    monkeypatch.delitem(sys.modules, "headstream.tasks.machines.ray_cluster", raising=False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield sys.modules["prefect_ray.task_runners"].RayTaskRunner
    sys.modules.pop("headstream.tasks.machines.ray_cluster", None)


def refusal(kind: type[Exception]) -> str:
    settings = temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"})
    with settings, pytest.raises(kind) as error, opened_runner("ray", ResourcesConfig()):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_ray_that_does_not_start_is_told_of_in_one_line(ray):
    ray.return_value.__enter__.side_effect = RuntimeError("The current node timed out.\n" + "a log line\n" * 100)
    assert refusal(WorkError).startswith("Ray did not start: The current node timed out. a log line")
    assert len(refusal(WorkError)) < 500


@pytest.mark.parametrize(
    "address", ["127.0.0.1:9", "ray://127.0.0.1:9", "[::1]:9", "no.such.host.invalid:6379", "h:99999"]
)
def test_a_cluster_that_is_not_there_is_not_waited_for(ray, monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert refusal(UserError).startswith(f"no Ray cluster answers at RAY_ADDRESS = {address}: ")
    assert not ray.called
