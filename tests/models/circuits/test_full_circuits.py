"""Full circuits in factors against the matrices themselves, and against what the model does."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from random_models import D_HEAD, D_VOCAB, N_CTX, random_model

from headstream.models.circuits import full_circuits
from headstream.models.circuits.full_circuits import full_ov, full_qk, position_spread, score_spread, token_moments
from headstream.models.circuits.head_weights import circuit_weights

EVERY = torch.arange(D_VOCAB)
EXACT = {"atol": 1e-10, "rtol": 0}


@pytest.fixture(params=[3 * D_VOCAB, 2**20], ids=["chunked", "whole"])
def chunk(request, monkeypatch):
    monkeypatch.setattr(full_circuits, "_CHUNK_NUMBERS", request.param)


def whole(circuit):
    return circuit.left @ circuit.right


def test_factors_multiply_to_the_definitions(chunk):
    model = random_model()
    weights, attention = circuit_weights(model), model.layers[1].attention
    qk = model.W_E @ attention.W_Q[2] @ attention.W_K[2].T @ model.W_E.T / D_HEAD**0.5
    ov = model.W_E @ attention.W_V[2] @ attention.W_O[2] @ model.W_U
    for circuit, expected in ((full_qk(weights, 1, 2), qk), (full_ov(weights, 1, 2), ov)):
        torch.testing.assert_close(circuit.rows(EVERY), expected, **EXACT)
        torch.testing.assert_close(torch.cat([rows for _, rows in circuit.chunks()]), expected, **EXACT)
        assert torch.cat([index for index, _ in circuit.chunks()]).tolist() == EVERY.tolist()
        mean = expected.mean(1, keepdim=True)
        torch.testing.assert_close(whole(circuit.less(circuit.right.mean(1))), expected - mean, **EXACT)
    some, others = torch.tensor([5, 2, 30]), torch.tensor([7, 1])
    torch.testing.assert_close(whole(full_qk(weights, 1, 2, some)), qk[some][:, some], **EXACT)
    torch.testing.assert_close(whole(full_ov(weights, 1, 2, some, others)), ov[some][:, others], **EXACT)


@pytest.mark.parametrize("options", [{}, {"biases": True}, {"positions": "none"}, {"feed_forward": "gelu"}])
def test_tokens_and_positions_make_the_pattern_of_the_first_layer(options):
    model = random_model(**options)
    weights, attention = circuit_weights(model), model.layers[0].attention
    tokens = torch.randint(D_VOCAB, (3, N_CTX), generator=torch.Generator().manual_seed(1))
    layer = model.trace(tokens).layers[0]
    for head in range(3):
        scores = whole(full_qk(weights, 0, head))[tokens[:, :, None], tokens[:, None, :]]
        pattern = (scores + attention.position_scores(N_CTX).expand(3, -1, -1)[head]).softmax(-1)
        torch.testing.assert_close(pattern, layer.pattern[:, head], **EXACT)


def test_tokens_attended_to_make_the_heads_logits():
    model = random_model()
    weights = circuit_weights(model)
    tokens = torch.randint(D_VOCAB, (3, N_CTX), generator=torch.Generator().manual_seed(1))
    layer = model.trace(tokens).layers[0]
    for head in range(3):
        by_source = full_ov(weights, 0, head).rows(tokens.flatten()).unflatten(0, tokens.shape)
        logits = layer.pattern[:, head] @ by_source
        torch.testing.assert_close(logits, layer.head_outputs[:, head] @ model.W_U, **EXACT)


@pytest.mark.parametrize("options", [{}, {"biases": True}])
def test_spread_of_scores_equals_a_loop(monkeypatch, options):
    monkeypatch.setattr(full_circuits, "MOMENT_TOKENS", 7)
    weights = circuit_weights(random_model(**options))
    weight = torch.rand(D_VOCAB, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    weight /= weight.sum()
    variances = []
    for row in whole(full_qk(weights, 0, 1)):
        mean = sum(w * x for w, x in zip(weight, row, strict=True))
        variances.append(sum(w * (x - mean) ** 2 for w, x in zip(weight, row, strict=True)))
    expected = sum(w * v for w, v in zip(weight, variances, strict=True)).sqrt()
    found = score_spread(weights.layers[0], token_moments(weights.W_E, weight))
    torch.testing.assert_close(found[1], expected)


def test_spread_of_positions_equals_a_loop():
    bias = torch.randn(3, N_CTX, dtype=torch.float64)
    seen = [bias[:, : query + 1].var(1, unbiased=False) for query in range(N_CTX)]
    torch.testing.assert_close(position_spread(bias, range(bias.shape[1])), torch.stack(seen).mean(0).sqrt())
    assert position_spread(torch.ones(1, 5), range(5)).item() == 0


LARGE = """
from pathlib import Path
import torch
from headstream.models.architecture import Architecture
from headstream.models.circuits.copying import diagonal_ranks
from headstream.models.circuits.eigenvalues import copying_eigenvalues, matching_eigenvalues
from headstream.models.circuits.full_circuits import full_ov, score_spread, token_moments
from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.circuits.skip_trigram_counts import SkipTrigramCounts
from headstream.models.circuits.skip_trigrams import skip_trigrams
from headstream.models.transformer import Transformer

torch.set_num_threads(1)
d_vocab = 50_000
model = Transformer(Architecture(n_layers=1, n_heads=4, d_model=256, d_head=8), d_vocab)
weights = circuit_weights(model.initialize(torch.Generator().manual_seed(0)))
copying_eigenvalues(weights), matching_eigenvalues(weights)
every = torch.arange(d_vocab)
text = every[:1024].repeat(4).view(-1, 128)
diagonal_ranks(full_ov(weights, 0, 0, every[:2048]), every[:2048])
score_spread(weights.layers[0], token_moments(weights.W_E, torch.full((d_vocab,), 1 / d_vocab)))
skip_trigrams(weights, 0, 0, SkipTrigramCounts(text, d_vocab, 0), 20, 1)
# ru_maxrss would begin at what the process that started this one had.
(peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(int(peak.split()[1]) * 1024)
"""


@pytest.mark.process
def test_a_vocabulary_of_50_000_fits_in_2_gigabytes():
    root = Path(__file__).resolve().parents[3]
    run = subprocess.run([sys.executable, "-c", LARGE], cwd=root, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 2 * 10**9
