"""How well the direct path W_E W_U predicts the next token from the last: its fit to the corpus' bigrams.

Source: Elhage et al. 2021, "zero-layer transformers".
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.circuits.frozen import freeze_run
from models.heads.behaviour import batches
from models.transformer import Transformer

MIN_COUNT = 20  # a source token seen less often tells too little of what follows it
CHUNK_NUMBERS = 2**22  # logits held at once


@dataclass(frozen=True)
class Bigrams:
    """Every bigram that occurs in a corpus, sorted by source."""

    source: Int[Tensor, "bigram"]
    target: Int[Tensor, "bigram"]
    count: Int[Tensor, "bigram"]


@dataclass(frozen=True)
class MeanContributions:
    """What W_U reads at positions that hold a token, on average: from that token directly, and from all else."""

    direct: Float[Tensor, "d_vocab d_model"]  # biases included
    rest: Float[Tensor, "d_vocab d_model"]
    n_positions: Int[Tensor, "d_vocab"]


@dataclass(frozen=True)
class BigramFit:
    """Fit over bigrams with weights as in the corpus; losses are those of a corpus drawn from its own bigrams."""

    n_sources: int
    coverage: float  # fraction of the corpus' bigrams whose source counts
    unigram_loss_nats: float
    bigram_loss_nats: float  # the least that a bigram model can have
    direct_loss_nats: float
    correlation: float  # of direct logits with log probabilities, both minus their row's mean
    n_gap_sources: int
    gap_coverage: float
    gap_correlation: float  # with log probabilities minus what the rest of the model adds
    gap_bigram_correlation: float  # with log probabilities alone, over the same sources

    @property
    def kl_nats(self) -> float:
        """From the direct path's predictions to the bigrams."""
        return self.direct_loss_nats - self.bigram_loss_nats

    @property
    def explained_share(self) -> float:
        """How much of the way from unigram to bigram loss the direct path goes: 1 is all; may be negative."""
        return (self.unigram_loss_nats - self.direct_loss_nats) / (self.unigram_loss_nats - self.bigram_loss_nats)
