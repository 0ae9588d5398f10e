"""Ranks, overlaps and what is written back, against whole matrices, and what stays of a head's output."""

import pytest
import torch
from planted import BOS, erasing_model, induction_model
from random_models import D_MODEL, D_VOCAB, N_CTX, random_model

from headstream.models.circuits.composition import head_pairs
from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.circuits.persistence import persistence
from headstream.models.circuits.subspaces import (
    effective_rank,
    numerical_rank,
    ov_singular_values,
    overlaps,
    qk_singular_values,
    reading_overlaps,
    rewriting,
)


def basis(matrix):
    """Orthonormal columns that span the matrix's columns."""
    left, singular_values, _ = torch.linalg.svd(matrix, full_matrices=False)
    return left[:, singular_values > 1e-10 * singular_values[0]]


def naive_overlap(one, other):
    return torch.linalg.svdvals(basis(one).T @ basis(other)).square().mean()


def test_singular_values_are_those_of_the_circuits():
    for options in ({}, {"d_head": 29, "d_value": 31}):
        model = random_model(**options)
        heads = circuit_weights(model).layers[1]
        for found, matrices in (
            (ov_singular_values(heads), heads.W_V @ heads.W_O),
            (qk_singular_values(heads), heads.W_Q @ heads.W_K.mT),
        ):
            torch.testing.assert_close(found, torch.linalg.svdvals(matrices)[:, : found.shape[1]])


def test_ranks_on_paper():
    assert effective_rank(torch.tensor([2.0, 2, 2, 0])).item() == pytest.approx(3)
    assert effective_rank(torch.tensor([5.0, 0, 0])).item() == 1
    assert effective_rank(torch.zeros(3)).isnan()
    # Shares 0.8 and 0.2: exp(0.8 ln 1.25 + 0.2 ln 5)
    assert effective_rank(torch.tensor([2.0, 1])).item() == pytest.approx(1.649385)
    assert numerical_rank(torch.tensor([[1.0, 1e-3, 1e-6], [0, 0, 0]]), 64).tolist() == [2, 0]


def test_a_head_writes_no_more_than_its_width():
    model = random_model()
    heads = circuit_weights(model).layers[0]
    assert numerical_rank(ov_singular_values(heads), D_MODEL).tolist() == [7, 7, 7]
    assert numerical_rank(qk_singular_values(heads), D_MODEL).tolist() == [5, 5, 5]
    wide = circuit_weights(random_model(d_head=29, d_value=31)).layers[0]
    assert numerical_rank(ov_singular_values(wide), D_MODEL).tolist() == [D_MODEL] * 3
    planted = circuit_weights(induction_model(13, 32))
    assert [numerical_rank(ov_singular_values(h), 39).tolist() for h in planted.layers] == [[12, 0], [0, 12]]


@pytest.mark.parametrize("options", [{"n_layers": 3, "n_heads": (2, 3, 1)}, {"d_head": 29, "d_value": 3}])
def test_overlaps_and_rewriting_equal_those_of_whole_matrices(options):
    weights = circuit_weights(random_model(**options))
    found, by_chance = overlaps(weights)
    written_back = rewriting(weights)
    for i, (writer_layer, writer, layer, reader) in enumerate(head_pairs(weights.heads_per_layer).tolist()):
        first, second = weights.layers[writer_layer], weights.layers[layer]
        ov1, ov2 = (heads.W_V[h] @ heads.W_O[h] for heads, h in ((first, writer), (second, reader)))
        qk = second.W_Q[reader] @ second.W_K[reader].T
        for kind, right in enumerate((qk, qk.T, ov2)):
            torch.testing.assert_close(found[i, kind], naive_overlap(ov1.T, right))
            larger = max(basis(ov1).shape[1], basis(right).shape[1])
            assert by_chance[i, kind].item() == pytest.approx(larger / D_MODEL)
        torch.testing.assert_close(written_back[i], (ov1 @ ov2 @ ov1.T).trace() / ov1.norm() ** 2)


def test_overlaps_within_a_head():
    heads = circuit_weights(random_model()).layers[0]
    for head in range(3):
        q, k, v = heads.W_Q[head], heads.W_K[head], heads.W_V[head]
        expected = torch.stack([naive_overlap(q, k), naive_overlap(q, v), naive_overlap(k, v)])
        torch.testing.assert_close(reading_overlaps(heads)[head], expected)


def test_random_spaces_overlap_as_chance_says():
    weights = circuit_weights(random_model(n_heads=40, d_head=3))
    found, by_chance = overlaps(weights)
    assert found.mean(0) == pytest.approx(by_chance.mean(0), rel=0.02)


def test_planted_spaces():
    model = induction_model(13, 32)
    found, _ = overlaps(circuit_weights(model))
    pair = head_pairs((2, 2)).tolist().index([0, 0, 1, 1])
    assert found[pair, 1] > 0.9  # keys read what the previous-token head writes, and a little of `token`
    assert found[pair, [0, 2]].abs().max() == pytest.approx(0, abs=1e-6)
    assert found.isfinite().all(1).nonzero().flatten().tolist() == [pair]


def test_an_eraser_is_found_and_only_that():
    model = erasing_model(13, 32)
    erased = rewriting(circuit_weights(model)).tolist()
    expected = {(0, 0, 1, 0): -1, (0, 0, 1, 1): 1, (0, 1, 1, 0): 0, (0, 1, 1, 1): 0}
    pairs = map(tuple, head_pairs((2, 2)).tolist())
    assert dict(zip(pairs, erased, strict=True)) == pytest.approx(expected, abs=1e-6)

    sequences = torch.randint(1, 13, (3, 32))
    sequences[:, 0] = BOS
    for gone, left in (((), 1), ((0,), 2), ((1,), 0), ((0, 1), 1)):
        broken = erasing_model(13, 32)
        broken.layers[1].attention.W_O[list(gone)] = 0
        assert persistence(broken, sequences, BOS)[0].tolist() == pytest.approx([left, 1], abs=1e-5)


def test_persistence_equals_a_loop():
    model = random_model(n_layers=3, n_heads=(2, 0, 3), feed_forward="relu", biases=True)
    sequences = torch.randint(1, D_VOCAB, (4, N_CTX), generator=torch.Generator().manual_seed(0))
    sequences[:, 0] = BOS
    trace, found = model.trace(sequences), persistence(model, sequences, BOS)
    for layer, kept in enumerate(found):
        for head in range(len(kept)):
            later = own = 0.0
            for b in range(4):
                for position in range(1, N_CTX):
                    write = trace.layers[layer].head_outputs[b, head, position]
                    others = sum(step.attention_out[b, position] for step in trace.layers[layer + 1 :])
                    others = others + sum(step.feed_forward_out[b, position] for step in trace.layers[layer:])
                    later += (write @ others).item()
                    own += (write @ write).item()
            assert kept[head].item() == pytest.approx(1 + later / own, abs=1e-10)


def test_a_silent_head_has_neither():
    model = induction_model(13, 32)
    sequences = torch.ones(2, 32, dtype=torch.int64)
    assert persistence(model, sequences, BOS)[0].isnan().tolist() == [False, True]
    assert rewriting(circuit_weights(model)).isnan().tolist() == [False, False, True, True]


def test_persistence_needs_a_stream_that_adds_up():
    model = random_model(normalization="rmsnorm", normalization_place="post")
    with pytest.raises(ValueError, match="normalization_place must be 'pre'"):
        persistence(model, torch.ones(1, 3, dtype=torch.int64), BOS)


@pytest.mark.parametrize("heads", [(), (3,), (0, 3)])
def test_no_pairs(heads):
    weights = circuit_weights(random_model(n_layers=len(heads), n_heads=heads or 1))
    assert overlaps(weights)[0].shape == overlaps(weights)[1].shape == (0, 3)
    assert rewriting(weights).shape == (0,)
