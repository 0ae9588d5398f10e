"""Where a study's tasks run, and what is refused."""

import builtins
import sys

import pytest
import torch

from tasks import steps
from tasks.errors import UserError
from tasks.machines.runners import opened_runner
from tasks.study.resources_config import ResourcesConfig


def test_a_gpu_must_be_there_if_one_is_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with (
        pytest.raises(UserError, match="device must be one this machine has"),
        opened_runner("threads", ResourcesConfig()) as submit,
    ):
        submit(steps.train, gpus=0.5)


def test_ray_must_be_installed_if_it_is_asked_for(monkeypatch):
    real = builtins.__import__

    def without_ray(name, *arguments, **options):
        if name.split(".")[0] in ("ray", "prefect_ray"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "tasks.machines.ray_cluster", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_ray)
    with pytest.raises(UserError, match="which is not installed"), opened_runner("ray", ResourcesConfig()):
        pass
