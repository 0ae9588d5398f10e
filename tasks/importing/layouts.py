"""Layouts of a layer's matrices in files, relative to Headstream's: [head, d_model, width] per map, always x @ W.

`write` makes a file's tensor from the parameters in it, and `read` makes those parameters, of given shapes, from the
tensor: exact inverses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Layout:
    """One arrangement of parameters in a tensor."""

    write: Callable[..., Tensor]
    read: Callable[[Tensor, Shapes], tuple[Tensor, ...]]


SAME = Layout(lambda parameter: parameter, lambda tensor, shapes: (tensor,))
TRANSPOSED = Layout(lambda matrix: matrix.mT, lambda tensor, shapes: (tensor.mT,))  # nn.Linear is [out, in]
FLAT = Layout(lambda parameter: parameter.flatten(), lambda tensor, shapes: (tensor.reshape(shapes[0]),))
ALIKE = Layout(lambda *parameters: parameters[0], lambda tensor, shapes: len(shapes) * (tensor,))  # one for all layers

# [d_model, all heads' widths side by side], and [all heads' widths, d_model] for what heads write.
HEADS_SIDE_BY_SIDE = Layout(
    lambda W: W.transpose(0, 1).flatten(1),
    lambda tensor, shapes: (tensor.unflatten(1, (shapes[0][0], shapes[0][2])).transpose(0, 1),),
)
HEADS_BELOW_ONE_ANOTHER = Layout(lambda W: W.flatten(0, 1), lambda tensor, shapes: (tensor.reshape(shapes[0]),))


def in_turn(layout: Layout, axis: int) -> Layout:
    """Several parameters of one layout, concatenated along an axis of the tensor."""

    def read(tensor: Tensor, shapes: Shapes) -> tuple[Tensor, ...]:
        sizes = [layout.write(torch.empty(shape, device="meta")).shape[axis] for shape in shapes]
        parts = zip(tensor.split(sizes, axis), shapes, strict=True)
        return tuple(layout.read(part, [shape])[0] for part, shape in parts)

    return Layout(lambda *parameters: torch.cat([layout.write(p) for p in parameters], axis), read)


def transposed(layout: Layout) -> Layout:
    """A layout as nn.Linear stores it: [out, in]."""
    return Layout(
        lambda *parameters: layout.write(*parameters).mT, lambda tensor, shapes: layout.read(tensor.mT, shapes)
    )


# For gpt_neox: each head's query, key and value rows in turn, in one matrix [head x 3 x width, d_model] or bias.
FUSED_BY_HEAD = Layout(
    lambda *maps: torch.stack([W.mT for W in maps], 1).flatten(0, 2),
    lambda tensor, shapes: tuple(tensor.unflatten(0, (shapes[0][0], 3, shapes[0][2])).mT.unbind(1)),
)
FUSED_BIAS_BY_HEAD = Layout(
    lambda *biases: torch.stack(biases, 1).flatten(),
    lambda tensor, shapes: tensor.reshape(shapes[0][0], 3, shapes[0][1]).unbind(1),
)
