"""Heads that go while a model trains."""

import pytest
import torch
from planted import induction_model
from random_models import D_VOCAB, N_CTX, random_model
from torch.nn import functional as F

from headstream.models.heads.gradual_pruning import GradualPruning, n_heads_left


@pytest.mark.parametrize("n_heads", [1, 2, 3, 8, 12])
@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 1.0])
def test_heads_go_between_a_quarter_and_three_quarters_of_training(n_heads, share):
    left = [n_heads_left(step, 200, n_heads, share) for step in range(1, 201)]
    assert left == sorted(left, reverse=True)
    assert set(left[:50]) == {n_heads}
    assert set(left[149:]) == {max(1, -(-int(n_heads * share * 100) // 100))}


def test_importance_is_the_gradient_of_a_mask():
    model = random_model(n_layers=2, n_heads=(3, 2), biases=True, feed_forward="gelu").requires_grad_(True)
    pruning = GradualPruning(model, n_steps=10, share_left=0.5)
    tokens = torch.randint(D_VOCAB, (4, N_CTX + 1), generator=torch.Generator().manual_seed(0))

    def loss(mask):
        logits = model(tokens[:, :-1], mask)
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    mask = [torch.ones(n, dtype=torch.float64, requires_grad=True) for n in (3, 2)]
    loss(mask).backward()
    pruning.before_step()
    wanted = torch.cat([m.grad for m in mask]).abs()
    assert torch.allclose(pruning.importance / 0.02, wanted, rtol=1e-5)


def test_what_has_gone_writes_nothing_and_does_not_come_back():
    model = random_model(n_layers=2, n_heads=3).requires_grad_(True)
    pruning = GradualPruning(model, n_steps=10, share_left=0.34)
    pruning.importance += torch.tensor([5.0, 1.0, 4.0, 0.0, 2.0, 3.0])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for step in range(1, 11):
        model(torch.arange(N_CTX)[None]).square().mean().backward()
        pruning.before_step()
        optimizer.step()
        optimizer.zero_grad()
        pruning.after_step(step)
    gone = torch.cat([(layer.attention.W_O == 0).all((1, 2)) for layer in model.layers])
    assert pruning.n_left == 3
    assert torch.equal(gone, ~pruning.left)
    assert gone.sum() == 3


def test_a_model_without_layers_has_none_to_lose():
    model = random_model(n_layers=0).requires_grad_(True)
    pruning = GradualPruning(model, n_steps=4, share_left=0.5)
    model(torch.arange(3)[None]).sum().backward()
    pruning.before_step()
    pruning.after_step(4)
    assert pruning.n_left == 0


def test_the_heads_of_a_planted_circuit_stay():
    """The induction circuit's two heads carry the loss on repeats; six others carry nothing and go."""
    model = induction_model(D_VOCAB, 32)
    assert model.architecture.heads_per_layer
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    n = sum(model.architecture.heads_per_layer)
    pruning = GradualPruning(model, n_steps=4, share_left=2 / n)
    generator = torch.Generator().manual_seed(0)
    for step in range(1, 5):
        once = 1 + torch.rand(4, D_VOCAB - 1, generator=generator).argsort(1)[:, :15]
        tokens = torch.cat([torch.zeros(4, 1, dtype=torch.long), once, once], 1)
        logits = model(tokens[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        pruning.before_step()
        pruning.after_step(step)
        model.zero_grad()
    effects = pruning.importance
    assert pruning.left.sum() == 2
    assert effects[pruning.left].min() > 0
    assert effects[~pruning.left].max() == 0
