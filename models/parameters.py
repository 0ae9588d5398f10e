"""What each parameter of a model is, declared where it is made: nothing is guessed from its name."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

Role = Literal["reading", "writing", "embedding", "vector", "position_bias", "gate"]


@dataclass(frozen=True)
class Declaration:
    """What those who initialise, train, cast or prune a model must know of one of its parameters."""

    role: Role  # of a matrix: whether it reads or writes the stream; decides optimiser, rate and decay
    in_products: bool  # whether it takes part in matrix products, whose precision may be reduced
    head_axis: int | None  # the axis along which each head has a part of its own; None where heads share it
    start: float | None  # what every entry is before training; None: drawn at random


class DeclaringModule(nn.Module):
    """A module that knows the declarations of its own parameters, even when others have taken their places."""

    def __init__(self) -> None:
        super().__init__()
        self.declarations: dict[str, Declaration] = {}

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Keep a parameter, and its declaration if it brings one: those read from a file don't."""
        if declaration := getattr(param, "declaration", None):
            self.declarations[name] = declaration
        super().register_parameter(name, param)


def declared(
    role: Role, *shape: int, in_products: bool = True, head_axis: int | None = None, start: float | None = None
) -> nn.Parameter:
    """A new parameter that brings its declaration to the `DeclaringModule` that it becomes an attribute of."""
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
            if (own_name := name.rpartition(".")[2]) not in declarations:
                raise TypeError(f"every parameter must be declared, but {name} is not. Make it with `declared`.")
            yield name, parameter, declarations[own_name]


def count_parameters(model: nn.Module) -> int:
    """How many numbers the parameters of a model hold."""
    return sum(parameter.numel() for parameter in model.parameters())
