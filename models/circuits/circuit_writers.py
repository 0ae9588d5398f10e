"""Which earlier heads could give a later head induction: they attend to what it needs to know, and it reads them.

Induction by K-composition needs keys that tell which token came before: writers are previous-token heads. By
Q-composition (a pointer) queries must tell where the token occurred before: writers are duplicate-token heads. Sources:
Elhage et al. 2021; Olsson et al. 2022, "pointer arithmetic".
"""

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.composition import KINDS, PairKind, head_pairs
from headstream.models.circuits.paths import Path
from headstream.models.heads.attended_keys import (
    attention_on,
    duplicate_token_keys,
    induction_keys,
    previous_token_keys,
)
from headstream.models.heads.head import Head
from headstream.models.transformer import Transformer

LEAST_ATTENTION = 0.3  # mean attention that a writer gives to its keys
MOST_WRITERS = 8  # of a circuit: taking out all of many tells nothing about any

CircuitKind = Literal["K", "Q"]
Place = tuple[Head, CircuitKind]  # a reading head, and which side of it reads
WRITERS_KEYS: Mapping[CircuitKind, Callable[[Tensor, int], Tensor]] = {
    "K": previous_token_keys,
    "Q": duplicate_token_keys,
}


def circuit_writers(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int, z: PairKind, composed: Bool[Tensor, "pair 3"]
) -> dict[Place, Path]:
    """The writers of each later head's circuit of each kind, the highest `z` first; often there are none.

    `composed` says which pairs of `head_pairs` compose by which of `KINDS`; attention is measured on `sequences`. First
    come the circuits of heads that attend most to what followed earlier copies of the current token.
    """
    attention, induction = _mean_attention(model, sequences, bos)
    pairs = [(Head(*row[:2]), Head(*row[2:])) for row in head_pairs(model.architecture.heads_per_layer).tolist()]
    readers = dict.fromkeys(reader for _, reader in pairs)
    found: dict[Place, Path] = {(reader, kind): () for kind in WRITERS_KEYS for reader in readers}
    for kind, by_layer in attention.items():
        column = KINDS.index(kind)
        strongest_first = z[:, column].argsort(descending=True, stable=True)
        for writer, reader in (pairs[i] for i in strongest_first[composed[strongest_first, column]].tolist()):
            is_writer = by_layer[writer.layer][writer.head] >= LEAST_ATTENTION
            if is_writer and len(found[reader, kind]) < MOST_WRITERS:
                found[reader, kind] += (writer,)

    def attends(place: Place) -> float:
        return induction[place[0].layer][place[0].head].nan_to_num().item()

    return {place: found[place] for place in sorted(found, key=attends, reverse=True)}


@torch.inference_mode()
def _mean_attention(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int
) -> tuple[dict[CircuitKind, list[Float[Tensor, "head"]]], list[Float[Tensor, "head"]]]:
    """Mean attention of each head on the keys of each kind's writers, and on those of induction, a tensor a layer.

    NaN where no query has any.
    """
    every = [*WRITERS_KEYS.values(), induction_keys]
    measured: list[list[list[Tensor]]] = [[] for _ in every]
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        layers = model.trace(tokens).layers
        for own, keys_of in zip(measured, every, strict=True):
            keys = keys_of(tokens, bos)
            own.append([attention_on(layer.pattern, keys) for layer in layers])
    *by_kind, induction = (
        [torch.cat(layer).double().nanmean(dim=(0, 2)) for layer in zip(*by_batch, strict=True)]
        for by_batch in measured
    )
    return dict(zip(WRITERS_KEYS, by_kind, strict=True)), induction
