"""What scores of importance are computed from, and what a score is."""

from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.heads.loss_slopes import loss_slopes
from headstream.models.transformer import Fill, HeadMask, Transformer

HeadScores = list[Float[Tensor, "_"]]  # one number a head, a tensor a layer, in float64 on the CPU: high = matters


@dataclass(frozen=True)
class Evidence:
    """What the importance of a model's heads is computed from."""

    model: Transformer
    text: Int[Tensor, "batch pos"]  # BOS first; the last token is only predicted
    fill: Fill  # each head's mean z on other text: [head, 1, d_value] a layer
    head_mask: HeadMask | None = None  # 0: the head is pruned, `fill` in its place; 1: it is there; None: all are

    @cached_property
    def slopes(self) -> list[Float[Tensor, "batch _ q_pos"]]:
        """Slopes of the loss by head and position, computed once for all scores that are made of them."""
        return loss_slopes(self.model, self.text, self.fill, self.head_mask)
