"""Declarations of a model's parameters, made where each is created: nothing is guessed from names."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

Role = Literal["reading", "writing", "embedding", "vector", "position_bias", "gate"]


@dataclass(frozen=True)
class Declaration:
    """The properties of a parameter that matter for initialising, training, casting and pruning a model."""

    role: Role  # decides optimiser, rate and decay; a matrix reads or writes the stream
    in_products: bool  # True if it takes part in matrix products, whose precision may be reduced
    head_axis: int | None  # the axis along which each head has its own part; None if heads share it
    start: float | None  # value of every entry before training; None: drawn at random


class DeclaringModule(nn.Module):
    """A module that keeps the declarations of its parameters, even when the parameters are replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.declarations: dict[str, Declaration] = {}

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Register a parameter, and its declaration if it has one: parameters read from a file don't."""
        declaration = getattr(param, "declaration", None)
        if declaration:
            self.declarations[name] = declaration
        super().register_parameter(name, param)


def declared(
    role: Role, *shape: int, in_products: bool = True, head_axis: int | None = None, start: float | None = None
) -> nn.Parameter:
    """A new parameter with its declaration, to become an attribute of a `DeclaringModule`."""
    parameter = nn.Parameter(torch.empty(shape) if start is None else torch.full(shape, start, dtype=torch.float32))
    parameter.declaration = Declaration(role, in_products, head_axis, start)  # type: ignore[attr-defined]
    return parameter


def declared_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, Declaration]]:
    """Every parameter with its name and declaration, in the order of `named_parameters`.

    Raises:
        TypeError: a parameter has no declaration.
    """
    for place, module in model.named_modules():
        declarations = getattr(module, "declarations", {})
        for name, parameter in module.named_parameters(place, recurse=False):
            own_name = name.rpartition(".")[2]
            if own_name not in declarations:
                raise TypeError(f"the parameter {name} has no declaration. Make it with `declared`.")
            yield name, parameter, declarations[own_name]


def count_parameters(model: nn.Module) -> int:
    """Number of entries in all parameters of a model."""
    return sum(parameter.numel() for parameter in model.parameters())
