"""The similarity of the maps by which heads move what they attend to: the cosine of their OV matrices."""

from collections.abc import Sequence
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.circuits.head_weights import HeadWeights


@torch.no_grad()
def ov_cosines(layers: Sequence[HeadWeights]) -> Float[Tensor, "head head"]:
    """Cosine of W_V W_O of any two heads, as vectors of all their entries, -1..1; NaN where a head has no weights.

    <OV1, OV2> is the sum of entries of (W_V1^T W_V2) * (W_O1 W_O2^T): matrices as small as a head.
    """
    starts = [0, *accumulate(len(layer.W_O) for layer in layers)]
    products = layers[0].W_O.new_zeros(starts[-1], starts[-1], dtype=torch.float64)
    for i, one in enumerate(layers):
        for j, other in enumerate(layers[: i + 1]):
            values = torch.einsum("adv,bdw->abvw", one.W_V.double(), other.W_V.double())
            outputs = torch.einsum("avd,bwd->abvw", one.W_O.double(), other.W_O.double())
            block = (values * outputs).sum((2, 3))
            products[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
            products[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = block.T
    size = products.diagonal().sqrt()
    return (products / torch.outer(size, size)).clamp(-1, 1).cpu()
