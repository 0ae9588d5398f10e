"""The stimuli for every model of a corpus: running text, and repeated random tokens."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Int
from torch import Tensor

from headstream.models.repeats import Repeats


class RunningText(NamedTuple):
    """Sequences of running text that open with BOS, if the model has one, and the document of each."""

    sequences: Int[Tensor, "window pos"]
    documents: Int[Tensor, "window"]


@dataclass(frozen=True)
class Stimuli:
    """Sequences that models are compared on; repeats are None if the vocabulary or n_ctx is too small for them."""

    bos: int  # NO_BOS for models that were trained without
    text: Int[Tensor, "window pos"]  # running text, for patterns and losses
    more_text: Int[Tensor, "more_windows pos"]  # only for losses
    fixed_period: Repeats | None
    random_period: Repeats | None
    documents: Int[Tensor, "sequence"]  # the document of each window of text, then of more_text
