"""Linear CKA: the similarity of two heads' outputs, independent of the directions that they write to.

For outputs X and Y, with a row per token and centred columns, it is ||X^T Y||_F^2 / (||X^T X||_F ||Y^T Y||_F): 0..1,
where 1 means equal up to rotation and scale. Source: Kornblith et al. 2019, 3.
"""

from itertools import accumulate

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.transformer import Transformer

ROUNDING = 1e-12  # share of a head's squared output below which its variance is float32 rounding


@torch.inference_mode()
def output_cka(model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int) -> Float[Tensor, "head head"]:
    """CKA of the outputs of any two heads, over all tokens but BOS; NaN if a head's output is constant.

    The z of all tokens is held in memory, and covariances of the heads of two layers at a time.
    """
    by_batch = []
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        by_batch.append([layer.z.transpose(1, 2)[tokens != bos] for layer in model.trace(tokens).layers])
    z = [torch.cat(parts) for parts in zip(*by_batch, strict=True)]
    turned = [torch.linalg.qr(layer.attention.W_O.double().mT, mode="r").R.mT for layer in model.layers]

    def outputs(layer: int) -> Float[Tensor, "token head width"]:
        """Outputs in coordinates of the few directions that each head writes to, which doesn't change CKA."""
        return (z[layer].double().transpose(0, 1) @ turned[layer]).transpose(0, 1)

    starts = [0, *accumulate(model.architecture.heads_per_layer)]
    squares = torch.zeros(starts[-1], starts[-1], dtype=torch.float64, device=model.W_E.device)
    is_constant = []
    for i in range(len(z)):
        own = outputs(i)
        spread = own - own.mean(0)
        is_constant.append(spread.square().sum((0, 2)) <= ROUNDING * own.square().sum((0, 2)))
        for j in range(i, len(z)):
            other = outputs(j) if j > i else own
            covariance = torch.einsum("tav,tbw->abvw", spread, other)
            block = covariance.square().sum((2, 3))
            squares[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
            squares[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = block.T
    size = squares.diagonal().sqrt()
    size[torch.cat([*is_constant, size[:0].bool()])] = torch.nan
    return (squares / torch.outer(size, size)).clamp(max=1).cpu()
