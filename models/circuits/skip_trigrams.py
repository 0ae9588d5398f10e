"""Skip-trigrams: `source ... destination -> output`, what a head makes of tokens alone, and where that must be wrong.

A head looks from the destination to the source by its QK circuit, and there predicts the output by its OV circuit. The
two know nothing of each other: a head that learns (source ... d1 -> o1) and (source ... d2 -> o2) has also learned
(source ... d1 -> o2). Source: Elhage et al. 2021, "skip-trigram bugs".
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from headstream.models.circuits.full_circuits import FullCircuit, full_ov, full_qk
from headstream.models.circuits.head_weights import CircuitWeights
from headstream.models.circuits.skip_trigram_counts import SkipTrigramCounts

CANDIDATES_PER_SOURCE = 8  # destinations and outputs that are looked at for each source
ENTRIES_PER_SOURCE = 4  # at most, in a table
SOURCES_PER_ENTRY = 3  # that are looked at: the corpus may lack a source's best pairs
MIN_OCCURRENCES = 5  # counted or expected: from fewer, nothing is concluded
CLEAR_RATIO = 2  # times as often as anywhere: then an output is right


@dataclass(frozen=True)
class _Candidates:
    """The sources that one head makes most of, with their best destinations and outputs."""

    source: Int[Tensor, "source"]
    destination: Int[Tensor, "source destination"]
    output: Int[Tensor, "source output"]
    qk: Float[Tensor, "source destination"]  # score, less its mean over sources; above 0, else there is none
    ov: Float[Tensor, "source output"]  # logit, less its mean over outputs; above 0, else there is none


@torch.no_grad()
def skip_trigrams(
    weights: CircuitWeights, layer: int, head: int, corpus: SkipTrigramCounts, n: int, min_count: int
) -> dict[str, Shaped[Tensor, "entry"]]:
    """The n strongest skip-trigrams of a head, at most 4 a source, whose tokens and pair come at least min_count times.

    One is right where the output comes more than twice as often as anywhere. One is a bug where it comes no more often
    than anywhere, and the head could only spare it together with two that are right: the output after another
    destination, and another output after the destination. At the rate of the former, 5 or more would have come.
    """
    found = _candidates(weights, layer, head, corpus.counts, SOURCES_PER_ENTRY * n, min_count)
    n_pairs, n_entries = corpus.count(found.source, found.destination, found.output)
    anywhere = (corpus.counts / corpus.counts.sum())[found.output]
    expected = n_pairs[:, :, None] * anywhere[:, None, :]
    strength = found.qk.relu()[:, :, None] * found.ov.relu()[:, None, :]
    listed = (strength > 0) & (n_pairs >= min_count)[:, :, None]
    right = listed & (n_entries > CLEAR_RATIO * expected) & (n_entries >= MIN_OCCURRENCES)
    rate_where_right = (n_entries / n_pairs[:, :, None]).where(right, 0)
    best_destination, best_output = rate_where_right.max(1), rate_where_right.max(2)
    missed = n_pairs[:, :, None] * best_destination.values[:, None, :]
    is_bug = listed & (n_entries <= expected) & (missed >= MIN_OCCURRENCES) & right.any(2, keepdim=True)
    other_destination = found.destination.gather(1, best_destination.indices)  # [source, output]
    other_output = found.output.gather(1, best_output.indices)  # [source, destination]

    s, d, o = _strongest(strength.where(listed, 0), n)
    bug = is_bug[s, d, o]
    return {
        "source": found.source[s],
        "destination": found.destination[s, d],
        "output": found.output[s, o],
        "qk_effect": found.qk[s, d],
        "ov_effect": found.ov[s, o],
        "n_pairs": n_pairs[s, d],  # how often the corpus has source ... destination within a context
        "corpus_probability": n_entries[s, d, o] / n_pairs[s, d],  # of output right after such a destination
        "output_probability": anywhere[s, o],
        "is_bug": bug,
        "other_destination": other_destination[s, o].where(bug, -1),  # after which the output is right
        "other_output": other_output[s, d].where(bug, -1),  # which is right after the destination
    }


def _candidates(
    weights: CircuitWeights, layer: int, head: int, counts: Int[Tensor, "d_vocab"], n_sources: int, min_count: int
) -> _Candidates:
    """The sources with a head's strongest skip-trigrams, among tokens that come at least min_count times."""
    frequency = (counts / counts.sum()).to(weights.W_E)
    used = (counts >= counts.max().clamp(max=min_count)).nonzero().flatten()  # never none
    own = weights.layers[layer]
    qk = full_qk(weights, layer, head, used).less(frequency @ weights.W_E @ own.W_K[head])
    logits = full_ov(weights, layer, head, used, used).less(own.W_O[head] @ weights.W_U.mean(1))  # [source, output]
    scores = FullCircuit(qk.right.T, qk.left.T)  # [source, destination]
    strongest = (_largest(scores) * _largest(logits)).topk(min(n_sources, len(used))).indices
    (score, destination), (logit, output) = (
        (part.cpu() for part in circuit.rows(strongest).topk(min(CANDIDATES_PER_SOURCE, len(used)), dim=1))
        for circuit in (scores, logits)
    )
    return _Candidates(used[strongest.cpu()], used[destination], used[output], score, logit)


def _largest(circuit: FullCircuit) -> Float[Tensor, "row"]:
    """The largest entry of each row, or 0 where none is above that."""
    return torch.cat([chunk.amax(1).relu() for _, chunk in circuit.chunks()])


def _strongest(
    strength: Float[Tensor, "source destination output"], n: int
) -> tuple[Int[Tensor, "entry"], Int[Tensor, "entry"], Int[Tensor, "entry"]]:
    """Places of the n largest entries above 0, largest first, no more than ENTRIES_PER_SOURCE of one source."""
    by_source = strength.flatten(1)
    best = by_source.topk(min(ENTRIES_PER_SOURCE, by_source.shape[1]), dim=1)
    top = best.values.flatten().topk(min(n, best.values.numel()))
    chosen = top.indices[top.values > 0]
    source = chosen // max(1, best.values.shape[1])
    within = best.indices.flatten()[chosen]
    return source, within // strength.shape[2], within % strength.shape[2]
