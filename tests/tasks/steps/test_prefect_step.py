"""What a step does outside of a flow is tried again as in one."""

import pytest

from headstream.tasks.errors import WorkError
from headstream.tasks.steps import prefect_step


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(prefect_step, "RETRY_SECONDS", (0, 0))


def failing(*errors):
    """A step that meets these errors one after the other, and then has a result."""
    waiting = iter(errors)

    @prefect_step.step("try")
    def work():
        for error in waiting:
            raise error
        return "done"

    return work


@pytest.mark.parametrize("n", [0, 1, 2])
def test_what_passes_is_tried_again(n):
    assert prefect_step.alone(failing(*[OSError("busy")] * n)) == "done"


def test_what_does_not_pass_is_told():
    with pytest.raises(OSError, match="busy"):
        prefect_step.alone(failing(*[OSError("busy")] * 3))
    with pytest.raises(WorkError, match="diverged"):
        prefect_step.alone(failing(WorkError("diverged")))
