"""The hard-concrete distribution against Monte Carlo and finite differences."""

import math

import pytest
import torch

from headstream.models.hard_concrete import OPEN_LOG_ALPHA, gates_without_noise, open_probability, sampled_gates

LOG_ALPHA = torch.tensor([-3.0, -1.0, 0.0, 0.7, OPEN_LOG_ALPHA, 5.0], dtype=torch.float64)


def test_open_probability_is_how_often_samples_are_not_0():
    n = 200_000
    uniform = torch.rand(n, len(LOG_ALPHA), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    share = (sampled_gates(LOG_ALPHA, uniform) > 0).double().mean(0)
    p = open_probability(LOG_ALPHA)
    assert ((share - p).abs() < 5 * (p * (1 - p) / n).sqrt()).all()


def test_gates_are_the_formulas_of_the_paper():
    for log_alpha in LOG_ALPHA.tolist():
        value = torch.tensor(log_alpha, dtype=torch.float64)
        without = min(1, max(0, 1.2 / (1 + math.exp(-log_alpha)) - 0.1))
        assert gates_without_noise(value).item() == pytest.approx(without, abs=1e-12)
        for u in (0.01, 0.3, 0.5, 0.99):
            s = 1 / (1 + math.exp(-(math.log(u) - math.log(1 - u) + log_alpha) / 0.33))
            sampled = sampled_gates(value, torch.tensor(u, dtype=torch.float64)).item()
            assert sampled == pytest.approx(min(1, max(0, 1.2 * s - 0.1)), abs=1e-12)
        expected = 1 / (1 + math.exp(-(log_alpha - 0.33 * math.log(0.1 / 1.1))))
        assert open_probability(value).item() == pytest.approx(expected, abs=1e-12)


def test_gradients_are_those_of_finite_differences():
    log_alpha = torch.tensor([-1.3, 0.2, 1.1], dtype=torch.float64, requires_grad=True)
    uniform = torch.tensor([0.7, 0.4, 0.3], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: sampled_gates(a, uniform), log_alpha)
    assert torch.autograd.gradcheck(gates_without_noise, log_alpha)
    assert torch.autograd.gradcheck(open_probability, log_alpha)


def test_the_ends_of_the_uniform_numbers_are_closed_and_open():
    log_alpha = torch.zeros(2, requires_grad=True)
    gates = sampled_gates(log_alpha, torch.tensor([0.0, 1.0]))
    gates.sum().backward()
    assert gates.tolist() == [0, 1]
    assert log_alpha.grad.tolist() == [0, 0]
