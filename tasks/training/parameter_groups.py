"""Assigns the parameters of a model to optimisers, with their rates and decays."""

from collections.abc import Iterable
from itertools import chain
from typing import get_args

import torch
from torch import Tensor

from headstream.models.optimisers import Muon
from headstream.models.parameters import Role, declared_parameters
from headstream.models.transformer import Transformer
from headstream.tasks.study.training_config import TrainingConfig


def build_optimizers(model: Transformer, config: TrainingConfig, precision: str) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside layers (if requested), AdamW for the rest; biases and norms without decay.

    Muon multiplies matrices in the given precision.
    """
    of: dict[Role, list[Tensor]] = {role: [] for role in get_args(Role)}
    for _, parameter, declaration in declared_parameters(model):
        of[declaration.role].append(parameter)
    rate, decay = config.learning_rate, config.weight_decay
    optimizers: list[torch.optim.Optimizer] = []
    if config.optimizer == "muon" and of["reading"]:
        muon = Muon(
            of["reading"],
            of["writing"],
            lr=config.muon_learning_rate,
            weight_decay=config.muon_weight_decay,
            products=getattr(torch, precision),
        )
        optimizers.append(muon)
    else:
        of["embedding"] += of["reading"] + of["writing"]
    groups = [
        {"params": of["embedding"], "lr": rate, "weight_decay": decay},
        {"params": of["vector"], "lr": rate, "weight_decay": 0.0},
        {"params": of["position_bias"], "lr": rate * config.position_rate, "weight_decay": 0.0},
        {"params": of["gate"], "lr": rate * config.gate_rate, "weight_decay": 0.0},
    ]
    on_gpu = model.W_E.is_cuda
    adamw = torch.optim.AdamW([g for g in groups if g["params"]], betas=(0.9, 0.98), fused=True, capturable=on_gpu)
    optimizers.append(adamw)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["highest_lr"] = group["lr"]
            if on_gpu:  # where a captured step reads it every time
                group["lr"] = model.W_E.new_tensor(group["lr"])
    return optimizers


def set_rates(optimizers: Iterable[torch.optim.Optimizer], factor: float) -> None:
    """Set learning rates to a fraction of their peak."""
    for group in chain.from_iterable(optimizer.param_groups for optimizer in optimizers):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(group["highest_lr"] * factor)
        else:
            group["lr"] = group["highest_lr"] * factor
