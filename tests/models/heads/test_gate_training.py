"""Gates that are trained on a model whose weights stay."""

import pytest
import torch
from planted import BOS, induction_model
from random_models import D_VOCAB, N_CTX, random_model
from torch.nn import functional as F

from headstream.models.hard_concrete import OPEN_LOG_ALPHA, gates_without_noise, open_probability
from headstream.models.heads.gate_training import train_gates


def repeats(n_batches: int, size: int = 8, seed: int = 0) -> list[torch.Tensor]:
    """Random tokens that come twice: what the induction circuit predicts and nothing else does."""
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(n_batches):
        once = 1 + torch.rand(size, D_VOCAB - 1, generator=generator).argsort(1)[:, :15]
        batches.append(torch.cat([torch.full((size, 1), BOS), once, once], dim=1))
    return batches


def test_useless_heads_close_and_the_circuit_stays_open():
    model = induction_model(D_VOCAB, 32)
    (log_alpha,) = train_gates(model, repeats(120), [0.05], 0.3, torch.Generator().manual_seed(0))
    gates = [gates_without_noise(own) for own in log_alpha]
    assert gates[0][0] > 0.9  # the previous-token head
    assert gates[1][1] > 0.9  # the induction head
    assert gates[0][1] == 0
    assert gates[1][0] == 0


def test_a_dear_penalty_closes_everything_and_none_closes_nothing():
    model = induction_model(D_VOCAB, 32)
    dear, free = train_gates(model, repeats(120), [50.0, 0.0], 0.3, torch.Generator().manual_seed(0))
    assert max(gates_without_noise(own).max() for own in dear) == 0
    assert min(open_probability(free[layer][head]) for layer, head in ((0, 0), (1, 1))) > 0.9


def test_the_same_seed_gives_the_same_gates():
    model = random_model(n_heads=(2, 0, 3), n_layers=3)
    windows = [torch.randint(D_VOCAB, (3, N_CTX + 1), generator=torch.Generator().manual_seed(i)) for i in range(4)]
    (first,), (second,), (other,) = (
        train_gates(model, windows, [0.1], 0.1, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert [len(own) for own in first] == [2, 0, 3]
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("numbers", [1, 2**20], ids=["one at a time", "all at once"])
def test_penalties_side_by_side_are_penalties_one_by_one(monkeypatch, numbers):
    monkeypatch.setattr("headstream.models.batching.BATCH_NUMBERS", numbers)
    model = random_model(n_heads=(2, 3), n_layers=2)
    windows = [torch.randint(D_VOCAB, (9, N_CTX + 1), generator=torch.Generator().manual_seed(i)) for i in range(4)]

    def trained(*penalties):
        return train_gates(model, windows, penalties, 0.1, torch.Generator().manual_seed(0))

    together = trained(0.1, 0.0, 3.0)
    for nats, found in zip((0.1, 0.0, 3.0), together, strict=True):
        for own, alone in zip(found, trained(nats)[0], strict=True):
            torch.testing.assert_close(own, alone, atol=1e-9, rtol=0)
    assert not torch.equal(together[0][0], together[2][0])


def test_the_first_step_goes_down_the_slope_of_the_expected_loss():
    """Adam's first step is the rate against the gradient's sign; the gradient by a slow loop over the same noise."""
    model = random_model(n_layers=1, n_heads=3)
    batch = torch.randint(D_VOCAB, (5, N_CTX + 1), generator=torch.Generator().manual_seed(1))
    uniform = torch.rand(5, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def loss(log_alpha: torch.Tensor) -> float:
        total = 0.0
        for sequence, u in zip(batch, uniform, strict=True):
            gates = (((u.logit() + log_alpha) / 0.33).sigmoid() * 1.2 - 0.1).clamp(0, 1)
            logits = model(sequence[None, :-1], [gates])
            total += float(F.cross_entropy(logits[0], sequence[1:])) / len(batch)
        return total + 0.2 * float((log_alpha - 0.33 * torch.tensor(0.1 / 1.1).log()).sigmoid().sum())

    start, small = torch.full((3,), OPEN_LOG_ALPHA, dtype=torch.float64), 1e-6 * torch.eye(3, dtype=torch.float64)
    slope = torch.tensor([(loss(start + own) - loss(start - own)) / 2e-6 for own in small], dtype=torch.float64)
    moved = train_gates(model, [batch], [0.2], 1e-3, torch.Generator().manual_seed(2))[0][0] - start
    assert torch.allclose(moved, -1e-3 * slope.sign(), atol=1e-8)
