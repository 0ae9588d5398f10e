"""How alike two heads' outputs are, whatever direction of the stream they write to: linear CKA.

Of outputs X and Y, a row a token and their columns centred, it is ||X^T Y||_F^2 / (||X^T X||_F ||Y^T Y||_F): 0..1,
where 1 is the same but for rotation and scale. Source: Kornblith et al. 2019, 3.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.batching import batches
from models.transformer import LayerTrace, Transformer

ROUNDING = 1e-12  # share of a head's squared output below which its variance is float32 rounding


@torch.inference_mode()
def output_cka(model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int) -> Float[Tensor, "head head"]:
    """CKA of what any two heads write, over all tokens but BOS; NaN where a head always writes the same."""
    a = model.architecture
    n_heads, width = sum(a.heads_per_layer), min(a.d_model, a.value_width)
    total = torch.zeros(n_heads * width, dtype=torch.float64, device=model.W_E.device)
    products, n_tokens = torch.outer(total, total), 0
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        outputs = torch.cat([_rotated_outputs(layer) for layer in model.trace(tokens).layers], dim=1)
        rows = outputs.transpose(1, 2)[tokens != bos].flatten(1)
        total += rows.sum(0)
        products += rows.T @ rows
        n_tokens += len(rows)
    covariance = products - torch.outer(total, total) / n_tokens
    squares = covariance.square().view(n_heads, width, n_heads, width).sum((1, 3))
    power, variance = (matrix.diagonal().view(n_heads, width).sum(1) for matrix in (products, covariance))
    size = squares.diagonal().sqrt().where(variance > ROUNDING * power, torch.nan)
    return (squares / torch.outer(size, size)).clamp(max=1).cpu()


def _rotated_outputs(layer: LayerTrace) -> Float[Tensor, "batch head pos width"]:
    """Head outputs as coordinates of the few directions that each head writes to, which leaves CKA as it is."""
    return layer.z.double() @ torch.linalg.qr(layer.W_O.double().mT, mode="r").R.mT
