"""Training with sparse attention and with gates: the same bytes however often it stops, and gates that do as told."""

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from pydantic import ValidationError
from test_training import PLAIN, SHORT, SMALL, train, weights
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import evaluation_text
from headstream.tasks.training.checkpoints import checkpoint_steps, load_model
from headstream.tasks.training.loop import TrainingRun, gate_penalty, next_token_loss
from headstream.tasks.training.numerics import Numerics
from headstream.tasks.training.parameter_groups import build_optimizers

LOCAL = {"attention": "local", "attention_window": 5}
STRIDED = {"attention": "strided", "attention_window": 3, "stride": 4}
TOP = {"attention": "top_k", "top_k": 3}


def variant(**fields):
    return Architecture(**{**SMALL.model_dump(), **fields})


def steps(n, **fields):
    return SHORT.model_copy(update={"tokens": 16 * 8 * n, **fields})


def share_open(folder):
    """On validation text, of each layer's heads."""
    model, tokens = load_model(folder, checkpoint_steps(folder)[-1]), Tokens.open(tiny_tokens())
    trace = model.trace(evaluation_text(tokens, SMALL.n_ctx, 32).sequences[:, :-1])
    return torch.stack([layer.gates.mean((0, 2)) for layer in trace.layers])


@pytest.mark.parametrize(
    "fields",
    [
        {**STRIDED, "positions": "rotary", "normalization": "layernorm"},
        {**TOP, "gates": "hard_concrete", "n_heads": (0, 2), "d_head": 8},
        {**LOCAL, "gates": "dynamic", "normalization": "rmsnorm", "feed_forward": "relu"},
    ],
)
def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path, fields):
    architecture, config = variant(**fields), steps(30, learning_rate=3e-3)
    train(tmp_path / "whole", architecture, config)

    def stop_at_20(progress):
        if progress.step == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "halves", architecture, config, on_progress=stop_at_20, save_every_seconds=0)
    facts = train(tmp_path / "halves", architecture, config)
    assert weights(tmp_path / "halves") == weights(tmp_path / "whole")
    assert facts["final_train_loss_nats"] < math.log(270)


def test_noise_is_drawn_anew_for_each_step_and_seed():
    """One model, one batch: what differs is the noise."""
    run = TrainingRun(variant(gates="hard_concrete"), SHORT, PLAIN, Tokens.open(tiny_tokens()), Path())
    drawn = []
    for seed, step in ((0, 5), (0, 6), (1, 5), (0, 5)):
        run.config, run.step = SHORT.model_copy(update={"seed": seed}), step
        drawn.append(run._gate_noise())
    assert torch.equal(drawn[0], drawn[3])
    assert len({noise[0, 0].item() for noise in drawn}) == 3
    assert drawn[0].shape == (8, 4)


@pytest.mark.parametrize(("penalty", "least", "most"), [(0.0, 4, 4), (2.0, 0, 1)])
def test_static_gates_close_if_open_ones_cost_more_than_they_bring(tmp_path, penalty, least, most):
    train(tmp_path, variant(gates="hard_concrete"), steps(60, gate_penalty=penalty, gate_rate=50.0))
    assert least <= int((share_open(tmp_path) > 0).sum()) <= most


@pytest.mark.parametrize("target", [0.25, 0.75])
def test_dynamic_gates_open_for_the_share_of_heads_that_is_asked_for(tmp_path, target):
    config = steps(80, gate_penalty=0.5, active_fraction=target)
    train(tmp_path, variant(gates="dynamic", n_heads=4, d_head=6), config)
    assert share_open(tmp_path).mean().item() == pytest.approx(target, abs=0.1)


def test_a_share_of_no_heads_is_refused():
    with pytest.raises(ValidationError, match=r"active_fraction\n.*greater than 0"):
        TrainingConfig(active_fraction=0)


def test_penalties_on_paper():
    tokens, config = torch.zeros(3, 7, dtype=torch.int64), TrainingConfig(gate_penalty=0.1, active_fraction=0.5)
    for gates, expected in (("none", None), ("hard_concrete", 0.1 * 4 * 0.9613), ("dynamic", 0.1 * (4 * 0.5) ** 2)):
        model = Transformer(variant(gates=gates), 11).initialize(torch.Generator().manual_seed(0))
        seen = []
        next_token_loss(model, tokens, "float32", None, seen)
        penalty = gate_penalty(model, seen, config)
        assert penalty is expected is None or penalty.item() == pytest.approx(expected, rel=1e-3)
    assert gate_penalty(Transformer(variant(n_layers=0, gates="dynamic"), 11), [], config) is None


@pytest.mark.parametrize("gates", ["hard_concrete", "dynamic"])
def test_gates_learn_by_adamw_without_decay(gates):
    model = Transformer(variant(gates=gates), 11)
    own = {id(p) for name, p in model.named_parameters() if ".gates." in name}
    groups = [g for optimizer in build_optimizers(model, SHORT, "float32") for g in optimizer.param_groups]
    with_gates = [g for g in groups if own & {id(p) for p in g["params"]}]
    assert [{id(p) for p in g["params"]} for g in with_gates] == [own]
    assert with_gates[0]["weight_decay"] == 0
    assert with_gates[0]["lr"] == SHORT.learning_rate * SHORT.gate_rate


@pytest.mark.parametrize("fields", [{**STRIDED, "gates": "dynamic"}, {**TOP, "gates": "hard_concrete"}])
def test_bfloat16_agrees_with_float32(tmp_path, fields):
    losses = [
        train(tmp_path / precision, variant(**fields), steps(20), Numerics("cpu", precision, 1, compiled=False))
        for precision in ("bfloat16", "float32")
    ]
    assert losses[0]["final_train_loss_nats"] == pytest.approx(losses[1]["final_train_loss_nats"], abs=0.05)


@pytest.mark.parametrize(
    ("fields", "recorded"),
    [
        ({}, ("full", None, None, None, "none")),
        ({"attention": "local"}, ("local", 16, 1, None, "none")),
        ({**STRIDED, "gates": "dynamic"}, ("strided", 3, 4, None, "dynamic")),
        (TOP, ("top_k", None, None, 3, "none")),
    ],
)
def test_what_is_recorded_of_a_model(tmp_path, fields, recorded):
    train(tmp_path, variant(**fields), steps(1))
    row = pq.read_table(tmp_path / "models.parquet").to_pylist()[0]
    assert tuple(row[name] for name in ("attention", "attention_window", "stride", "top_k", "gates")) == recorded
    assert row["gate_penalty"] == SHORT.gate_penalty
