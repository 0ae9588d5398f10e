"""Copying: two scores, which eigenvalues alone can't give, of whether attending to a token predicts that token."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.full_circuits import FullCircuit
from headstream.models.circuits.head_weights import CircuitWeights
from headstream.models.repeats import middle_tokens, repeat_tokens
from headstream.models.transformer import Transformer


def diagonal_ranks(circuit: FullCircuit, tokens: Int[Tensor, "token"]) -> Int[Tensor, "token"]:
    """For each row of a full circuit, the number of outputs ranked at least as high as the token itself: 0 is a copy.

    Equal ones count, so that a head that writes nothing copies nothing.
    """
    # in place: torch is slow to add up booleans
    ranks = [rows.ge_(rows.gather(1, tokens[index, None])).sum(1) - 1 for index, rows in circuit.chunks()]
    return torch.cat([tokens.new_empty(0), *(of_chunk.long() for of_chunk in ranks)])


def diagonal_accuracy(ranks: Int[Tensor, "token"], n: int, counts: Int[Tensor, "token"] | None) -> Float[Tensor, ""]:
    """Share of tokens that are among the top n outputs of their own row, plain or weighted by their counts."""
    hits = (ranks < n).double()
    return hits.mean() if counts is None else hits @ counts.double() / counts.sum()


def random_sequences(
    counts: Int[Tensor, "d_vocab"], bos: int, n_ctx: int, n_sequences: int, generator: torch.Generator
) -> Int[Tensor, "batch pos"]:
    """BOS and 25 tokens of the middle of the frequency ranking (fewer where n_ctx is short), none of them twice."""
    pool = middle_tokens(counts, bos)
    length = min(25, n_ctx - 1, len(pool))
    return repeat_tokens(pool, bos, torch.full((n_sequences,), length), length, generator).tokens


@torch.inference_mode()
def copying_evaluator(
    model: Transformer, weights: CircuitWeights, sequences: Int[Tensor, "batch pos"]
) -> list[Float[Tensor, "head"]]:
    """Measure the share of what each head's own output raises that lies on tokens it can attend to, -1..1.

    The output goes to logits directly; less their mean, what is above 0 counts. 1: nothing but seen tokens is raised;
    -1: none of them; NaN: the head writes nothing. Sequences must open with BOS and hold no token twice. Source: Olsson
    et al. 2022, "copying" head activation evaluator.
    """
    shares = [
        [
            _seen_share(traced.z[:, :, 1:], own.W_O, weights.W_U, batch[:, 1:])
            for traced, own in zip(model.trace(batch).layers, weights.layers, strict=True)
        ]
        for batch in batches(model, sequences)
    ]
    by_layer = zip(*shares, strict=True)
    return [2 * torch.cat(layer, dim=1).double().nanmean(1) - 1 for layer in by_layer]


def _seen_share(
    z: Float[Tensor, "batch head query d_value"],
    W_O: Float[Tensor, "head d_value d_stream"],
    W_U: Float[Tensor, "d_stream d_vocab"],
    tokens: Int[Tensor, "batch query"],
) -> Float[Tensor, "head observation"]:
    n = tokens.shape[1]
    seen = tokens[:, None].expand(-1, n, -1)
    shares = []
    for head in range(len(W_O)):
        logits = z[:, head] @ W_O[head] @ W_U
        raised = (logits - logits.mean(-1, keepdim=True)).relu()
        shares.append(raised.gather(2, seen).tril().sum(-1) / raised.sum(-1))
    return torch.stack(shares).flatten(1) if shares else z.new_empty(0, 1)
