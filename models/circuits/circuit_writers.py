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

from models.batching import batches
from models.circuits.composition import KINDS, PairKind, head_pairs
from models.circuits.paths import Path
from models.heads.attended_keys import attention_on, duplicate_token_keys, previous_token_keys
from models.heads.head import Head
from models.transformer import Transformer

LEAST_ATTENTION = 0.3  # mean attention that a writer gives to its keys

CircuitKind = Literal["K", "Q"]
WRITERS_KEYS: Mapping[CircuitKind, Callable[[Tensor, int], Tensor]] = {
    "K": previous_token_keys,
    "Q": duplicate_token_keys,
}


def circuit_writers(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int, z: PairKind, composed: Bool[Tensor, "pair 3"]
) -> dict[tuple[Head, CircuitKind], Path]:
    """The writers of each later head's circuit of each kind, the highest `z` first; often there are none.

    `composed` says which pairs of `head_pairs` compose by which of `KINDS`; attention is measured on `sequences`.
    """
    attention = _mean_attention(model, sequences, bos)
    found: dict[tuple[Head, CircuitKind], Path] = {}
    pairs = [(Head(*row[:2]), Head(*row[2:])) for row in head_pairs(model.architecture.heads_per_layer).tolist()]
    for kind, by_layer in attention.items():
        column = KINDS.index(kind)
        strongest_first = z[:, column].argsort(descending=True, stable=True).tolist()
        for reader in dict.fromkeys(reader for _, reader in pairs):
            read = [pairs[i][0] for i in strongest_first if pairs[i][1] == reader and composed[i, column]]
            found[reader, kind] = tuple(w for w in read if by_layer[w.layer][w.head] >= LEAST_ATTENTION)
    return found


@torch.inference_mode()
def _mean_attention(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int
) -> dict[CircuitKind, list[Float[Tensor, "head"]]]:
    """Mean attention of each head on the keys of each kind's writers, a tensor a layer; NaN where no query has any."""
    measured: dict[CircuitKind, list[list[Tensor]]] = {kind: [] for kind in WRITERS_KEYS}
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        layers = model.trace(tokens).layers
        for kind, keys_of in WRITERS_KEYS.items():
            keys = keys_of(tokens, bos)
            measured[kind].append([attention_on(layer.pattern, keys) for layer in layers])
    return {
        kind: [torch.cat(layer).double().nanmean(dim=(0, 2)) for layer in zip(*by_batch, strict=True)]
        for kind, by_batch in measured.items()
    }
