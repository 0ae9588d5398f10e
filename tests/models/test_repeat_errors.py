"""Standard errors over sequences of repeats against how much the numbers scatter when the sequences are drawn anew."""

import math

import pytest
import torch
from planted import blank_model, induction_model

from headstream.models.heads.head_behaviour import model_behaviour
from headstream.models.losses import parts_of_mean, repeat_losses, sem_of_parts
from headstream.models.repeats import fixed_period_repeats, random_period_repeats
from headstream.models.stimuli import Stimuli

N_SEQUENCES, N_CTX = 24, 40


def drawn_losses(generator):
    """Losses of sequences that are hard or easy as a whole, which gain more or less where they repeat."""
    occurrence = random_period_repeats(torch.arange(1, 60), 0, N_CTX, N_SEQUENCES, generator).occurrence[:, 1:]
    hard, gain = torch.randn(2, N_SEQUENCES, 1, generator=generator, dtype=torch.float64)
    noise = torch.randn(occurrence.shape, generator=generator, dtype=torch.float64)
    return 5 + hard - (1 + gain) * (occurrence > 1) + noise, occurrence


def test_the_error_of_the_gain_is_its_scatter_over_draws():
    generator = torch.Generator().manual_seed(0)
    found = [repeat_losses(*drawn_losses(generator)) for _ in range(1500)]
    gains, errors = (
        torch.tensor([own[name] for own in found]) for name in ("repeat_gain_nats", "repeat_gain_sem_nats")
    )
    assert gains.mean().item() == pytest.approx(1, abs=0.03)
    assert errors.square().mean().sqrt().item() == pytest.approx(gains.std().item(), rel=0.06)


def test_errors_on_paper():
    values = torch.tensor([[1.0, 3.0], [5.0, torch.nan]])  # mean 3: parts (-2 + 0) / 3 and 2 / 3
    assert parts_of_mean(values).tolist() == pytest.approx([-2 / 3, 2 / 3])
    assert sem_of_parts(parts_of_mean(values)).item() == pytest.approx((2 * 8 / 9) ** 0.5)
    equal = torch.tensor([[1.0, 2.0], [4.0, 5.0], [6.0, 12.0]])  # as many values each: that of the mean of their means
    assert sem_of_parts(parts_of_mean(equal)).item() == pytest.approx(equal.mean(1).std().item() / 3**0.5)
    assert sem_of_parts(parts_of_mean(values[:1])).isnan()
    assert math.isnan(repeat_losses(torch.empty(1, 0), torch.empty(1, 0).long())["repeat_gain_sem_nats"])


def test_scores_have_errors_that_shrink_with_the_number_of_sequences():
    model, generator = induction_model(41, 64), torch.Generator().manual_seed(0)
    model.layers[1].attention.W_Q[1] *= 0.1  # now and then it looks elsewhere
    counts = torch.arange(1, 42)

    def measure(n):
        fixed, of_random_period = (
            draw(counts, 0, 64, n, generator) for draw in (fixed_period_repeats, random_period_repeats)
        )
        text = torch.randint(1, 41, (2, 65), generator=generator)
        return model_behaviour(model, Stimuli(0, text, text[:0], fixed, of_random_period, torch.arange(2))).layers

    few, many = measure(16), measure(256)
    spread = few[1]["induction_random_period_sem"][1].item()
    assert spread > 1e-3
    assert many[1]["induction_random_period_sem"][1].item() / spread == pytest.approx(0.25, abs=0.1)
    assert few[0]["prefix_matching_sem"].tolist() == pytest.approx([0, 0], abs=1e-12)
    single = measure(1)
    assert single[0]["prefix_matching_sem"].isnan().all()
    assert single[0]["prefix_matching"].isfinite().all()


def test_missing_scores_have_missing_errors():
    text = torch.ones(2, 9, dtype=torch.int64)
    (scores,) = model_behaviour(blank_model((2,), 2, 8), Stimuli(0, text, text[:0], None, None, torch.arange(2))).layers
    for name in ("prefix_matching_sem", "induction_random_period_sem"):
        assert scores[name].isnan().all()
