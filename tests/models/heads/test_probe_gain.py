"""Gains of probes: numbers one can do on paper; what tells nothing of a head gains nothing; what does, as it must."""

import pytest
import torch

from models.heads.linear_probes import control_labels, fit_probes, standardise
from models.heads.probe_gain import commonest_labels, gains

BAR = 0.02  # of the claim that heads are linguistic


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


def test_an_interval_covers_what_it_says_with_few_documents_of_unequal_size():
    """Right answers come at a rate of the document's own; control draws have an effect of their own, too."""
    generator, covered, n = torch.Generator().manual_seed(0), 0, 400
    document = torch.arange(13).repeat_interleave(torch.tensor([30, 5, 60, 30, 40, 20, 50, 30, 30, 10, 45, 50, 30]))
    for _ in range(n):
        rate = (0.6 + 0.1 * torch.randn(13, generator=generator)).clamp(0, 1)[document]
        draw = (0.5 + 0.02 * torch.randn(8, 1, generator=generator)).clamp(0, 1)
        right = torch.rand(len(document), generator=generator) < rate
        control = torch.rand(8, len(document), generator=generator) < draw
        never = torch.zeros_like(right)
        found = gains(right[None], control[None], never, never, document)
        covered += found.gain_low.item() <= 0.1 <= found.gain_high.item()
    assert covered / n > 0.93


# A text of documents, whose tokens have 30 types; a label is the type's parity, flipped for 40 % of tokens.

N_TYPES, N_DOCUMENTS, LENGTH, N_DRAWS = 30, 26, 80, 8


def text(generator):
    """Type, label and document of each token."""
    types = torch.randint(N_TYPES, (N_DOCUMENTS * LENGTH,), generator=generator)
    flipped = torch.rand(len(types), generator=generator) < 0.4
    return types, (types + flipped) % 2, torch.arange(len(types)) // LENGTH


def measured(features_of, seed):
    """Gains of sites on the test half, whose features are a function of types and labels."""
    generator = torch.Generator().manual_seed(seed)
    (types, labels, _), (test_types, test_labels, documents) = text(generator), text(generator)
    controls = control_labels(labels, 2, N_TYPES, N_DRAWS, generator)
    train, test = standardise(features_of(types, labels, generator), features_of(test_types, test_labels, generator))
    probes = fit_probes(train, torch.cat([labels[None], controls[:, types]]), 2, penalty=1e-3, max_steps=200)
    right = probes.predict(test) == torch.cat([test_labels[None], controls[:, test_types]])
    by_type = commonest_labels(labels, types, 2, N_TYPES)
    majority = test_labels == labels.mode().values
    return gains(right[:, 0], right[:, 1:], majority, by_type[test_types] == test_labels, documents)


def noise(types, labels, generator):
    return torch.randn(1, len(types), 8, generator=generator)


def constant(types, labels, generator):
    return torch.ones(1, len(types), 8)


def token(types, labels, generator):
    return torch.nn.functional.one_hot(types, N_TYPES)[None].float()


def half_the_labels(types, labels, generator):
    """The label of half of the tokens, and nothing of the others."""
    known = torch.rand(len(types), generator=generator) < 0.5
    return torch.where(known, 2.0 * labels - 1, 0)[None, :, None]


def test_noise_passes_the_bar_in_no_more_than_one_of_twenty_seeds():
    assert sum(measured(noise, seed).gain.item() > BAR for seed in range(60)) <= 3


def test_a_constant_gains_nothing():
    for seed in range(5):
        found = measured(constant, seed)
        assert found.gain.item() <= 0
        assert found.accuracy == found.majority_accuracy


def test_a_head_that_tells_the_token_alone_gains_nothing():
    for seed in range(5):
        found = measured(token, seed)
        assert found.gain.item() <= 3 * found.gain_sem.item()
        assert found.type_accuracy.item() == pytest.approx(0.6, abs=0.05)


def test_a_head_that_tells_the_label_beyond_the_token_gains_what_it_must():
    """It is right for the half that it knows and for half of the others, 0.75, and tokens alone for 0.6."""
    for seed in range(5):
        found = measured(half_the_labels, seed)
        assert found.gain.item() == pytest.approx(0.15, abs=0.05)
        assert found.gain_low.item() > BAR
