"""Which tokens open which gates."""

import pytest
import torch
from random_models import D_VOCAB, N_CTX, random_model

from headstream.models import batching
from headstream.models.heads.gate_activity import gate_activity


@pytest.mark.parametrize("gates", ["dynamic", "hard_concrete"])
def test_activity_equals_a_loop(gates, monkeypatch):
    monkeypatch.setattr(batching, "BATCH_NUMBERS", 1)
    model = random_model(n_layers=3, n_heads=(2, 0, 3), gates=gates)
    text = torch.randint(D_VOCAB, (5, N_CTX + 1), generator=torch.Generator().manual_seed(0))
    classes = torch.arange(D_VOCAB) % 3
    found = gate_activity(model, text, classes)
    traced = model.trace(text[:, :-1]).layers
    for layer, heads in enumerate(found):
        for head, fractions in enumerate(heads):
            for token_class in range(3):
                gates_there = [
                    float(traced[layer].gates[row, head, pos] > 0)
                    for row in range(5)
                    for pos in range(N_CTX)
                    if classes[text[row, pos]] == token_class
                ]
                assert fractions[token_class] == pytest.approx(sum(gates_there) / len(gates_there))


def test_a_class_that_never_comes_has_no_activity():
    model = random_model(n_layers=1, gates="dynamic")
    classes = torch.zeros(D_VOCAB, dtype=torch.long)
    classes[7] = 1
    text = torch.randint(D_VOCAB, (2, N_CTX + 1), generator=torch.Generator().manual_seed(0))
    text[text == 7] = 8
    assert gate_activity(model, text, classes)[0][:, 1].isnan().all()
