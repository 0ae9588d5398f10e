"""The loss that training minimises."""

import pytest
import torch

from headstream.tasks.training.cross_entropy import mean_cross_entropy, mean_cross_entropy_in_one_pass


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_one_to_be_compiled_is_the_plain_one(dtype):
    logits = (3 * torch.randn(2, 5, 11, generator=torch.Generator().manual_seed(0))).to(dtype)
    targets = torch.arange(10).view(2, 5)
    values = []
    for cross_entropy in (mean_cross_entropy, mean_cross_entropy_in_one_pass):
        own = logits.clone().requires_grad_()
        loss = cross_entropy(own, targets)
        (2 * loss).backward()
        values.append((loss.detach(), own.grad))
    (plain, expected), (loss, gradient) = values
    assert gradient.dtype == dtype
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(gradient, expected)
