"""How alike the maps are by which heads move what they attend to: the cosine of their OV matrices."""

import torch
from jaxtyping import Float
from torch import Tensor

from models.circuits.head_weights import HeadWeights


@torch.no_grad()
def ov_cosines(heads: HeadWeights) -> Float[Tensor, "head head"]:
    """Cosine of W_V W_O of any two heads, as vectors of all their entries, -1..1; NaN where a head has no weights.

    <OV1, OV2> is the sum of entries of (W_V1^T W_V2) * (W_O1 W_O2^T): matrices as small as a head.
    """
    n_heads, d_value, _ = heads.W_O.shape
    W_V, W_O = heads.W_V.double().transpose(0, 1).flatten(1), heads.W_O.double().flatten(0, 1)
    products = ((W_V.T @ W_V) * (W_O @ W_O.T)).view(n_heads, d_value, n_heads, d_value).sum((1, 3))
    size = products.diagonal().sqrt()
    return (products / torch.outer(size, size)).clamp(-1, 1).cpu()
