"""What ablated heads are replaced by, and masks with a fill."""

import pytest
import torch
from random_models import D_VALUE, D_VOCAB, random_model

from headstream.models.heads.ablation import other_sequences
from headstream.models.heads.references import derangement, mean_z
from headstream.models.losses import sequence_losses


def tokens(n: int = 5, length: int = 13, seed: int = 1) -> torch.Tensor:
    return torch.randint(D_VOCAB, (n, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "options", [{}, {"n_layers": 3, "n_heads": (2, 0, 3)}, {"biases": True, "feed_forward": "gelu"}]
)
def test_a_head_masked_and_filled_with_its_own_z_changes_nothing(options):
    model, text = random_model(**options), tokens()
    trace = model.trace(text)
    closed = [torch.zeros(n) for n in model.architecture.heads_per_layer]
    filled = model(text, closed, [layer.z for layer in trace.layers])
    assert torch.allclose(filled, trace.logits, atol=1e-10)
    assert not torch.allclose(model(text, closed), trace.logits, atol=1e-3)


def test_half_a_mask_mixes_z_with_its_fill():
    model, text = random_model(n_layers=1), tokens()
    fill = [torch.ones(3, 1, D_VALUE, dtype=torch.float64)]
    mixed = model.trace(text, [torch.tensor([1.0, 0.25, 0.0])], fill).layers[0].z
    own = model.trace(text).layers[0].z
    assert torch.allclose(mixed[:, 0], own[:, 0])
    assert torch.allclose(mixed[:, 1], 0.25 * own[:, 1] + 0.75)
    assert torch.equal(mixed[:, 2], torch.ones_like(own[:, 2]))


def test_means_are_over_all_that_is_read():
    model, text = random_model(), tokens()
    z = [layer.z for layer in model.trace(text[:, :-1]).layers]
    for mean, own in zip(mean_z(model, text), z, strict=True):
        assert torch.allclose(mean, own.mean((0, 2))[:, None])
    for mean, own in zip(mean_z(model, text, by_position=True), z, strict=True):
        assert torch.allclose(mean, own.mean(0))


def test_sequence_losses_average_to_the_loss():
    model, text = random_model(), tokens()
    loss = torch.nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    losses = sequence_losses(model, text)
    assert losses.shape == (5,)
    assert torch.allclose(losses.mean(), loss, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 17])
def test_nothing_stays_in_its_place(n):
    partner = derangement(n, torch.Generator().manual_seed(0))
    assert sorted(partner.tolist()) == list(range(n))
    assert not (partner == torch.arange(n)).any()


def test_one_sequence_has_no_other():
    assert other_sequences(1, draws=5, seed=0) == []
