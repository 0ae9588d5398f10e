"""Holm's rule against the rule as it is written, and how often it errs."""

import torch

from headstream.models.multiple_tests import holm_adjusted, significant


def by_the_book(chance: list[float], level: float) -> list[bool]:
    """From the least likely on, while its chance is at most level / (tests left)."""
    rejected = [False] * len(chance)
    for n_done, i in enumerate(sorted(range(len(chance)), key=chance.__getitem__)):
        if chance[i] > level / (len(chance) - n_done):
            break
        rejected[i] = True
    return rejected


def test_adjusted_chances_reject_what_the_rule_rejects():
    generator = torch.Generator().manual_seed(0)
    for n in (1, 2, 5, 17):
        for _ in range(50):
            chance = torch.rand(n, generator=generator, dtype=torch.float64) ** 4
            assert significant(chance, 0.05).tolist() == by_the_book(chance.tolist(), 0.05)


def test_adjusted_chances_on_paper():
    adjusted = holm_adjusted(torch.tensor([[0.03, 0.01], [torch.nan, 0.04]], dtype=torch.float64))
    torch.testing.assert_close(  # 0.01 x 3, 0.03 x 2, and 0.04 x 1, which is no less than the one before
        adjusted, torch.tensor([[0.06, 0.03], [torch.nan, 0.06]], dtype=torch.float64), equal_nan=True
    )
    assert holm_adjusted(torch.tensor([0.9, 0.8])).tolist() == [1.0, 1.0]


def test_chance_alone_is_seldom_significant():
    chance = torch.rand(4000, 28, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.stack([significant(own, 0.05).any() for own in chance]).double().mean() < 0.06
