"""Gains of probes: numbers one can do on paper; what tells nothing of a head gains nothing; what does, as it must."""

import pytest
import torch

from calibration.probes import BAR, constant, half_the_labels, measured, noise, token
from headstream.models.heads.probe_gain import commonest_labels, gains


def test_the_commonest_label_of_a_token_falls_back_on_the_commonest_of_all():
    types = torch.tensor([0, 0, 0, 1, 1, 3, 3, 3])
    labels = torch.tensor([2, 2, 1, 0, 1, 1, 1, 1])
    assert commonest_labels(labels, types, 3, 5).tolist() == [2, 1, 1, 1, 1]  # of a tie for 1, and of 2 and 4: 1


def test_a_gain_is_over_the_best_baseline():
    right = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]) > 0
    control = torch.tensor([[[1, 0, 0, 0], [1, 1, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 0]]]) > 0
    majority, by_type = torch.tensor([1, 0, 0, 0]) > 0, torch.tensor([1, 1, 0, 0]) > 0
    found = gains(right, control, majority, by_type, torch.tensor([0, 0, 1, 1]))
    assert found.accuracy.tolist() == [0.75, 0.25]
    assert found.majority_accuracy.tolist() == [0.25, 0.25]
    assert found.type_accuracy.tolist() == [0.5, 0.5]
    assert found.control_accuracy.tolist() == [0.375, 0]
    assert found.control_sem.tolist() == [0.125, 0]
    assert found.selectivity.tolist() == [0.375, 0.25]
    assert found.gain.tolist() == [0.25, -0.25]
    # differences from the token of the first head: 0, 0 in one document, 1, 0 in the other
    assert found.gain_sem[0].item() == pytest.approx((2 * 0.5**2 / 0.5) ** 0.5 / 4)


def test_one_document_has_no_error():
    yes = torch.ones(1, 5, dtype=torch.bool)
    found = gains(yes, yes[:, None].expand(1, 8, 5), yes[0], ~yes[0], torch.zeros(5, dtype=torch.int64))
    assert found.gain.tolist() == [0]
    assert found.gain_sem.isnan().all()
    assert found.gain_low.isnan().all()


def gains_of(features_of, n_seeds):
    """On the text on which heads are tested, seed by seed."""
    return [measured(features_of, seed)[1] for seed in range(n_seeds)]


def test_noise_seldom_passes_the_bar():
    found = torch.stack([found.gain for found in gains_of(noise, 15)])
    assert (found > BAR).double().mean() <= 0.05


def test_a_constant_gains_nothing():
    for found in gains_of(constant, 5):
        assert (found.gain <= 0).all()
        assert (found.accuracy == found.majority_accuracy).all()


def test_a_head_that_tells_the_token_alone_gains_nothing():
    for found in gains_of(token, 5):
        assert (found.gain <= 3 * found.gain_sem).all()
        assert found.type_accuracy[0].item() == pytest.approx(0.6, abs=0.05)


def test_a_head_that_tells_the_label_beyond_the_token_gains_what_it_must():
    """It is right for the half that it knows and for half of the others, 0.75, and tokens alone for 0.6."""
    for found in gains_of(half_the_labels, 5):
        best = found.gain.argmax()
        assert found.gain[best].item() == pytest.approx(0.15, abs=0.05)
        assert found.gain_low[best].item() > BAR
