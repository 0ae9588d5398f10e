"""Earlier heads through which a later head has induction, named by what becomes of it without them.

Induction by K-composition needs keys that tell which token came before: writers are previous-token heads. By
Q-composition (a pointer) queries must tell where the token occurred before: writers are duplicate-token heads. What the
head then copies is the token in its own values, or what an earlier head wrote there: a carrier, of any pattern.
Sources: Elhage et al. 2021; Olsson et al. 2022, "pointer arithmetic".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from scipy.special import stdtr
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.induction_without import Induction, induction_without
from headstream.models.circuits.removals import Removal
from headstream.models.heads.attended_keys import KeysOf, attention_on, duplicate_token_keys, previous_token_keys
from headstream.models.heads.content_attention import Score
from headstream.models.heads.head import heads_of
from headstream.models.heads.head_behaviour import random_period_scores
from headstream.models.losses import sem_of_parts
from headstream.models.multiple_tests import significant
from headstream.models.nodes import HEAD_PORTS, Edge, Head, Port
from headstream.models.repeats import Repeats
from headstream.models.stimuli import Stimuli
from headstream.models.transformer import Transformer

MIN_ATTENTION = 0.3  # mean attention that a writer gives to its keys
MIN_INDUCTION = 0.05  # induction_random_period of a head whose writers are looked for
MIN_EFFECT = 0.1  # of the reader's own score: what a writer must take away, or give back, to be one
CARRIED = 0.2  # induction_random_period of a head whose carriers are looked for: that of an induction head
MAX_WRITERS = 8  # of a circuit: taking out all of many tells nothing about any
RANKED_BY = 4  # one in so many sequences tells which heads may be carriers, where many may; the others test those

WRITERS_KEYS: Mapping[Port, KeysOf] = {"K": previous_token_keys, "Q": duplicate_token_keys}


@dataclass(frozen=True)
class InductionCircuit:
    """A head, and the earlier ones through which one of its ports learns what induction needs, or what it copies."""

    reader: Head
    port: Port
    writers: tuple[Head, ...]  # the largest effect first

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges from its writers to its reader."""
        return _edges(self.reader, self.port, self.writers)


class _Question(NamedTuple):
    """Whether a head is a writer: if a score is higher with it (the first removal) than without it (the second)."""

    circuit: InductionCircuit  # all heads that may be its writers
    writer: Head
    having: Head | Removal
    lacking: Removal


def circuit_writers(model: Transformer, stimuli: Stimuli, level: float, max_circuits: int) -> list[InductionCircuit]:
    """The circuits of each later head, one by its keys, one by its queries, one by its values; often without writers.

    Those that may be writers are taken out alone, and put back alone where all are out: if there are several, each may
    be enough. A writer is one whose loss or return changes the reader's attention to what followed earlier copies
    significantly and by `MIN_EFFECT` of it; a carrier, one whose loss changes so what the reader adds to the logit of
    what followed. With probability 1 - `level`, no head is named in a model that has no such circuit (Holm). Readers
    are tried that attend to what followed at all, `max_circuits` at most, those that do so most first.
    """
    later = [head for head in heads_of(model) if head.layer > 0]
    if stimuli.random_period is None or not later:
        return []
    scores = random_period_scores(model, stimuli)
    readers = sorted((head for head in later if scores[head] >= MIN_INDUCTION), key=lambda head: -scores[head])
    attention, tried = _mean_attention(model, stimuli.text, stimuli.bos), readers[:max_circuits]
    possible = [_possible_writers(model, attention, reader, port) for reader in tried for port in WRITERS_KEYS]
    ranking, testing = _apart(stimuli.random_period)
    copying = [reader for reader in tried if scores[reader] >= CARRIED]
    possible += _possible_carriers(model, ranking, stimuli.bos, copying)
    questions = list(chain.from_iterable(map(_questions, possible)))
    removals = {key for own in questions for key in (own.having, own.lacking) if not isinstance(key, Head)}
    found = induction_without(model, testing, stimuli.bos, removals)
    effects = _effects(questions, found, level)
    return [
        InductionCircuit(reader, port, _strongest_first(effects.get((reader, port), {})))
        for reader in later
        for port in HEAD_PORTS
    ]


def _possible_writers(
    model: Transformer, attention: Mapping[Port, Mapping[Head, float]], reader: Head, port: Port
) -> InductionCircuit:
    """All heads that may be writers of a reader: they attend to what they would have to know."""
    own = attention[port]
    known = [head for head in heads_of(model) if head.layer < reader.layer and own[head] >= MIN_ATTENTION]
    most = sorted(known, key=lambda head: -own[head])[:MAX_WRITERS]
    return InductionCircuit(reader, port, tuple(sorted(most)))


def _possible_carriers(
    model: Transformer, ranking: Repeats, bos: int, readers: Sequence[Head]
) -> list[InductionCircuit]:
    """All earlier heads of each reader or, if they are many, those that change most of what it adds to logits."""
    earlier = {reader: [head for head in heads_of(model) if head.layer < reader.layer] for reader in readers}
    edges = {
        (Edge(head, reader, "V"),) for reader, heads in earlier.items() for head in heads if len(heads) > MAX_WRITERS
    }
    found = induction_without(model, ranking, bos, edges)

    circuits = []
    for reader, heads in earlier.items():
        if len(heads) > MAX_WRITERS:
            without = {head: found[(Edge(head, reader, "V"),)].copying.mean for head in heads}
            change = {head: (mean - found[reader].copying.mean).abs().item() for head, mean in without.items()}
            heads = nlargest(MAX_WRITERS, change, key=change.__getitem__)
        circuits.append(InductionCircuit(reader, "V", tuple(sorted(heads))))
    return circuits


def _apart(repeats: Repeats) -> tuple[Repeats, Repeats]:
    """Some sequences to rank heads by, and the others to test them on, so that the choice decides no test."""
    ranks = torch.arange(len(repeats.tokens)) % RANKED_BY == 0
    ranking, testing = (Repeats(repeats.tokens[own], repeats.occurrence[own]) for own in (ranks, ~ranks))
    return ranking, testing


def _questions(circuit: InductionCircuit) -> Iterator[_Question]:
    reader, port, writers = circuit.reader, circuit.port, circuit.writers
    for writer in writers:
        yield _Question(circuit, writer, reader, _edges(reader, port, (writer,)))
        if port != "V" and len(writers) > 1:
            others = tuple(other for other in writers if other != writer)
            yield _Question(circuit, writer, _edges(reader, port, others), circuit.edges)


def _effects(
    questions: list[_Question], found: Mapping[Head | Removal, Induction], level: float
) -> dict[tuple[Head, Port], dict[Head, float]]:
    """The effect of each writer that is one, by reader and port: the larger of those of its loss and of its return."""
    measured = [_difference(own, found) for own in questions]
    chance = torch.tensor([stdtr(own.degrees_of_freedom, -own.t) for own in measured], dtype=torch.float64)
    effects: dict[tuple[Head, Port], dict[Head, float]] = {}
    for question, own, is_significant in zip(questions, measured, significant(chance, level).tolist(), strict=True):
        if is_significant and own.share >= MIN_EFFECT:
            circuit = effects.setdefault((question.circuit.reader, question.circuit.port), {})
            circuit[question.writer] = max(own.share, circuit.get(question.writer, 0.0))
    return effects


class _Difference(NamedTuple):
    share: float  # of the reader's own score
    t: float  # Student's t over sequences
    degrees_of_freedom: int


def _difference(question: _Question, found: Mapping[Head | Removal, Induction]) -> _Difference:
    """How much higher a score is with a writer than without, with the same sequences in both."""

    def score(key: Head | Removal) -> Score:
        return found[key].copying if question.circuit.port == "V" else found[key].attention

    own, having, lacking = score(question.circuit.reader), score(question.having), score(question.lacking)
    parts = having.parts - lacking.parts
    change, sem = (having.mean - lacking.mean).item(), sem_of_parts(parts).item()
    if question.circuit.port == "V" and own.mean < 0:  # an anti-induction head: it lowers the logit
        change = -change
    t = change / sem if sem else float("inf") if change > 0 else float("-inf")
    return _Difference(change / own.mean.abs().item(), t, parts.shape[1] - 1)


def _strongest_first(effects: Mapping[Head, float]) -> tuple[Head, ...]:
    return tuple(sorted(effects, key=lambda head: (-effects[head], head)))[:MAX_WRITERS]


def _edges(reader: Head, port: Port, writers: tuple[Head, ...]) -> tuple[Edge, ...]:
    return tuple(Edge(writer, reader, port) for writer in writers)


@torch.inference_mode()
def _mean_attention(model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int) -> dict[Port, dict[Head, float]]:
    """Mean attention of each head on the keys of each port's writers; NaN where no query has any."""
    by_port: dict[Port, list[list[Float[Tensor, "batch head q_pos"]]]] = {port: [] for port in WRITERS_KEYS}
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        layers = model.trace(tokens).layers
        for port, keys_of in WRITERS_KEYS.items():
            keys = keys_of(tokens, bos)
            by_port[port].append([attention_on(layer.pattern, keys) for layer in layers])
    return {
        port: {
            Head(i, head): mean
            for i, layer in enumerate(zip(*measured, strict=True))
            for head, mean in enumerate(torch.cat(layer).double().nanmean(dim=(0, 2)).tolist())
        }
        for port, measured in by_port.items()
    }
