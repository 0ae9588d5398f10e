"""Circuits of behaviours: planted edges are told from all others; none is sure where there is no behaviour."""

from functools import partial

import torch
from scipy.stats import rankdata
from torch import Tensor

from calibration.circuits import Circuit, by_keys, by_queries, circuit_of, with_a_decoy
from calibration.trials import Trial
from headstream.models.architecture import Architecture
from headstream.models.prompts.certainty import surely_in
from headstream.models.prompts.edge_scores import edge_scores
from headstream.models.prompts.exact_effects import exact_edge_effects
from headstream.models.prompts.pairs import Pairs, answer_rows
from headstream.models.prompts.patched_runs import base_run
from headstream.models.transformer import Transformer
from tests.planted import BOS, initial_like

N_PAIRS, PERIOD = 24, 9
EXACT_AUROC, SCORES_AUROC = 0.95, 0.90  # the medians of InterpBench's best (Gupta et al. 2024)


def repeats(model: Transformer, seed: int) -> Pairs:
    """Random tokens twice over; at the corrupt prompt, the earlier copy of the last one is another token."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(model.d_vocab - 1, generator=generator)[: PERIOD + 1] + 1 for _ in range(N_PAIRS)]
    once, bos = torch.stack(drawn), torch.full((N_PAIRS, 1), BOS)
    again, other = 5, 2
    clean = torch.cat([bos, once[:, :PERIOD], once[:, : again + 1]], 1)
    corrupt = clean.clone()
    corrupt[:, 1 + again] = once[:, PERIOD]
    answers, wrong = (answer_rows(once[:, place, None].tolist()) for place in (again + 1, other))
    return Pairs(clean, corrupt, answers, wrong)


def told_apart(plant: str, exact: bool, n: int) -> int:
    """In how many planted models the edges of the circuit have larger effects than others, as often as they should."""
    return sum(_auroc(plant, exact, seed) >= (EXACT_AUROC if exact else SCORES_AUROC) for seed in range(n))


def _auroc(plant: str, exact: bool, seed: int) -> float:
    circuit = circuit_of(seed, 2, 2 if plant == "two writers" else 1)
    build = {"queries": by_queries, "decoy": with_a_decoy}.get(plant, by_keys)
    model = build(seed, circuit)
    pairs = repeats(model, seed)
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    every = range(clean.graph.n_edges)
    effects = exact_edge_effects(clean, corrupt, pairs, every) if exact else edge_scores(model, pairs)
    true = _true_edges(circuit, plant)
    is_true = torch.tensor([(str(e.writer), str(e.reader), e.port) in true for e in clean.graph.edges])
    ranks, n_true = torch.from_numpy(rankdata(effects.mean(1).abs().numpy())), int(is_true.sum())
    return (ranks[is_true].sum().item() - n_true * (n_true + 1) / 2) / (n_true * (len(every) - n_true))


def _true_edges(circuit: Circuit, plant: str) -> set[tuple[str, str, str]]:
    """What the prompts change goes from the embedding through the writers to the reader and from there to the logits.

    A pointer's writers find the earlier copy by their keys; others move it by their values.
    """
    reader, enters, leaves = str(circuit.reader), ("K", "Q") if plant == "queries" else ("V", "K"), "logits"
    edges = {(reader, leaves, "in")}
    for writer in map(str, circuit.writers):
        edges |= {("embedding", writer, enters[0]), (writer, reader, enters[1])}
    return edges


def sure_before_training(n: int) -> int:
    """In how many untrained models any edge is surely in."""
    return sum(bool(_sure(_untrained(seed), seed, swapped=False).any()) for seed in range(n))


def sure_of_exchanged_answers(n: int) -> int:
    """In how many planted models any edge is surely in if, in half of the pairs, right and wrong are exchanged."""
    return sum(bool(_sure(by_keys(seed, circuit_of(seed, 2, 1)), seed, swapped=True).any()) for seed in range(n))


def _untrained(seed: int) -> Transformer:
    like = Transformer(Architecture(n_layers=2, n_heads=4, d_model=32, n_ctx=32), 61)
    return initial_like(like, seed)


def _sure(model: Transformer, seed: int, *, swapped: bool) -> Tensor:
    pairs = repeats(model, seed)
    if swapped:
        pairs = pairs.swapped(torch.randperm(N_PAIRS, generator=torch.Generator().manual_seed(seed))[: N_PAIRS // 2])
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    exact = exact_edge_effects(clean, corrupt, pairs, range(clean.graph.n_edges)).double()
    whole = (pairs.log_odds(clean.logits) - pairs.log_odds(corrupt.logits)).double()
    return surely_in(exact, whole, torch.arange(N_PAIRS))


PLANTED = {
    "keys": "induction by K-composition",
    "queries": "induction by Q-composition",
    "two writers": "induction by K-composition with two writers, each enough",
    "decoy": "induction by K-composition beside a sharper head that nobody reads",
}

TRIALS = [
    Trial(
        "false positives",
        "edge surely in, any in a model",
        "2 layers of 4 heads before training",
        sure_before_training,
        200,
        2,
    ),
    Trial(
        "false positives",
        "edge surely in, any in a model",
        "induction by K-composition, right and wrong answers exchanged in half of the pairs",
        sure_of_exchanged_answers,
        200,
        2,
    ),
    *(
        Trial(
            "power",
            f"edges told from all others by {how}, AUROC {bar}",
            f"{tried_on}, 24 pairs of repeats",
            partial(told_apart, plant, exact),
            40,
            2,
        )
        for plant, tried_on in PLANTED.items()
        for exact, how, bar in ((True, "exact effects", EXACT_AUROC), (False, "EAP-IG", SCORES_AUROC))
        if not (exact and plant == "two writers")  # where one is enough, losing the other alone costs nothing
    ),
]
