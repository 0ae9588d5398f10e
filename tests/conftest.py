"""For every test: what it sets for the whole process is put back. For those of models/: shapes are checked."""

import os

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config, install_import_hook

# All modules of models/ that have shapes in annotations.
modules = ["attention_patterns", "batching", "circuits", "clustered_errors", "feed_forward_ablation"]
modules += [
    "gates",
    "hard_concrete",
    "heads",
    "intervened_pass",
    "losses",
    "optimisers",
    "repeats",
    "stimuli",
    "transformer",
    "visited_pass",
]
install_import_hook([f"headstream.models.{module}" for module in modules], "beartype.beartype")
torch.set_num_threads(1)  # tensors are small, and two threads wait for each other where other tests run beside
# "deep" is what `make faults` tries; --hypothesis-profile names one, too. A busy machine is no failure.
settings.register_profile("suite", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", settings.get_profile("suite"), max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture(autouse=True)
def checked_shapes(request):
    """Shapes are checked where models/ is tested: at every call elsewhere, that is a fifth of the time."""
    config.update("jaxtyping_disable", "tests/models" not in request.path.as_posix())


@pytest.fixture(autouse=True)
def restored_process():
    """What a test, or the command that it calls, sets for the whole process ends with it."""
    before, threads = dict(os.environ), torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
