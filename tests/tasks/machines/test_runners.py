"""Where a study's tasks run, and what is refused."""

import builtins
import sys

import pytest

from headstream.tasks.errors import UserError
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
