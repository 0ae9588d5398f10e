"""Eigenvalues by small matrices against those of the [d_vocab, d_vocab] matrices, and on planted circuits."""

import pytest
import torch
from planted import attention_of, copying_model, induction_model
from random_models import D_HEAD, D_VALUE, random_model

from headstream.models.circuits.composition import head_pairs
from headstream.models.circuits.eigenvalues import (
    composed_matching_eigenvalues,
    copying_eigenvalues,
    eigenvalue_score,
    eigenvalues_of,
    matching_eigenvalues,
)
from headstream.models.circuits.head_weights import circuit_weights


def assert_spectrum(found, matrix):
    """The n largest eigenvalues of the matrix, in any order."""
    expected = torch.linalg.eigvals(matrix)
    expected = expected[expected.abs().argsort(descending=True)][: len(found)]
    distance = (found[:, None] - expected[None]).abs()
    assert distance.min(0).values.max() < 1e-8
    assert distance.min(1).values.max() < 1e-8
    assert (found.abs().diff() <= 1e-9).all()
    torch.testing.assert_close(found.sum().real, matrix.trace(), atol=1e-9, rtol=1e-9)
    expected_score = expected.sum().real / expected.abs().sum()
    torch.testing.assert_close(eigenvalue_score(found), expected_score, atol=1e-9, rtol=0)


@pytest.mark.parametrize("options", [{}, {"d_head": 29, "d_value": 31}, {"tied_embeddings": True}])
def test_spectra_equal_those_of_the_full_circuits(options):
    model = random_model(**options)
    weights = circuit_weights(model)
    for layer in range(2):
        attention = attention_of(model, layer)
        for head in range(3):
            W_Q, W_K, W_V, W_O = (getattr(attention, name)[head] for name in ("W_Q", "W_K", "W_V", "W_O"))
            assert_spectrum(copying_eigenvalues(weights)[layer][head], model.W_E @ W_V @ W_O @ model.W_U)
            assert_spectrum(matching_eigenvalues(weights)[layer][head], model.W_E @ W_Q @ W_K.T @ model.W_E.T)


def test_composed_spectra_equal_those_of_the_full_circuits():
    model = random_model(n_layers=3, n_heads=(2, 3, 1))
    pairs = head_pairs((2, 3, 1))[::2]
    spectra = composed_matching_eigenvalues(circuit_weights(model), pairs)
    assert len(spectra) == len(pairs) == 6
    for found, (writer_layer, writer, layer, reader) in zip(spectra, pairs.tolist(), strict=True):
        first, second = attention_of(model, writer_layer), attention_of(model, layer)
        ov = first.W_V[writer] @ first.W_O[writer]
        qk = second.W_Q[reader] @ second.W_K[reader].T
        assert_spectrum(found, model.W_E @ qk @ ov.T @ model.W_E.T)


def test_copying_and_anti_copying_heads_are_told_apart():
    (scores,) = map(eigenvalue_score, copying_eigenvalues(circuit_weights(copying_model())))
    torch.testing.assert_close(scores, torch.tensor([1.0, -1.0, torch.nan]).double(), equal_nan=True)


def test_induction_matches_through_its_previous_token_head_alone():
    pairs = head_pairs((2, 2))
    scores = eigenvalue_score(composed_matching_eigenvalues(circuit_weights(induction_model()), pairs))
    assert pairs[1].tolist() == [0, 0, 1, 1]
    torch.testing.assert_close(scores, torch.tensor([torch.nan, 1, torch.nan, torch.nan]).double(), equal_nan=True)


def test_a_score_on_paper():
    assert eigenvalue_score(torch.tensor([1 + 1j, 1 - 1j, -2 + 0j])).item() == 0
    assert eigenvalue_score(torch.tensor([3 + 0j, -1 + 0j])).item() == 0.5
    assert eigenvalue_score(torch.zeros(3, dtype=torch.complex64)).isnan()


def test_nothing_where_there_are_no_heads():
    assert copying_eigenvalues(circuit_weights(random_model(n_layers=0))) == []
    assert composed_matching_eigenvalues(circuit_weights(random_model(n_layers=0)), head_pairs(())).shape == (0, 0)
    weights = circuit_weights(random_model(n_heads=(0, 3)))
    assert copying_eigenvalues(weights)[0].shape == (0, D_VALUE)
    assert composed_matching_eigenvalues(weights, head_pairs((0, 3))).shape == (0, D_HEAD)


def test_rotated_permutations_have_their_eigenvalues():
    """Torch's eigvals gives up on some of these."""
    torch.manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(64, 64, dtype=torch.float64)).Q
    permutations = torch.stack([torch.eye(64, dtype=torch.float64)[torch.randperm(64)] for _ in range(300)])
    sizes = eigenvalues_of(rotation @ permutations @ rotation.mT).abs()
    torch.testing.assert_close(sizes, torch.ones_like(sizes), atol=1e-9, rtol=0)
