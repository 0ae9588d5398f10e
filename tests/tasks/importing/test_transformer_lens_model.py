"""TransformerLens's state dicts: config in the file or beside it, zero biases left out, folded weights told."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from written_models import (
    D_VOCAB,
    gpt2_architecture,
    gpt_neox_architecture,
    llama_architecture,
    random_weights,
    transformer_lens_config,
    transformer_lens_tensors,
)

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.importing.open_foreign import open_foreign


def attention_only(**options: Any) -> Architecture:
    fields = {"n_layers": 2, "n_heads": 3, "d_model": 13, "d_head": 5, "n_ctx": 19, "positions": "learned_shortformer"}
    return Architecture(**{**fields, "normalization": "layernorm", "norm_epsilon": 1e-5, "biases": True, **options})


ARCHITECTURES = {
    "GPT-2": gpt2_architecture(),
    "Pythia": gpt_neox_architecture(rotary_fraction=0.75),
    "Llama": llama_architecture(),
    "neighbouring pairs": llama_architecture(rotary_pairs="neighbouring", n_key_value_heads=None, feed_forward="geglu"),
    "Qwen2": llama_architecture(qkv_biases=True),
    "windows": llama_architecture(attention="local", attention_window=5, n_key_value_heads=3),
    "attention alone": attention_only(),
    "no norms, no biases": attention_only(normalization="none", norm_epsilon=None, biases=False, positions="learned"),
    "biases of outputs": attention_only(biases=False, output_biases=True, positions="rotary", d_head=4),
}


def prepared(name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Config, tensors, and the weights in them."""
    architecture = ARCHITECTURES[name]
    weights = random_weights(architecture)
    if "b_U" in weights:
        weights["b_U"] += torch.arange(D_VOCAB)  # TransformerLens has it
    for i in range(architecture.n_layers):
        if architecture.positions == "learned_shortformer":
            weights[f"layers.{i}.attention.W_pos"] = weights["layers.0.attention.W_pos"]
        if f"layers.{i}.feed_forward.b_gate" in weights:
            weights[f"layers.{i}.feed_forward.b_gate"] *= 0
    return transformer_lens_config(architecture), transformer_lens_tensors(architecture, weights), weights


@pytest.mark.parametrize("kept", ["in the file", "beside a pickle", "beside safetensors"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_weight_is_where_it_belongs(name, kept, tmp_path):
    config, tensors, weights = prepared(name)
    if kept == "in the file":
        torch.save({"cfg": config | {"dtype": torch.float32}, "state_dict": tensors}, tmp_path / "model.pt")
    else:
        (tmp_path / "config.json").write_text(json.dumps(config | {"dtype": "torch.float32"}))
    if kept == "beside a pickle":
        torch.save(tensors, tmp_path / "model_final.pth")
    if kept == "beside safetensors":
        save_file({each: tensor.contiguous() for each, tensor in tensors.items()}, tmp_path / "model.safetensors")
    model = open_foreign(tmp_path)
    expected = ARCHITECTURES[name]
    assert model.format == "transformer-lens"
    assert model.notes == ("there is no tokenizer beside the weights",)
    assert model.architecture.heads_per_layer == expected.heads_per_layer
    assert model.architecture.rotary_width == expected.rotary_width
    read = model.read_weights()
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[each], weights[each]) for each in weights)
    left_out = {"d_head", "d_mlp", "norm_epsilon"}
    assert model.architecture.model_dump(exclude=left_out) == expected.model_dump(exclude=left_out)


def write(path: Path, config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Path:
    torch.save({"cfg": config, "state_dict": tensors}, path)
    return path


def test_folded_norms_are_told_and_are_norms_without_weights(tmp_path):
    config, tensors, _ = prepared("GPT-2")
    tensors = {name: tensor for name, tensor in tensors.items() if ".ln" not in name and "ln_final" not in name}
    model = open_foreign(write(tmp_path / "m.pt", config | {"normalization_type": "LNPre"}, tensors))
    assert any("folded" in note for note in model.notes)
    assert model.architecture.normalization == "layernorm"
    read = model.read_weights()
    assert torch.equal(read["layers.1.feed_forward_norm.weight"], torch.ones(15))
    assert torch.equal(read["final_norm.bias"], torch.zeros(15))
    assert "has no tensor ln_final.w" in refused(write(tmp_path / "m.pt", config, tensors))


def test_older_configs_and_files_have_other_words_and_no_bias_of_logits(tmp_path):
    config, tensors, weights = prepared("attention alone")
    older = {**config, "normalization": "LN", "shortformer_pos": True}
    del older["normalization_type"], older["positional_embedding_type"], tensors["unembed.b_U"]
    model = open_foreign(write(tmp_path / "m.pt", older, tensors))
    assert (model.architecture.normalization, model.architecture.positions) == ("layernorm", "learned_shortformer")
    read = model.read_weights()
    assert not read["b_U"].any()
    assert torch.equal(read["layers.1.attention.b_Q"], weights["layers.1.attention.b_Q"])
    del tensors["blocks.1.attn.b_Q"]
    assert "has no tensor blocks.1.attn.b_Q" in refused(write(tmp_path / "m.pt", older, tensors))


def test_a_config_that_says_nothing_of_norms_means_layernorm(tmp_path):
    config, tensors, _ = prepared("no norms, no biases")
    assert open_foreign(write(tmp_path / "m.pt", config, tensors)).architecture.normalization == "none"
    del config["normalization_type"]
    assert "has no tensor ln_final.w" in refused(write(tmp_path / "m.pt", config, tensors))


def test_centred_weights_are_told(tmp_path):
    config, tensors, _ = prepared("GPT-2")
    W_O = tensors["blocks.0.attn.W_O"]
    tensors["blocks.0.attn.W_O"] = W_O - W_O.mean(-1, keepdim=True)
    assert any("centred" in note for note in open_foreign(write(tmp_path / "m.pt", config, tensors)).notes)


def refused(path: Path) -> str:
    with pytest.raises(UserError) as refusal:
        open_foreign(path).read_weights()
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


REFUSED = {
    "positional_embedding_type must be one of standard, rotary, shortformer, got alibi": {
        "positional_embedding_type": "alibi"
    },
    "experts": {"num_experts": 4},
    "soft-capped scores": {"attn_scores_soft_cap": 50.0},
    "soft-capped logits": {"output_logits_soft_cap": 30.0},
    "attention to later tokens": {"attention_dir": "bidirectional"},
    "norms before and after": {"use_normalization_before_and_after": True},
    "norm of the embedding": {"post_embedding_ln": True},
    "attention without a scale": {"use_attn_scale": False},
    "attn_scale must be sqrt(d_head)": {"attn_scale": 1.0},
    "act_fn must be one of": {"act_fn": "solu_ln"},
    "attn_types of 2 kinds, which": {"use_local_attn": True, "window_size": 4, "attn_types": ["global", "local"]},
    "vocabulary of outputs": {"d_vocab_out": 2},
    "n_heads must be a whole number": {"n_heads": None, "n_head": 3},
    "normalization_type must be one of": {"normalization_type": "DyT"},
    "by the config": {"d_model": 16},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_a_config_asks_for_and_headstream_lacks_is_named(words, tmp_path):
    config, tensors, _ = prepared("GPT-2")
    said = refused(write(tmp_path / "m.pt", config | REFUSED[words], tensors))
    assert words.replace("n_heads must be a whole number", "has no n_heads") in said


def test_biases_within_gated_layers_are_refused(tmp_path):
    config, tensors, _ = prepared("Llama")
    tensors["blocks.1.mlp.b_in"] = torch.ones(31)
    assert "b_in of gated feed-forward layers is not 0" in refused(write(tmp_path / "m.pt", config, tensors))


def test_norms_inside_feed_forward_layers_are_refused(tmp_path):
    config, tensors, _ = prepared("GPT-2")
    tensors["blocks.0.mlp.ln.w"] = torch.ones(23)
    assert "SoLU" in refused(write(tmp_path / "m.pt", config, tensors))
