"""Settings that come to the same model are told by training both: their logits must agree to the last bit."""

import pytest
import torch
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.tasks.study.effective_settings import effective
from headstream.tasks.study.schema import parse_study
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.numerics import Numerics

SMALL = {"n_layers": 1, "n_heads": 2, "d_model": 16, "n_ctx": 16}
SHORT = {"tokens": 16 * 4 * 6, "batch_size": 4, "warmup_steps": 2}


def model(**fields) -> tuple[Architecture, TrainingConfig]:
    settings = {**SMALL, **SHORT, **fields}
    of = [{k: v for k, v in settings.items() if k in c.model_fields} for c in (Architecture, TrainingConfig)]
    return Architecture(**of[0]), TrainingConfig(**of[1])


@torch.no_grad()
def trained_logits(architecture: Architecture, training: TrainingConfig, folder) -> torch.Tensor:
    tokens = Tokens.open(tiny_tokens())
    run = TrainingRun(architecture, training, Numerics("cpu", "float32", 1, compiled=False), tokens, folder)
    while run.step < run.n_steps:
        with torch.enable_grad():
            run.take_step()
    return run.model(torch.from_numpy(tokens.validation.windows([0, 50, 100], 16)))


SAME = [
    ({"n_layers": 0, "n_heads": 1}, {"n_layers": 0, "n_heads": 4}),
    ({"n_layers": 0}, {"n_layers": 0, "feed_forward": "gelu", "d_mlp": 8, "gates": "dynamic", "positions": "rotary"}),
    ({"n_layers": 0}, {"n_layers": 0, "optimizer": "adamw", "prune_to": 0.5, "muon_learning_rate": 1.0}),
    ({"n_heads": 2}, {"n_heads": [2], "d_head": 8}),
    ({}, {"d_head": 8, "d_value": 8}),
    ({"d_head": 4}, {"d_head": 4, "d_value": 4}),
    ({"feed_forward": "relu"}, {"feed_forward": "relu", "d_mlp": 64}),
    ({"attention": "local"}, {"attention": "local", "attention_window": 16}),
    ({"attention": "strided"}, {"attention": "strided", "stride": 4}),
    ({"attention": "top_k"}, {"attention": "top_k", "top_k": 16}),
    ({"biases": True}, {"biases": True, "output_biases": True}),
    ({}, {"normalization_place": "post"}),
    ({"n_heads": [0], "d_head": 8}, {"n_heads": [0], "d_head": 4, "qk_normalization": True, "gates": "dynamic"}),
    ({"optimizer": "adamw"}, {"optimizer": "adamw", "muon_learning_rate": 0.01, "muon_weight_decay": 0.5}),
    ({}, {"gate_penalty": 0.5, "gate_rate": 1.0, "active_fraction": 0.1}),
    ({"gates": "hard_concrete"}, {"gates": "hard_concrete", "active_fraction": 0.1}),
    ({"positions": "rotary"}, {"positions": "rotary", "position_rate": 1.0}),
    ({}, {"rotary_base": 500.0, "rotary_fraction": 0.5, "rotary_pairs": "half-split", "parallel_sublayers": True}),
    ({}, {"n_key_value_heads": 2, "norm_epsilon": 0.1}),
    ({"normalization": "layernorm"}, {"normalization": "layernorm", "norm_epsilon": 1e-5}),
    ({"qk_normalization": True}, {"qk_normalization": True, "norm_epsilon": 1e-6}),
    ({"biases": True}, {"biases": True, "qkv_biases": True}),
    ({"attention": "local"}, {"attention": "local", "windowed_layers": [0]}),
    ({}, {"qk_normalization_over": "layer"}),
    ({}, {"rotary_stretch": 2.0}),
    ({}, {"norm_offset": True}),
    ({"n_heads": [0], "d_head": 8}, {"n_heads": [0], "d_head": 8, "score_cap": 2.0}),
    ({"n_heads": [0], "d_head": 8}, {"n_heads": [0], "d_head": 8, "key_smearing": True}),
    ({"positions": "rotary"}, {"positions": "rotary", "rotary_stretched_wavelengths": [2.0, 4.0]}),
    (
        {"positions": "rotary", "attention": "local"},
        {"positions": "rotary", "attention": "local", "windowed_layers": [0], "windowed_rotary_base": 10_000.0},
    ),
    ({"d_head": 16}, {"d_head": 16, "score_scale": 0.25}),
    ({"n_heads": [0], "d_head": 8}, {"n_heads": [0], "d_head": 8, "score_scale": 2.0}),
    ({"n_heads": [0], "d_head": 8}, {"n_heads": [0], "d_head": 8, "n_key_value_heads": 3, "qkv_biases": True}),
]
DIFFERENT = [
    ({}, {"n_key_value_heads": 1}),
    ({"normalization": "layernorm"}, {"normalization": "layernorm", "norm_epsilon": 0.1}),
    ({"qk_normalization": True}, {"qk_normalization": True, "norm_epsilon": 1e-5}),
    ({"positions": "rotary"}, {"positions": "rotary", "rotary_base": 500.0}),
    ({"positions": "rotary"}, {"positions": "rotary", "rotary_fraction": 0.5}),
    ({"positions": "rotary"}, {"positions": "rotary", "rotary_pairs": "half-split"}),
    ({"feed_forward": "gelu"}, {"feed_forward": "gelu_tanh"}),
    ({"feed_forward": "gelu"}, {"feed_forward": "gelu", "parallel_sublayers": True}),
    ({}, {"score_scale": 1.0}),
    ({}, {"score_cap": 0.1}),
    ({}, {"key_smearing": True}),
    ({}, {"logit_cap": 2.0}),
    ({}, {"embedding_scale": 2.0}),
    ({"normalization": "rmsnorm"}, {"normalization": "rmsnorm", "norm_offset": True}),
    ({"positions": "rotary"}, {"positions": "rotary", "rotary_stretch": 2.0}),
    ({"qk_normalization": True}, {"qk_normalization": True, "qk_normalization_over": "layer"}),
    ({}, {"seed": 1}),
    ({}, {"n_heads": 1}),
    ({}, {"d_value": 4}),
    ({}, {"muon_learning_rate": 0.01}),
    ({}, {"position_rate": 1.0}),
    ({}, {"optimizer": "adamw"}),
    ({"n_layers": 0}, {"n_layers": 0, "positions": "learned"}),
    ({"n_layers": 0}, {"n_layers": 0, "normalization": "layernorm"}),
    ({"normalization": "rmsnorm"}, {"normalization": "rmsnorm", "normalization_place": "post"}),
    ({"gates": "dynamic"}, {"gates": "dynamic", "active_fraction": 0.1}),
    ({"attention": "local"}, {"attention": "local", "attention_window": 4}),
    ({"n_heads": [0], "d_head": 8}, {"n_heads": [0], "d_head": 8, "biases": True}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_settings_that_change_nothing_are_the_same_model(one, other, tmp_path):
    one, other = model(**one), model(**other)
    assert one != other
    assert effective(*one) == effective(*other) == effective(*effective(*one))
    first, *others = (trained_logits(*each, tmp_path) for each in (one, other, effective(*one)))
    assert all(torch.equal(first, logits) for logits in others)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_settings_that_change_something_are_another_model(one, other, tmp_path):
    one, other = model(**one), model(**other)
    assert effective(*one) != effective(*other)
    first, second = (trained_logits(*each, tmp_path) for each in (one, other))
    assert not torch.equal(first, second)


def places(**content) -> dict[str, tuple[str, ...]]:
    study = parse_study("s", {"name": "s", "model": {"d_model": 32, **content.pop("model", {})}, **content})
    return {cell.label: cell.places for cell in study.cells}


def test_a_model_of_no_layers_counts_once_in_a_grid_of_layers_and_heads():
    found = places(grid={"n_layers": [0, 1], "n_heads": [1, 2], "seed": [0, 1]})
    assert [*found] == [
        "n_layers=0 seed=0",
        "n_layers=0 seed=1",
        "n_layers=1 n_heads=1 seed=0",
        "n_layers=1 n_heads=1 seed=1",
        "n_layers=1 n_heads=2 seed=0",
        "n_layers=1 n_heads=2 seed=1",
    ]
    assert found["n_layers=0 seed=1"] == ("n_layers=0 n_heads=1 seed=1", "n_layers=0 n_heads=2 seed=1")


def test_axes_that_nothing_reads_make_no_more_models():
    inert = {"muon_learning_rate": [0.05, 0.07], "gate_penalty": [0.1, 0.2]}
    assert [*places(grid=inert, training={"optimizer": "adamw"})] == ["model"]
    assert [*places(grid=inert)] == ["muon_learning_rate=0.05", "muon_learning_rate=0.07"]


def test_a_list_of_head_counts_is_the_number_that_it_comes_to():
    assert [*places(grid={"n_heads": [2, [2, 2]]}, model={"n_layers": 2, "d_head": 16})] == ["model"]


def test_variants_that_come_to_one_model_go_by_the_first_name():
    assert [*places(variants={"plain": {}, "spelt-out": {"d_head": 8}}, grid={"seed": [0, 1]})] == [
        "variant=plain seed=0",
        "variant=plain seed=1",
    ]


def test_a_variant_may_replace_the_values_of_an_axis():
    found = places(variants={"plain": {}, "more-seeds": {"biases": True, "seed": [0, 1, 2]}}, grid={"seed": [0]})
    assert [*found] == ["variant=plain seed=0", *(f"variant=more-seeds biases=True seed={seed}" for seed in range(3))]
