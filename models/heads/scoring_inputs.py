"""The inputs of importance scores, and the type of the scores."""

from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.heads.loss_slopes import loss_slopes
from headstream.models.transformer import Fill, HeadMask, Transformer

HeadScores = list[Float[Tensor, "_"]]  # one number per head, a tensor per layer, float64 on the CPU: high = matters


@dataclass(frozen=True)
class ScoringInputs:
    """Everything that the importance of a model's heads is computed from."""

    model: Transformer
    text: Int[Tensor, "batch pos"]  # BOS first; the last token is only predicted
    fill: Fill  # each head's mean z on other text: [head, 1, d_value] per layer
    head_mask: HeadMask | None = None  # 0: the head is pruned, with `fill` in its place; None: no head is

    @cached_property
    def slopes(self) -> list[Float[Tensor, "batch _ q_pos"]]:
        """Slopes of the loss by head and position, computed once for all scores that use them."""
        return loss_slopes(self.model, self.text, self.fill, self.head_mask)
