"""Copying by the diagonal of the full OV circuit and by what heads raise, against loops and on planted heads."""

import math

import pytest
import torch
from planted import BOS, attention_of, copying_model
from random_models import D_VOCAB, N_CTX, random_model

from headstream.models import batching
from headstream.models.circuits import full_circuits
from headstream.models.circuits.copying import copying_evaluator, diagonal_accuracy, diagonal_ranks, random_sequences
from headstream.models.circuits.full_circuits import FullCircuit, full_ov
from headstream.models.circuits.head_weights import circuit_weights

COUNTS = torch.arange(D_VOCAB)


def draw(n_sequences=5, counts=COUNTS, n_ctx=N_CTX):
    return random_sequences(counts, BOS, n_ctx, n_sequences, torch.Generator().manual_seed(0))


def test_ranks_equal_a_loop(monkeypatch):
    monkeypatch.setattr(full_circuits, "_CHUNK_NUMBERS", 3 * D_VOCAB)
    weights, tokens = circuit_weights(random_model()), torch.arange(2, 30)
    circuit = full_ov(weights, 0, 1)
    matrix = (circuit.left @ circuit.right).tolist()
    expected = [sum(x > matrix[t][t] for x in matrix[t]) for t in tokens.tolist()]
    assert diagonal_ranks(full_ov(weights, 0, 1, tokens), tokens).tolist() == expected


def test_accuracies_on_paper():
    """Token 0 copies itself, token 1 comes second, token 2 ties with all others."""
    circuit = FullCircuit(torch.eye(3), torch.tensor([[5.0, 1, 1], [2, 1, 0], [0, 0, 0]]))
    ranks = diagonal_ranks(circuit, torch.arange(3))
    assert ranks.tolist() == [0, 1, 2]
    assert diagonal_accuracy(ranks, 1, None).item() == pytest.approx(1 / 3)
    assert diagonal_accuracy(ranks, 2, None).item() == pytest.approx(2 / 3)
    assert diagonal_accuracy(ranks, 1, torch.tensor([8, 1, 1])).item() == pytest.approx(0.8)


def test_planted_copying_is_found_and_only_that():
    model = copying_model()
    weights = circuit_weights(model)
    content = torch.arange(1, 97)
    ranks = [diagonal_ranks(full_ov(weights, 0, head, content), content) for head in range(3)]
    assert [[diagonal_accuracy(r, n, None).item() for r in ranks] for n in (1, 5)] == [[1, 0, 0], [1, 0, 0]]
    (scores,) = copying_evaluator(model, weights, draw(counts=torch.arange(97), n_ctx=128))
    torch.testing.assert_close(scores, torch.tensor([1, -1, torch.nan]).double(), equal_nan=True)
    attention_of(model, 0).W_O[0] = 0
    assert copying_evaluator(model, circuit_weights(model), draw(counts=torch.arange(97), n_ctx=128))[0][0].isnan()


@pytest.mark.parametrize("normalization", ["none", "layernorm"])
def test_the_evaluator_equals_a_loop(normalization, monkeypatch):
    model = random_model(normalization=normalization, n_heads=(3, 0, 2), n_layers=3)
    sequences = draw()
    monkeypatch.setattr(batching, "BATCH_NUMBERS", 2 * N_CTX**2 * 5)
    found = copying_evaluator(model, circuit_weights(model), sequences)
    trace = model.trace(sequences)
    for layer, scores in enumerate(found):
        outputs = trace.layers[layer].head_outputs
        if normalization == "layernorm":  # its scale leaves shares as they are
            outputs = (outputs - outputs.mean(-1, keepdim=True)) * model.final_norm.weight
        logits = outputs @ model.W_U
        for head, score in enumerate(scores):
            shares = []
            for b in range(len(sequences)):
                for query in range(1, sequences.shape[1]):
                    row = logits[b, head, query]
                    raised = (row - row.mean()).clamp(min=0).tolist()
                    seen = sequences[b, 1 : query + 1].tolist()
                    shares.append(sum(raised[t] for t in seen) / sum(raised))
            assert score.item() == pytest.approx(2 * math.fsum(shares) / len(shares) - 1, abs=1e-12)


def test_random_sequences_hold_no_token_twice():
    sequences = draw(50, counts=torch.arange(97), n_ctx=128)
    assert sequences.shape == (50, 26)
    assert (sequences[:, 0] == BOS).all()
    assert (sequences[:, 1:].sort(1).values.diff() > 0).all()
    assert BOS not in sequences[:, 1:]
    assert draw(n_ctx=7).shape[1] == 7
