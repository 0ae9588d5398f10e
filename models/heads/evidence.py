"""What scores of importance are computed from, and what a score is."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from models.transformer import Fill, HeadMask, Transformer

HeadScores = list[Float[Tensor, "_"]]  # one number a head, a tensor a layer, in float64 on the CPU: high = matters


@dataclass(frozen=True)
class Evidence:
    """What the importance of a model's heads is computed from."""

    model: Transformer
    text: Int[Tensor, "batch pos"]  # BOS first; the last token is only predicted
    fill: Fill  # each head's mean z on other text: [head, 1, d_value] a layer
    head_mask: HeadMask | None = None  # 0: the head is pruned, `fill` in its place; 1: it is there; None: all are
