"""Standard errors over documents: numbers one can do on paper, and coverage with documents as unequal as real ones."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from calibration.intervals import documents_of, draws_of_windows
from headstream.models.clustered_errors import clustered_mean


def covered(document: torch.Tensor, alike: float, measured_by: torch.Tensor, n: int = 4000) -> float:
    """How often an interval holds 0, the mean, when windows of a document share a part `alike` of their variance."""
    low, high = clustered_mean(draws_of_windows(document, alike, n), measured_by).interval()
    return ((low < 0) & (high > 0)).double().mean().item()


@pytest.mark.parametrize("n_windows", [8, 16, 32, 64, 256])
@pytest.mark.parametrize("alike", [0.0, 0.1, 0.3, 1.0])
def test_intervals_cover_what_they_say(n_windows, alike):
    cluster = documents_of(n_windows)
    assert covered(cluster, alike, cluster) >= 0.93


@pytest.mark.parametrize(("n_windows", "at_most"), [(64, 0.85), (256, 0.6)])
def test_sequences_taken_as_independent_cover_far_less(n_windows, at_most):
    cluster = documents_of(n_windows)
    assert covered(cluster, 0.3, torch.arange(n_windows)) < at_most


def test_every_sequence_its_own_cluster_is_student_t():
    values = torch.randn(3, 13, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = clustered_mean(values, torch.arange(13))
    low, high = stats.t.interval(0.95, 12, values.mean(1), stats.sem(values, axis=1))
    assert found.degrees_of_freedom == pytest.approx(12)
    assert np.allclose(found.sem, stats.sem(values, axis=1))
    assert np.allclose(torch.stack(found.interval()), np.stack([low, high]))


def test_numbers_on_paper():
    """Sums of deviations from 3: -4 and 2 twice; over 1 - 1/2 and 1 - 1/4: 32 + 16/3 + 16/3; divided by 8 squared."""
    values = torch.tensor([1.0, 2, 3, 2, 4, 4, 3, 5])
    found = clustered_mean(values, torch.tensor([5, 5, 5, 5, 7, 7, 2, 2]))
    assert found.mean.item() == 3
    assert found.sem.item() == pytest.approx(math.sqrt(32 + 32 / 3) / 8)
    assert found.degrees_of_freedom == pytest.approx(1 / (1 / 4 + 1 / 16 + 1 / 16) - 1)


def test_copies_of_every_sequence_tell_no_more():
    values, cluster = torch.randn(20, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 7
    once, thrice = clustered_mean(values, cluster), clustered_mean(values.repeat(3), cluster.repeat(3))
    assert thrice.sem.item() == pytest.approx(once.sem.item())
    assert thrice.degrees_of_freedom == pytest.approx(once.degrees_of_freedom)


@pytest.mark.parametrize("cluster", [[3, 3, 3], [3, 3, 4], [3]])
def test_less_than_two_documents_have_no_standard_error(cluster):
    found = clustered_mean(torch.rand(2, len(cluster)), torch.tensor(cluster))
    assert found.mean.isfinite().all()
    assert found.sem.isnan().all()
    assert all(end.isnan().all() for end in found.interval())


def test_two_documents_have_one():
    found = clustered_mean(torch.tensor([1.0, 2.0, 3.0, 3.0]), torch.tensor([0, 0, 1, 1]))
    assert found.sem.item() == pytest.approx(0.75)
    assert found.degrees_of_freedom == 1
