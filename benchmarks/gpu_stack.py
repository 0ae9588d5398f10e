"""Models of one shape that differ in their seeds, trained as one stack of each parameter: whether that would pay.

On a GPU a small model waits for the launches of its kernels. A stack launches them once for all its models.
"""

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn, vmap
from torch.func import functional_call

from headstream.models.optimisers import rate_factor
from headstream.models.parameters import declared_parameters
from headstream.tasks.training.captured_step import CapturedStep
from headstream.tasks.training.cross_entropy import mean_cross_entropy
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.parameter_groups import build_optimizers, set_rates


class Stack:
    """Training runs that have nothing of their own but seeds, and the optimiser AdamW, advanced together.

    Each parameter is [n_models, ...]: AdamW treats every number alone, and gradients are clipped model by model.
    """

    def __init__(self, runs: Sequence[TrainingRun]) -> None:
        self.runs, first = runs, runs[0]
        self.config, self.numerics, self.step, self.n_steps = first.config, first.numerics, 0, first.n_steps
        self.model = copy.deepcopy(first.model)
        for name, _ in first.model.named_parameters():
            place, _, own_name = name.rpartition(".")
            stacked = torch.stack([run.model.get_parameter(name).detach() for run in runs])
            setattr(self.model.get_submodule(place), own_name, nn.Parameter(stacked))
        self.optimizers = build_optimizers(self.model, self.config, self.numerics.precision)
        self.advance = CapturedStep(self._advance) if self.model.W_E.is_cuda else self._advance

    def take_step(self) -> Float[Tensor, " n_models"]:
        """One step of every model; returns their losses without waiting for the device."""
        windows = torch.stack([torch.from_numpy(run.batches.batch(self.step)) for run in self.runs])
        if self.numerics.device == "cuda":
            windows = windows.pin_memory()
        set_rates(
            self.optimizers,
            rate_factor(self.step, self.n_steps, self.config.warmup_steps, self.config.final_rate_fraction),
        )
        (losses,) = self.advance(windows.to(self.numerics.device, non_blocking=True))
        self.step += 1
        return losses

    def _advance(self, windows: Int[Tensor, "n_models batch pos_and_next"]) -> tuple[Tensor]:
        reduced = self.numerics.precision == "bfloat16"
        weights = {
            name: p.bfloat16() if reduced and own.in_products else p for name, p, own in declared_parameters(self.model)
        }
        losses = vmap(self._loss)(weights, windows)
        losses.sum().backward()
        self._clip_gradients()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return (losses.detach(),)

    def _loss(self, weights: dict[str, Tensor], windows: Int[Tensor, "batch pos_and_next"]) -> Float[Tensor, ""]:
        return mean_cross_entropy(functional_call(self.model, weights, (windows[:, :-1],)), windows[:, 1:])

    def _clip_gradients(self) -> None:
        """As `clip_grad_norm_` does for each model alone."""
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)
        factors = (self.config.gradient_clip / (norms + 1e-6)).clamp(max=1.0)
        for g in gradients:
            g.mul_(factors.view(-1, *[1] * (g.ndim - 1)))
