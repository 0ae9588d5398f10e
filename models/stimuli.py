"""What every model of one corpus is shown: running text, and repeated random tokens."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Int
from torch import Tensor

from headstream.models.repeats import Repeats


class RunningText(NamedTuple):
    """Sequences of running text that open with BOS, if the model has one, and which document each is from."""

    sequences: Int[Tensor, "window pos"]
    documents: Int[Tensor, "window"]


@dataclass(frozen=True)
class Stimuli:
    """Sequences that models are compared on; repeats are None where the vocabulary or n_ctx is too small for them."""

    bos: int  # NO_BOS of models that were trained without
    text: Int[Tensor, "window pos"]  # running text, for patterns and losses
    more_text: Int[Tensor, "more_windows pos"]  # for losses alone
    fixed_period: Repeats | None
    random_period: Repeats | None
    documents: Int[Tensor, "sequence"]  # which document each window of text, then of more_text, is from
