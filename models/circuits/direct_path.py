"""The direct path W_E W_U as a prediction of the next token from the last: its fit to the corpus' bigrams.

Source: Elhage et al. 2021, "zero-layer transformers".
"""

from dataclasses import dataclass
from math import nan

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.frozen import freeze_run
from headstream.models.nodes import Terminal
from headstream.models.transformer import Transformer

MIN_COUNT = 20  # a rarer source token says too little about what follows it
_CHUNK_NUMBERS = 2**22  # logits held at once


@dataclass(frozen=True)
class Bigrams:
    """Every bigram that occurs in a corpus, sorted by source."""

    source: Int[Tensor, "bigram"]
    target: Int[Tensor, "bigram"]
    count: Int[Tensor, "bigram"]


@dataclass(frozen=True)
class MeanContributions:
    """The average input of W_U at positions that hold a token: from that token directly, and from all else."""

    direct: Float[Tensor, "d_vocab d_model"]  # biases included
    rest: Float[Tensor, "d_vocab d_model"]
    n_positions: Int[Tensor, "d_vocab"]


@dataclass(frozen=True)
class BigramLogits:
    """The logits that the direct path, and all else in the model, give each bigram whose source counts."""

    source: Int[Tensor, "bigram"]
    target: Int[Tensor, "bigram"]
    count: Int[Tensor, "bigram"]
    log_probability: Float[Tensor, "bigram"]  # of the target after the source, in the corpus
    direct: Float[Tensor, "bigram"]  # logit
    log_normaliser: Float[Tensor, "bigram"]  # of the direct path's logits for the source
    rest: Float[Tensor, "bigram"]  # mean logit of all but the direct path after the source
    in_gap: Bool[Tensor, "bigram"]  # whether the text holds the source often enough for `rest` to be known

    def centred(self, values: Float[Tensor, "bigram"]) -> Float[Tensor, "bigram"]:
        """Values minus their mean over the bigrams of the source, weighted by count."""
        weight = self.count.double()
        mean = torch.bincount(self.source, weight * values) / torch.bincount(self.source, weight)
        return values - mean[self.source]


@torch.inference_mode()
def mean_contributions(model: Transformer, sequences: Int[Tensor, "batch pos"]) -> MeanContributions:
    """The input of W_U after each token, directly and from all else: means over some text, NaN for tokens it lacks.

    Without norms the direct path is the same at every position, and known for all tokens.
    """
    shape = model.W_E.shape
    direct, rest = model.W_E.new_zeros(shape), model.W_E.new_zeros(shape)
    n, constant = model.W_E.new_zeros(shape[0]), torch.zeros_like(model.W_E[0])
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        run = freeze_run(model, tokens)
        sources = run.sources()[-1]
        part = sources[Terminal.EMBEDDING]
        if Terminal.BIAS in sources:
            part, constant = part + sources[Terminal.BIAS], sources[Terminal.BIAS][0, 0]
        flat = tokens.flatten()
        direct.index_add_(0, flat, part.flatten(0, 1))
        rest.index_add_(0, flat, (run.trace.residual_final - part).flatten(0, 1))
        n.index_add_(0, flat, torch.ones_like(flat, dtype=n.dtype))
    everywhere = model.architecture.normalization == "none"
    return MeanContributions(
        direct=model.token_vectors + constant if everywhere else direct / n[:, None],
        rest=rest / n[:, None],
        n_positions=n.long(),
    )


@torch.inference_mode()
def bigram_logits(
    model: Transformer, bigrams: Bigrams, means: MeanContributions, bos: int, max_sources: int
) -> BigramLogits:
    """Logits of the direct path and of all else for every bigram of the most frequent sources.

    BOS is no source: sequences are cut anywhere, so in training it stood before any token.
    """
    n_source = torch.bincount(bigrams.source, bigrams.count.double(), minlength=model.d_vocab)
    counts_as_source = (n_source >= MIN_COUNT) & means.direct.isfinite().all(1).cpu()
    counts_as_source &= torch.arange(model.d_vocab) != bos
    frequent = n_source.where(counts_as_source, -1).argsort(descending=True, stable=True)[:max_sources]
    frequent = frequent[counts_as_source[frequent]].sort().values
    kept = torch.isin(bigrams.source, frequent)
    source, target, count = bigrams.source[kept], bigrams.target[kept], bigrams.count[kept]
    row = torch.searchsorted(frequent, source)
    size = max(1, _CHUNK_NUMBERS // model.d_vocab)
    chunks = []
    for start in range(0, len(frequent), size):
        ids = frequent[start : start + size].to(model.W_E.device)
        inside = slice(*torch.searchsorted(row, torch.tensor([start, start + size])).tolist())
        cell = (row[inside] - start).to(ids.device), target[inside].to(ids.device)
        direct, rest = model.unembed(means.direct[ids]), means.rest[ids] @ model.W_U
        columns = direct[cell], direct.logsumexp(1)[cell[0]], rest[cell]
        chunks.append(torch.stack(columns).double().cpu())
    direct, log_normaliser, rest = torch.cat(chunks, dim=1) if chunks else torch.empty(3, 0, dtype=torch.float64)
    log_probability = (count / n_source[source]).log()
    in_gap = means.n_positions.cpu()[source] >= MIN_COUNT
    return BigramLogits(source, target, count, log_probability, direct, log_normaliser, rest, in_gap)


def fit_bigrams(logits: BigramLogits, n_bigrams: int) -> dict[str, float | int]:
    """Fit of the direct path to a corpus with so many bigrams; NaN where no source counts.

    Bigrams have weights as in the corpus; losses are those of a corpus drawn from its own bigrams.
    """
    weight = logits.count.double() / logits.count.sum()
    unigram = torch.bincount(logits.target, weight) if len(weight) else weight
    gap = logits.in_gap
    unigram_loss = _mean(-unigram.log(), unigram)
    bigram_loss = _mean(-logits.log_probability, weight)  # the least that a bigram model can have
    direct_loss = _mean(logits.log_normaliser - logits.direct, weight)
    way = unigram_loss - bigram_loss  # of which the direct path goes a share: 1 is all; may be negative
    return {
        "n_sources": len(logits.source.unique()),
        "coverage": float(logits.count.sum()) / n_bigrams if n_bigrams else nan,  # of bigrams, whose source counts
        "unigram_loss_nats": unigram_loss,
        "bigram_loss_nats": bigram_loss,
        "direct_loss_nats": direct_loss,
        "kl_nats": direct_loss - bigram_loss,
        "explained_share": (unigram_loss - direct_loss) / way if way > 1e-9 else nan,
        "correlation": _correlation(logits),
        "n_gap_sources": len(logits.source[gap].unique()),
        "gap_coverage": float(logits.count[gap].sum()) / n_bigrams if n_bigrams else nan,
        "gap_coefficient": _gap_coefficient(logits),
    }


def _correlation(logits: BigramLogits) -> float:
    """Of the direct logits with log probabilities, both centred, weighted by count."""
    weight = logits.count.double()
    x, y = (logits.centred(values) for values in (logits.direct, logits.log_probability))
    return ((weight * x * y).sum() / ((weight * x * x).sum() * (weight * y * y).sum()).sqrt()).item()


def _gap_coefficient(logits: BigramLogits) -> float:
    """Coefficient of the rest's logits when direct logits are regressed on log probabilities and them.

    All are centred, since softmax ignores a shift of a row, and weighted by count. -1 where the direct path fills in
    what the rest leaves of the bigrams, 0 where it minds bigrams alone; NaN where the rest says nothing but bigrams.
    That it is negative is no property of heads: any two parts of logits that fit bigrams together make up for each
    other. What is regressed on is only that part of the rest which log probabilities don't explain: the coefficient is
    the same. Source: Frisch & Waugh 1933.
    """
    gap = logits.in_gap
    weight = logits.count[gap].double()
    direct, log_p, rest = (
        logits.centred(values)[gap] for values in (logits.direct, logits.log_probability, logits.rest)
    )
    own = rest - (weight * rest * log_p).sum() / (weight * log_p * log_p).sum() * log_p
    spread = (weight * own * own).sum()
    return ((weight * own * direct).sum() / spread).item() if spread > 1e-9 * (weight * rest * rest).sum() else nan


def _mean(values: Float[Tensor, "n"], weight: Float[Tensor, "n"]) -> float:
    known = weight > 0
    return (values[known] * weight[known]).sum().item() if known.any() else nan
