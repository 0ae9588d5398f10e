"""Planted circuits are found by patching, edge by edge, and nothing beside them."""

import pytest
import torch
from planted import induction_model
from scipy.stats import rankdata

from headstream.models.nodes import Head
from headstream.models.prompts.certainty import agreement, halves, surely_in
from headstream.models.prompts.circuits import (
    FRACTIONS,
    area,
    faithfulness,
    judge,
    mean_jaccard,
    n_edges_at,
    random_circuit,
    resampled_circuits,
    strongest,
)
from headstream.models.prompts.edge_scores import edge_scores
from headstream.models.prompts.exact_effects import exact_edge_effects, exact_node_effects
from headstream.models.prompts.head_looks import LOOKED_AT, head_looks
from headstream.models.prompts.pairs import Pairs, answer_rows
from headstream.models.prompts.patched_runs import base_run

N, PERIOD = 24, 9


def repeats(model, seed=0):
    """Random tokens twice over; corrupt, the earlier copy of the last one is another."""
    generator = torch.Generator().manual_seed(seed)
    once = torch.stack([torch.randperm(model.d_vocab, generator=generator)[: PERIOD + 1] for _ in range(N)])
    again = 5
    clean = torch.cat([once[:, :PERIOD], once[:, : again + 1]], 1)
    corrupt = clean.clone()
    corrupt[:, again] = once[:, PERIOD]
    return Pairs(clean, corrupt, answer_rows(once[:, again + 1, None].tolist()), answer_rows(once[:, 2, None].tolist()))


def measured(model):
    pairs = repeats(model)
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    exact = exact_edge_effects(clean, corrupt, pairs, range(clean.graph.n_edges))
    return pairs, clean, corrupt, exact, edge_scores(model, pairs)


def auroc(scores, is_true):
    """The chance that a true edge has a larger score than another; from ranks."""
    ranks, n_true = torch.from_numpy(rankdata(scores.abs().numpy())), int(is_true.sum())
    return (ranks[is_true].sum().item() - n_true * (n_true + 1) / 2) / (n_true * (len(is_true) - n_true))


TRUE = {"embedding > L0H0 V", "L0H0 > L1H1 K", "L1H1 > logits in"}


@pytest.fixture(scope="module")
def planted():
    model = induction_model().double()
    found = measured(model)
    labels = [f"{edge.writer} > {edge.reader} {edge.port}" for edge in found[1].graph.edges]
    assert set(labels) >= TRUE
    return model, found, torch.tensor([label in TRUE for label in labels])


def test_true_edges_come_first(planted):
    _, (_, _, _, exact, scores), is_true = planted
    assert auroc(exact.mean(1), is_true) >= 0.95
    assert auroc(scores.mean(1), is_true) >= 0.90


def test_its_heads_are_the_nodes_that_matter_both_ways(planted):
    _, (pairs, clean, corrupt, *_), _ = planted
    whole = (pairs.log_odds(clean.logits) - pairs.log_odds(corrupt.logits)).mean()
    assert whole > 1
    for effects in exact_node_effects(clean, corrupt, pairs):
        share = {str(node): (own.mean() / whole).item() for node, own in zip(clean.graph.writers, effects, strict=True)}
        assert min(share["L0H0"], share["L1H1"]) > 0.9
        assert max(abs(share["L0H1"]), abs(share["L1H0"])) < 0.01


def test_the_circuit_alone_does_what_the_model_does(planted):
    model, (pairs, clean, corrupt, _, scores), _ = planted
    graph, mean = clean.graph, scores.mean(1).abs()
    circuits = [strongest(mean, n_edges_at(fraction, graph), graph) for fraction in FRACTIONS]
    odds = judge(model, pairs, circuits)
    faithful = faithfulness(odds.log_odds, pairs.log_odds(clean.logits), pairs.log_odds(corrupt.logits))
    assert faithful[-1].item() == pytest.approx(1)
    assert odds.kl[-1].abs().max() < 1e-9
    assert area((1 - faithful).abs(), FRACTIONS) < 0.1
    generator = torch.Generator().manual_seed(0)
    at_random = judge(model, pairs, [random_circuit(n_edges_at(f, graph), graph, generator) for f in FRACTIONS])
    of_random = faithfulness(at_random.log_odds, pairs.log_odds(clean.logits), pairs.log_odds(corrupt.logits))
    assert area((1 - of_random).abs(), FRACTIONS) > 0.4


def test_sure_edges_are_true_and_none_is_where_answers_are_exchanged(planted):
    _, (pairs, clean, corrupt, exact, scores), is_true = planted
    whole = pairs.log_odds(clean.logits) - pairs.log_odds(corrupt.logits)
    sure = surely_in(exact, whole, torch.arange(N))
    assert sure[is_true].all()
    assert not (sure & (exact.mean(1).abs() < 0.01 * whole.mean())).any()
    sign = torch.tensor([1.0, -1.0]).repeat(N // 2)
    swapped = pairs.swapped(torch.arange(1, N, 2))
    torch.testing.assert_close(swapped.log_odds(clean.logits), sign * pairs.log_odds(clean.logits))
    assert not surely_in(exact * sign, whole * sign, torch.arange(N)).any()
    again = resampled_circuits(scores, torch.arange(N), 3, 20, torch.Generator().manual_seed(0))
    assert (again.sum(1) == 3).all()
    assert mean_jaccard(again) > 0.5


def test_a_circuit_is_found_on_one_half_and_judged_on_the_other():
    found, judged = halves(torch.tensor([0, 0, 1, 2, 3, 3]))
    assert (found.tolist(), judged.tolist()) == ([0, 1, 3], [2, 4, 5])


def test_agreement_is_that_of_the_numbers():
    exact = torch.tensor([1.0, -2.0, 3.0, 0.5])
    told = agreement(2 * exact, exact)
    assert told == pytest.approx((1, 1, 1, 2))
    assert agreement(exact[:2], exact[:2])[0] != agreement(exact[:2], exact[:2])[0]


def test_heads_of_the_circuit_look_where_they_were_planted_to(planted):
    model, (pairs, clean, *_), _ = planted
    looks = head_looks(model, pairs)
    places = {str(node): i for i, node in enumerate(node for node in clean.graph.writers if isinstance(node, Head))}
    for head, seen in {
        "L1H1": ("the last token", "the answer"),
        "L0H0": ("the answer", "the token that differs"),
    }.items():
        own = places[head]
        found = {(LOOKED_AT[a], LOOKED_AT[b]) for a, b in zip(looks.query[own], looks.key[own], strict=True)}
        assert found == {seen}
        assert looks.attention[own].min() > 0.9
    # Without norms the log-odds are a sum of what each writer adds.
    difference = model.W_U[:, pairs.answers[:, 0]] - model.W_U[:, pairs.wrong[:, 0]]
    written = clean.written[1:, :, -1]
    torch.testing.assert_close(looks.direct, torch.einsum("hbd,db->hb", written, difference))
