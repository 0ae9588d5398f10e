"""Identities hold where they apply, say nothing where they don't, and notice when they are broken."""

import pytest
import torch
from random_models import D_VOCAB, random_model

from headstream.models.circuits import identities
from headstream.models.circuits.identities import identity_errors

TOKENS = torch.randint(D_VOCAB, (2, 11), generator=torch.Generator().manual_seed(1))
ALWAYS = {"paths-sum", "heads-independent", "one-head-is-attention"}
SETTINGS = [
    ({"n_layers": 0}, {"paths-sum"}),
    ({"n_layers": 1}, {*ALWAYS, "terms-add", "pattern-bilinear", "source-decides"}),
    ({"n_layers": 1, "feed_forward": "relu"}, {*ALWAYS, "pattern-bilinear", "source-decides"}),
    ({"n_layers": 2, "positions": "none"}, {*ALWAYS, "pattern-bilinear", "source-decides"}),
    ({"n_layers": 2, "positions": "rotary", "d_head": 6}, {*ALWAYS, "source-decides"}),
    ({"n_layers": 2, "positions": "shortformer"}, {*ALWAYS, "source-decides"}),
    ({"n_layers": 2, "positions": "learned"}, ALWAYS),
    ({"n_layers": 2, "normalization": "layernorm"}, ALWAYS),
    ({"n_layers": 2, "qk_normalization": True}, {*ALWAYS, "source-decides"}),
    ({"n_layers": 1, "biases": True}, {*ALWAYS, "terms-add"}),
    ({"n_layers": 2, "n_heads": (0, 2)}, ALWAYS),
    ({"n_layers": 2, "n_heads": 4, "n_key_value_heads": 2}, {*ALWAYS, "pattern-bilinear", "source-decides"}),
    ({"n_layers": 1, "qkv_biases": True}, {*ALWAYS, "terms-add"}),
    ({"n_layers": 2, "positions": "learned_shortformer"}, {*ALWAYS, "source-decides"}),
    (
        {"n_layers": 2, "feed_forward": "swiglu", "parallel_sublayers": True, "normalization": "rmsnorm"}
        | {"norm_epsilon": 0.5, "positions": "rotary", "d_head": 6, "rotary_fraction": 0.7},
        ALWAYS,
    ),
]


@pytest.mark.parametrize(("options", "expected"), SETTINGS)
def test_identities_hold_where_they_apply(options, expected):
    model = random_model(**options)
    errors = identity_errors(model, TOKENS)
    assert set(errors) == expected
    assert max(errors.values()) < 1e-10
    assert max(identity_errors(model.float(), TOKENS).values()) < 1e-5


def test_a_broken_identity_is_noticed(monkeypatch):
    model = random_model(n_layers=1)
    run = identities.freeze_run(model, TOKENS)
    model.W_E[TOKENS[0, 0]] += 0.1
    assert identities.source_decides(model, TOKENS, run.layers[0]) > 1e-3
    assert identities.pattern_bilinear(model, TOKENS, run.layers[0]) > 1e-4
    model.layers[0].attention.W_O[1] += 0.1
    assert identities.paths_sum(run) > 1e-3
    assert identities.terms_add(run) > 1e-3
