"""Earlier heads that could give a later head induction: they attend to what it needs to know, and it reads them.

Induction by K-composition needs keys that tell which token came before: writers are previous-token heads. By
Q-composition (a pointer) queries must tell where the token occurred before: writers are duplicate-token heads. Sources:
Elhage et al. 2021; Olsson et al. 2022, "pointer arithmetic".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.composition import PairKind, head_pairs
from headstream.models.heads.attended_keys import (
    attention_on,
    duplicate_token_keys,
    induction_keys,
    previous_token_keys,
)
from headstream.models.nodes import HEAD_PORTS, Edge, Head, Port
from headstream.models.transformer import Transformer

MIN_ATTENTION = 0.3  # mean attention that a writer gives to its keys
MAX_WRITERS = 8  # of a circuit: taking out all of many tells nothing about any

WRITERS_KEYS: Mapping[Port, Callable[[Tensor, int], Tensor]] = {"K": previous_token_keys, "Q": duplicate_token_keys}


@dataclass(frozen=True)
class InductionCircuit:
    """A head, and the earlier ones through which one of its ports could learn what induction needs."""

    reader: Head
    port: Port
    writers: tuple[Head, ...]  # the highest z first

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges from its writers to its reader."""
        return tuple(Edge(writer, self.reader, self.port) for writer in self.writers)


def circuit_writers(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int, z: PairKind, composed: Bool[Tensor, "pair 3"]
) -> list[InductionCircuit]:
    """The circuits of each later head, one by its keys and one by its queries; often without any writers.

    `composed` says which pairs of `head_pairs` compose by which of `HEAD_PORTS`; attention is measured on `sequences`.
    First come the circuits of heads that attend most to what followed earlier copies of the current token.
    """
    attention, induction = _mean_attention(model, sequences, bos)
    pairs = [(Head(*row[:2]), Head(*row[2:])) for row in head_pairs(model.architecture.heads_per_layer).tolist()]
    readers = dict.fromkeys(reader for _, reader in pairs)
    found: list[InductionCircuit] = []
    for port, by_layer in attention.items():
        column = HEAD_PORTS.index(port)
        writers: dict[Head, list[Head]] = {reader: [] for reader in readers}
        strongest_first = z[:, column].argsort(descending=True, stable=True)
        for writer, reader in (pairs[i] for i in strongest_first[composed[strongest_first, column]].tolist()):
            is_writer = by_layer[writer.layer][writer.head] >= MIN_ATTENTION
            if is_writer and len(writers[reader]) < MAX_WRITERS:
                writers[reader].append(writer)
        found += [InductionCircuit(reader, port, tuple(own)) for reader, own in writers.items()]

    def attends(circuit: InductionCircuit) -> float:
        layer, head = circuit.reader
        return induction[layer][head].nan_to_num().item()

    return sorted(found, key=attends, reverse=True)


@torch.inference_mode()
def _mean_attention(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int
) -> tuple[dict[Port, list[Float[Tensor, "head"]]], list[Float[Tensor, "head"]]]:
    """Mean attention of each head on the keys of each port's writers, and on those of induction, a tensor a layer.

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
    *by_port, induction = (
        [torch.cat(layer).double().nanmean(dim=(0, 2)) for layer in zip(*by_batch, strict=True)]
        for by_batch in measured
    )
    return dict(zip(WRITERS_KEYS, by_port, strict=True)), induction
