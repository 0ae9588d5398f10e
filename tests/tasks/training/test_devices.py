"""Training steps where there is no CPU to fall back on: what is made there by accident fails on torch's meta device."""

from pathlib import Path

import pytest
import torch
from test_sparse_and_gated_training import LOCAL, STRIDED, TOP, steps, variant
from tiny import tiny_tokens

from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.numerics import Numerics

META = Numerics("meta", "bfloat16", 1, compiled=False)
FIELDS = (
    {},
    {"gates": "hard_concrete"},
    {"gates": "dynamic"},
    {"positions": "rotary", "normalization": "layernorm", "feed_forward": "gelu", "biases": True},
    {"positions": "learned", "tied_embeddings": True, "qk_normalization": True, "normalization": "rmsnorm"},
    {"positions": "shortformer", "normalization": "layernorm", "normalization_place": "post"},
    LOCAL,
    STRIDED,
    TOP,
)


@pytest.mark.parametrize("fields", FIELDS, ids=str)
@pytest.mark.parametrize("training", [{"optimizer": "muon"}, {"optimizer": "adamw", "prune_to": 0.5}], ids=str)
def test_steps_stay_on_the_device(fields, training, monkeypatch):
    plain = torch.optim.AdamW  # the fused one knows no meta device
    monkeypatch.setattr(torch.optim, "AdamW", lambda *groups, fused, **options: plain(*groups, **options))
    run = TrainingRun(variant(**fields), steps(30, **training), META, Tokens.open(tiny_tokens()), Path())
    for _ in range(2):
        loss, norm = run.take_step()
        assert loss.is_meta
        assert norm.is_meta
    assert all(p.is_meta for p in run.model.parameters())
