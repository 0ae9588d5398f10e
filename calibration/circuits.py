"""Induction circuits and roles of heads: those planted anywhere, in turned bases, and those that are not there."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from random import Random
from typing import NamedTuple

from calibration.measured import Stages, Trained, rows_about, vocabulary
from calibration.trials import Trial
from headstream.models.nodes import Head
from headstream.models.transformer import Transformer
from headstream.tasks.study.analyses.activation_circuits_config import ActivationCircuitsConfig
from headstream.tasks.study.analyses.behaviour_config import BehaviourConfig
from headstream.tasks.study.analyses.weight_circuits_config import WeightCircuitsConfig
from tests.planted import (
    induction_through_values,
    initial_like,
    only_places,
    planted_induction,
    pointer_model,
    rotated,
    shuffled,
    virtual_induction_model,
)

N_CTX = 32
STAGES: Stages = {
    "behaviour": BehaviourConfig(loss_windows=8, pattern_windows=8, random_period_sequences=16, passage_tokens=2),
    "weight-circuits": WeightCircuitsConfig(
        rotations=2, statistics_tokens=2000, top_skip_trigrams=1, evaluator_sequences=2, persistence_windows=2
    ),
    "activation-circuits": ActivationCircuitsConfig(
        path_windows=8, bigram_windows=8, bigram_sources=2, max_pairs=4, random_period_sequences=16
    ),
}


ON_PLACES = {"loss_windows": 8, "pattern_windows": 8, "random_period_sequences": 64, "passage_tokens": 2}


class Circuit(NamedTuple):
    """Where a circuit is to be planted: heads of each layer, and who is what; others are earlier heads, in no part."""

    heads_per_layer: tuple[int, ...]
    reader: Head
    writers: tuple[Head, ...]
    others: tuple[Head, ...]


def circuit_of(seed: int, n_layers: int, n_writers: int) -> Circuit:
    """A random place for a circuit; one earlier head at least is in no part of it."""
    random = Random(seed)
    heads = (random.randint(n_writers + 1, 4), *(random.randint(2, 3) for _ in range(n_layers - 1)))
    layer = random.randint(1, n_layers - 1)
    earlier = [Head(own, head) for own in range(layer) for head in range(heads[own])]
    random.shuffle(earlier)
    reader = Head(layer, random.randrange(heads[layer]))
    return Circuit(heads, reader, tuple(earlier[:n_writers]), tuple(earlier[n_writers:]))


def by_keys(seed: int, circuit: Circuit, decoys: tuple[Head, ...] = (), sign: float = 1.0) -> Transformer:
    """Induction whose keys read the circuit's writers."""
    heads, reader, writers, _ = circuit
    return planted_induction(heads, reader, writers, decoys, sign, vocabulary(), N_CTX, seed)


def with_a_decoy(seed: int, circuit: Circuit) -> Transformer:
    """The same beside a sharper previous-token head that nobody reads."""
    return by_keys(seed, circuit, decoys=circuit.others[:1])


def _anti_induction(seed: int, circuit: Circuit) -> Transformer:
    return by_keys(seed, circuit, sign=-1.0)


def by_queries(seed: int, circuit: Circuit) -> Transformer:
    """Induction whose queries read the circuit's writers."""
    heads, reader, writers, _ = circuit
    return pointer_model(heads, reader, writers, d_vocab=vocabulary(), n_ctx=N_CTX, seed=seed)


def _through_values(seed: int, circuit: Circuit) -> Transformer:
    heads, reader, (writer,), (carrier, *_) = circuit
    return induction_through_values(heads, reader, writer, carrier, vocabulary(), N_CTX, seed)


def _with_a_heavy_decoy(seed: int, circuit: Circuit) -> Transformer:
    heads, reader, writers, (decoy, *_) = circuit
    return pointer_model(heads, reader, writers, decoy, d_vocab=vocabulary(), n_ctx=N_CTX, seed=seed)


def _by_a_virtual_head(seed: int, circuit: Circuit) -> Transformer:
    heads, reader, (writer,), (carrier, *_) = circuit
    return virtual_induction_model(heads, reader, writer, carrier, vocabulary(), N_CTX, seed)


def _planted(plant: Callable[[int, Circuit], Transformer], circuits: list[Circuit]) -> Iterator[Trained]:
    """A model with each circuit, all of its bases turned."""
    models = (rotated(plant(seed, circuit), seed) for seed, circuit in enumerate(circuits))
    return (Trained(initial_like(model, seed), model) for seed, model in enumerate(models))


def named(
    plant: Callable[[int, Circuit], Transformer], role: str, kind: str, n_layers: int, n_writers: int, n: int
) -> int:
    """In how many models the reader is named with its role, and all of its writers and no other, by that kind."""
    circuits = [circuit_of(seed, n_layers, n_writers) for seed in range(n)]
    query = (
        "SELECT model_id, reader, reader_role, kind, list_sort(writers), depends"
        " FROM induction_circuits WHERE is_strongest"
    )
    found = {name: row for name, *row in rows_about(_planted(plant, circuits), STAGES, query)}
    expected = [[str(circuit.reader), role, kind, sorted(map(str, circuit.writers)), True] for circuit in circuits]
    return sum(found[f"m{i}"] == row for i, row in enumerate(expected))


def composed_by_values(n_layers: int, n: int) -> int:
    """In how many models the pairs that compose are the reader's by K and by V."""
    circuits = [circuit_of(seed, n_layers, 1) for seed in range(n)]
    query = (
        "SELECT model_id, kind, head_label(writer_layer, writer_head), head_label(reader_layer, reader_head)"
        " FROM last_compositions WHERE significant"
    )
    found: dict[str, set[tuple[str, ...]]] = {}
    for name, *pair in rows_about(_planted(_through_values, circuits), STAGES, query):
        found.setdefault(name, set()).add(tuple(pair))
    return sum(
        found.get(f"m{i}", set()) == {("K", str(writers[0]), str(reader)), ("V", str(others[0]), str(reader))}
        for i, (_, reader, writers, others) in enumerate(circuits)
    )


def carried_by(n_layers: int, n: int) -> int:
    """In how many models the head is named, and no other, whose output the reader copies."""
    circuits = [circuit_of(seed, n_layers, 1) for seed in range(n)]
    query = "SELECT model_id, reader, writers, carriers, is_carried FROM induction_circuits WHERE is_strongest"
    found = {name: row for name, *row in rows_about(_planted(_through_values, circuits), STAGES, query)}
    return sum(
        found[f"m{i}"] == [str(reader), [str(writers[0])], [str(others[0])], True]
        for i, (_, reader, writers, others) in enumerate(circuits)
    )


def virtually(n_layers: int, n: int) -> int:
    """In how many models two heads in a row are named that do induction as one, and no head is by itself."""
    circuits = [circuit_of(seed, n_layers, 1) for seed in range(n)]
    query = (
        "SELECT model_id, list(virtual_head), any_value(reader_role) IN ('induction', 'anti-induction')"
        " FROM virtual_induction JOIN induction_circuits USING (model_id) GROUP BY model_id"
    )
    found = {name: row for name, *row in rows_about(_planted(_by_a_virtual_head, circuits), STAGES, query)}
    return sum(
        found.get(f"m{i}") == [[f"{others[0]} and {reader}"], False]
        for i, (_, reader, _, others) in enumerate(circuits)
    )


def places_that_score(n_ctx: int, n: int) -> int:
    """How many heads that look at one offset or one position get over 0.02 for attention to content, by any score."""
    model = only_places(vocabulary(), n_ctx)
    query = (
        "SELECT count(*) FROM last_heads"
        " WHERE greatest(induction_random_period, induction_natural, duplicate_token) > 0.02"
    )
    ((found,),) = rows_about([Trained(None, model)], {"behaviour": BehaviourConfig(**ON_PLACES)}, query)
    return min(n, found)


def with_virtual_head(models: Callable[[int], Iterator[Trained]], n: int) -> int:
    """How many models have two heads in a row that do induction as one."""
    return sum(found.has_virtual_head for found in _found_in(models, n))


def with_carrier(models: Callable[[int], Iterator[Trained]], n: int) -> int:
    """How many models have a head that copies what another one wrote."""
    return sum(found.has_carrier for found in _found_in(models, n))


def random_models(scale: float, n: int) -> Iterator[Trained]:
    """Models of 2 and 3 layers with random weights, which have nothing to do with those that they began with."""
    for i in range(n):
        initial = initial_like(by_keys(0, circuit_of(i, 2 + i % 2, 1)), 2 * i)
        model = initial_like(initial, 2 * i + 1)
        for parameter in model.parameters():
            parameter.mul_(scale)
        yield Trained(initial, model)


def shuffled_models(n: int) -> Iterator[Trained]:
    """Models of 2 and 3 layers with a circuit of two writers whose weights are dealt out anew among all heads."""
    for i in range(n):
        model = rotated(shuffled(by_keys(i, circuit_of(i, 2 + i % 2, 2)), i), i)
        yield Trained(initial_like(model, i), model)


class Found(NamedTuple):
    """What is said of a model: roles of its heads, and whether there is a circuit, a carrier, a virtual head."""

    roles: list[str]
    has_circuit: bool
    has_carrier: bool
    has_virtual_head: bool


@cache
def _found_in(models: Callable[[int], Iterator[Trained]], n: int) -> list[Found]:
    """What is found in each model, which is measured once for all trials."""
    query = """
        SELECT
            list(DISTINCT role),
            model_id IN (SELECT model_id FROM induction_circuits WHERE found),
            model_id IN (SELECT model_id FROM joint_checks WHERE kind = 'V' AND len(writers) > 0),
            model_id IN (SELECT model_id FROM virtual_induction)
        FROM head_summary
        GROUP BY model_id
    """
    return [Found(*row) for row in rows_about(models(n), STAGES, query)]


def with_role(models: Callable[[int], Iterator[Trained]], roles: Sequence[str], n: int) -> int:
    """How many models have a head with one of these roles."""
    return sum(not {*roles}.isdisjoint(found.roles) for found in _found_in(models, n))


def with_circuit(models: Callable[[int], Iterator[Trained]], n: int) -> int:
    """How many models have an induction circuit."""
    return sum(found.has_circuit for found in _found_in(models, n))


ROLES = ("induction", "anti-induction", "previous token", "duplicate token", "positional", "BOS")
# A role that a head has by chance, but in truth, is not false: a sharp random pattern can be on BOS, and a head with
# the position biases of another looks where that one did.
SHARP_ROLES, SHUFFLED_ROLES = ROLES[:-1], ROLES[:2]
NULLS: dict[str, tuple[Callable[[int], Iterator[Trained]], Sequence[str]]] = {
    "random weights": (partial(random_models, 1.0), ROLES),
    "random weights, 3 times as large: sharp patterns": (partial(random_models, 3.0), SHARP_ROLES),
    "planted circuits, their matrices dealt out anew among all heads": (shuffled_models, SHUFFLED_ROLES),
}
PLANTED: list[tuple[str, Callable[[int, Circuit], Transformer], str, str, Sequence[tuple[int, int]]]] = [
    ("by keys", by_keys, "induction", "K", [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2)]),
    ("by keys, with a sharper previous-token head that nobody reads", with_a_decoy, "induction", "K", [(2, 1), (3, 1)]),
    ("by queries (pointers)", by_queries, "induction", "Q", [(2, 1), (3, 2)]),
    (
        "by queries, with a previous-token head that weighs four times as much in its keys, for queries never asked",
        _with_a_heavy_decoy,
        "induction",
        "Q",
        [(2, 1), (3, 1)],
    ),
    ("by keys, that lowers what follows", _anti_induction, "anti-induction", "K", [(2, 1), (3, 2)]),
]

TRIALS = [
    *(
        Trial("false positives", f"role: {', '.join(roles)}", on, partial(with_role, models, roles), 100, 1)
        for on, (models, roles) in NULLS.items()
    ),
    *(
        Trial("false positives", "induction circuit found", on, partial(with_circuit, models), 100, 1)
        for on, (models, _) in NULLS.items()
    ),
    *(
        Trial("false positives", what, on, partial(count, models), 100, 1)
        for what, count in (("carrier of a copy", with_carrier), ("virtual induction head", with_virtual_head))
        for on, (models, _) in NULLS.items()
    ),
    *(
        Trial(
            "false positives",
            "induction or duplicate token by content, over 0.02",
            f"one head for each offset and each position, n_ctx {n_ctx}",
            partial(places_that_score, n_ctx),
            2 * n_ctx,
            2 * n_ctx,
        )
        for n_ctx in (8, 16, 32, 64)
    ),
    *(
        Trial(
            "power",
            f"{role} circuit, its reader and all its writers",
            f"{n_layers} layers, {n_writers} writer{'s' * (n_writers > 1)} read {how}",
            partial(named, plant, role, kind, n_layers, n_writers),
            40,
            1,
        )
        for how, plant, role, kind, sizes_of in PLANTED
        for n_layers, n_writers in sizes_of
    ),
    *(
        Trial(
            "power",
            "composed pairs, the two there are and no other",
            f"{n_layers} layers, induction through values that another head wrote",
            partial(composed_by_values, n_layers),
            40,
            1,
        )
        for n_layers in (2, 3)
    ),
    *(
        Trial("power", what, f"{n_layers} layers, {how}", partial(count, n_layers), 40, 1)
        for what, how, count in (
            ("carrier of a copy, the one there is", "induction through values that another head wrote", carried_by),
            ("virtual induction head, the one there is", "a reader that looks two past the earlier copy", virtually),
        )
        for n_layers in (2, 3)
    ),
]
