import doctest

import torch
from torch import nn

from headstream.models import optimisers
from headstream.models.optimisers import Muon, orthogonalise


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_orthogonalise_brings_singular_values_near_one():
    for shape in ((3, 31, 17), (2, 13, 29), (1, 23, 23)):
        x = random(*shape).double()
        values = torch.linalg.svdvals(orthogonalise(orthogonalise(x)))  # twice: small ones need more steps
        assert values.min() > 0.6
        assert values.max() < 1.3


def test_orthogonalise_keeps_singular_vectors():
    x = random(1, 19, 11).double()
    u, _, vh = torch.linalg.svd(x[0], full_matrices=False)
    rotated = u.T @ orthogonalise(x)[0] @ vh.T
    assert (rotated - torch.diag(rotated.diagonal())).abs().max() < 1e-10


def train(optimizers, parameters, targets, n_steps=20):
    for _ in range(n_steps):
        for p in parameters:
            p.grad = None
        sum(((p - t) ** 2).sum() for p, t in zip(parameters, targets, strict=True)).backward()
        for optimizer in optimizers:
            optimizer.step()


def muon(reading, writing):
    return Muon(reading, writing, lr=0.03, weight_decay=0.0, products=torch.float32)


def test_muon_equals_torch_muon_on_square_matrices():
    starts = [random(24, 24, seed=i) for i in range(3)]
    targets = [random(24, 24, seed=i + 10) for i in range(3)]
    ours, theirs = ([nn.Parameter(s.clone()) for s in starts] for _ in range(2))
    train([Muon(ours[:2], ours[2:], lr=0.03, weight_decay=0.02, products=torch.bfloat16)], ours, targets)
    train([torch.optim.Muon(theirs, lr=0.03, weight_decay=0.02)], theirs, targets)
    for a, b, start in zip(ours, theirs, starts, strict=True):
        assert (a - start).norm() > 1.0  # it moved
        assert (a - b).norm() < 0.02 * (a - start).norm()  # both iterate in bfloat16, stacked differently


def test_muon_joins_the_heads_of_a_layer():
    """Reading matrices side by side, writing ones on top of each other: the same as one matrix of all heads."""
    reading, writing = random(3, 20, 5), random(3, 7, 20)
    heads = [nn.Parameter(reading.clone()), nn.Parameter(writing.clone())]
    whole = [nn.Parameter(reading.transpose(0, 1).flatten(1)), nn.Parameter(writing.flatten(0, 1))]
    train([muon(heads[:1], heads[1:])], heads, [torch.zeros(1), torch.zeros(1)])
    train([muon(whole[:1], whole[1:])], whole, [torch.zeros(1), torch.zeros(1)])
    assert (heads[0].transpose(0, 1).flatten(1) - whole[0]).abs().max() < 1e-6
    assert (heads[1].flatten(0, 1) - whole[1]).abs().max() < 1e-6


def test_muon_leaves_layers_without_heads_alone():
    empty = nn.Parameter(torch.zeros(0, 20, 5))
    full = nn.Parameter(random(2, 20, 5))
    train([muon([empty, full], [])], [empty, full], [torch.zeros(1), torch.zeros(1)], n_steps=2)
    assert full.isfinite().all()


def test_documented_examples():
    assert doctest.testmod(optimisers).failed == 0
