"""Folders of Hugging Face's: every weight where it belongs, and whatever doesn't fit refused in a line."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor
from written_models import (
    D_VOCAB,
    gpt2_architecture,
    gpt2_config,
    gpt2_tensors,
    gpt_neox_architecture,
    gpt_neox_config,
    gpt_neox_tensors,
    llama_architecture,
    llama_config,
    llama_tensors,
    random_weights,
    write_folder,
    write_words,
)

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.open_foreign import content_hash, open_foreign

Written = tuple[str, Architecture, Callable[[Architecture], dict[str, Any]], Callable[..., dict[str, Tensor]]]


def gpt2(**options: Any) -> Written:
    return "gpt2", gpt2_architecture(**options), gpt2_config, gpt2_tensors


def gpt_neox(**options: Any) -> Written:
    return "gpt_neox", gpt_neox_architecture(**options), gpt_neox_config, gpt_neox_tensors


def llama(kind: str = "llama", **options: Any) -> Written:
    return kind, llama_architecture(**options), lambda a: llama_config(a, kind), llama_tensors


WRITTEN = {
    "gpt2": gpt2(),
    "gpt2 untied": gpt2(tied_embeddings=False, feed_forward="relu"),
    "gpt2 of one head": gpt2(n_heads=1, d_model=7, feed_forward="gelu"),
    "gpt2 without layers": gpt2(n_layers=0, feed_forward="gelu", d_mlp=5),
    "gpt_neox": gpt_neox(),
    "gpt_neox in turn": gpt_neox(parallel_sublayers=False, rotary_fraction=1.0, feed_forward="gelu_tanh"),
    "gpt_neox tied, of one head": gpt_neox(n_heads=1, d_model=10, rotary_fraction=0.4, tied_embeddings=True),
    "llama": llama(),
    "llama tied, a key a head": llama(n_key_value_heads=None, tied_embeddings=True, feed_forward="geglu"),
    "llama with biases": llama(biases=True, n_key_value_heads=1, feed_forward="geglu_tanh"),
    "mistral": llama("mistral", attention="local", attention_window=7),
    "mistral without a window": llama("mistral", n_key_value_heads=3),
    "qwen2": llama("qwen2", qkv_biases=True),
    "qwen2 with windows": llama(
        "qwen2", qkv_biases=True, n_key_value_heads=None, attention="local", attention_window=5
    ),
}


def write(folder: Path, name: str = "llama", n_shards: int = 1) -> dict[str, Tensor]:
    """Write one of these models; its weights."""
    _, architecture, config, tensors = WRITTEN[name]
    weights = random_weights(architecture)
    write_folder(folder, config(architecture), tensors(architecture, weights), n_shards=n_shards)
    return weights


@pytest.mark.parametrize("name", WRITTEN)
def test_every_weight_is_where_it_belongs(name, tmp_path):
    kind, architecture, _, _ = WRITTEN[name]
    weights = write(tmp_path, name)
    model = open_foreign(tmp_path)
    assert (model.format, model.d_vocab, model.dtype) == (f"huggingface {kind}", D_VOCAB, "float32")
    said = model.architecture.model_dump() | {"d_head": model.architecture.head_width}
    assert said == architecture.model_dump() | {"d_head": architecture.head_width}
    read = model.read_weights()
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[each], weights[each]) for each in weights)
    assert all(tensor.is_contiguous() for tensor in read.values())


def edit(path: Path, **changes: Any) -> None:
    """Change entries of a JSON file; those that become ... are taken out."""
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))


def retensor(folder: Path, **changes: Tensor | None) -> None:
    """Change tensors, whose names have _ for dots; those that become None are taken out."""
    tensors = load_file(folder / "model.safetensors")
    names = {name.replace(".", "_"): name for name in tensors}
    for name, tensor in changes.items():
        tensors[names.get(name, name)] = tensor
    save_file({name: t for name, t in tensors.items() if t is not None}, folder / "model.safetensors")


def refusal(path: Path) -> str:
    """The one line with which a model is refused."""
    with pytest.raises(UserError) as refused:
        open_foreign(path).read_weights()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_model_in_shards_is_the_same(tmp_path):
    weights = write(tmp_path, "gpt_neox", n_shards=3)
    model = open_foreign(tmp_path)
    read = model.read_weights()
    assert all(torch.equal(read[name], weights[name]) for name in weights)
    assert len(model.files) == 1 + 1 + 3 + 1
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    assert "lacks model-00002-of-00003.safetensors" in refusal(tmp_path)


@pytest.mark.parametrize("shard", ["../else.safetensors", "/etc/passwd", "run.py", 7])
def test_an_index_names_files_beside_it_alone(shard, tmp_path):
    write(tmp_path, n_shards=2)
    edit(tmp_path / "model.safetensors.index.json", weight_map={"model.norm.weight": shard})
    assert "model.safetensors.index.json " in refusal(tmp_path)


def test_a_tensor_in_two_shards_is_told(tmp_path):
    write(tmp_path, n_shards=2)
    first, second = sorted(tmp_path.glob("model-*"))
    save_file(load_file(first) | load_file(second), second)
    assert "hold the tensor" in refusal(tmp_path)


def test_names_may_lack_their_prefix_and_buffers_are_dropped(tmp_path):
    for kind, prefix, buffers in (
        ("gpt2", "transformer.", ["h.0.attn.bias", "h.1.attn.masked_bias"]),
        ("gpt_neox", "gpt_neox.", ["layers.0.attention.bias", "layers.1.attention.rotary_emb.inv_freq"]),
        ("llama", "model.", ["layers.0.self_attn.rotary_emb.inv_freq"]),
    ):
        weights = write(tmp_path, kind)
        tensors = load_file(tmp_path / "model.safetensors") | {name: torch.ones(3) for name in buffers}
        save_file({name.removeprefix(prefix): t for name, t in tensors.items()}, tmp_path / "model.safetensors")
        read = open_foreign(tmp_path).read_weights()
        assert all(torch.equal(read[name], weights[name]) for name in weights)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_become_float32_and_are_told(dtype, tmp_path):
    weights = write(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({name: tensor.to(dtype) for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    model = open_foreign(tmp_path)
    assert model.dtype in model.notes[0]
    assert "float32" in model.notes[0]
    read = model.read_weights()
    assert all(torch.equal(read[name], weights[name].to(dtype).float()) for name in weights)


def test_a_vocabulary_larger_than_the_tokenizer_is_told_and_a_smaller_one_refused(tmp_path):
    write(tmp_path)
    write_words(tmp_path / "tokenizer.json", D_VOCAB - 3)
    assert any("3 more rows" in note for note in open_foreign(tmp_path).notes)
    write_words(tmp_path / "tokenizer.json", D_VOCAB + 1)
    assert f"has {D_VOCAB + 1} ids, more than the {D_VOCAB} rows of the embedding" in refusal(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    model = open_foreign(tmp_path)
    assert model.tokenizer is None
    assert "there is no tokenizer beside the weights" in model.notes


def test_rotary_positions_as_newer_configs_write_them(tmp_path):
    write(tmp_path, "gpt_neox")
    rope = {"rope_type": "default", "rope_theta": 500_000.0, "partial_rotary_factor": 0.5}
    edit(tmp_path / "config.json", rope_parameters=rope, rotary_pct=..., rotary_emb_base=...)
    architecture = open_foreign(tmp_path).architecture
    assert (architecture.rotary_base, architecture.rotary_fraction) == (500_000, 0.5)


BASES: list[tuple[str, dict[str, Any], float]] = [  # by transformers' convert_rope_params_to_dict
    ("llama", {"rope_scaling": {"rope_type": "default", "rope_theta": 500.0}}, 500),
    ("llama", {"rope_scaling": {"type": "default", "rope_theta": 500.0}}, 500),
    ("mistral", {"rope_scaling": {"rope_theta": 500}}, 500),
    ("qwen2", {"rope_parameters": {"rope_theta": 500.0}, "rope_theta": 400.0}, 500),
    ("llama", {"rope_scaling": {"rope_theta": 500.0}, "rope_parameters": {"rope_theta": 600.0}}, 500),
    ("llama", {"rope_scaling": {"rope_type": "default"}, "rope_parameters": {"rope_theta": 600.0}}, 70_000),
    ("llama", {"rope_scaling": {}, "rope_parameters": {"rope_theta": 600.0}}, 600),
    ("llama", {"rope_scaling": None, "rope_parameters": {"rope_type": "default"}, "rope_theta": ...}, 10_000),
    ("gpt_neox", {"rope_scaling": {"rope_type": "default", "rope_theta": 500.0}}, 500),
    ("gpt_neox", {"rotary_emb_base": 500, "rope_theta": 600.0}, 500),
    ("gpt_neox", {"rotary_emb_base": ..., "rope_theta": 600.0}, 10_000),
    ("gpt_neox", {"rotary_emb_base": 500, "rope_parameters": {"rope_type": "default"}}, 500),
]


@pytest.mark.parametrize(("kind", "changes", "base"), BASES)
def test_of_several_rotary_bases_the_one_counts_that_transformers_takes(kind, changes, base, tmp_path):
    write(tmp_path, kind)
    edit(tmp_path / "config.json", **changes)
    assert open_foreign(tmp_path).architecture.rotary_base == base


def test_a_rotary_base_that_decides_nothing_is_told_if_it_differs(tmp_path):
    write(tmp_path, "gpt_neox")
    edit(tmp_path / "config.json", rotary_emb_base=500, rope_theta=500.0, partial_rotary_factor=0.25)
    assert open_foreign(tmp_path).notes == ()
    edit(tmp_path / "config.json", rope_theta=600.0, rope_scaling={"rope_type": "default", "beta_fast": 32})
    assert open_foreign(tmp_path).notes == ("settings that are not read: rope_scaling.beta_fast, rope_theta",)


def test_a_window_as_long_as_the_context_hides_nothing(tmp_path):
    write(tmp_path, "mistral without a window")
    edit(tmp_path / "config.json", sliding_window=19)
    assert open_foreign(tmp_path).architecture.attention == "full"
    edit(tmp_path / "config.json", sliding_window=18)
    assert open_foreign(tmp_path).architecture.visible_distances == range(18)
    edit(tmp_path / "config.json", sliding_window=..., max_position_embeddings=5000)
    assert open_foreign(tmp_path).architecture.visible_distances == range(4096)


@pytest.mark.parametrize(
    "changes", [{"max_window_layers": 1}, {"layer_types": ["full_attention", "sliding_attention"]}]
)
def test_some_layers_alone_may_have_a_window(changes, tmp_path):
    write(tmp_path, "qwen2")
    edit(tmp_path / "config.json", use_sliding_window=True, sliding_window=4, **changes)
    architecture = open_foreign(tmp_path).architecture
    assert (architecture.attention_window, architecture.windowed_layers) == (4, (1,))


UNREPRESENTABLE = {
    "quantised weights": ("llama", {"quantization_config": {"bits": 4}}),
    "experts": ("llama", {"num_local_experts": 8}),
    "ALiBi": ("gpt2", {"alibi": True}),
    "soft-capped logits": ("llama", {"final_logit_softcapping": 30.0}),
    "scaled embeddings": ("llama", {"embedding_multiplier": 12.0}),
    "scaled sublayers": ("llama", {"residual_multiplier": 0.2}),
    "scaled rotary positions": ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 8.0}}),
    "scaled rotary": ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": 8.0}}),
    "settings that differ by layer": ("llama", {"per_layer_config": {"0": {"head_dim": 2}}}),
    "differ by layer": ("llama", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}),
    "scale of attention by layer": ("gpt2", {"scale_attn_by_inverse_layer_idx": True}),
    "attention without a scale": ("gpt2", {"scale_attn_weights": False}),
    "cross attention": ("gpt2", {"add_cross_attention": True}),
    "encoder": ("gpt2", {"is_encoder_decoder": True}),
    "run code": ("llama", {"auto_map": {"AutoModel": "code.Model"}}),
    "LayerNorm of queries and keys": ("llama", {"qk_layernorm": True}),
    "rotary positions on part of a head": ("llama", {"partial_rotary_factor": 0.5}),
    "positions on part of a head": ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}),
    "neighbouring rotary pairs": ("llama", {"rope_interleaved": True}),
    "hidden_act must be one of silu": ("llama", {"hidden_act": "relu2"}),
    "activation_function must be one of gelu": ("gpt2", {"activation_function": "silu"}),
    "its text model alone": ("llama", {"model_type": "gemma3"}),
    "model_type must be one of gpt2": ("llama", {"model_type": ["llama"]}),
    "num_hidden_layers must be a whole number": ("llama", {"num_hidden_layers": -1}),
    "num_hidden_layers must be a whole": ("llama", {"num_hidden_layers": "2"}),
    "has no hidden_size": ("llama", {"hidden_size": ...}),
    "n_layers: must be less than or equal to": ("llama", {"num_hidden_layers": 1000}),
    "n_key_value_heads must divide": ("llama", {"num_key_value_heads": 4}),
    "head_dim must be a whole number": ("llama", {"head_dim": 1e300}),
    "rope_theta must be a number": ("llama", {"rope_theta": "10000"}),
    "GB in float32": ("llama", {"vocab_size": 1 << 24, "hidden_size": 1 << 16}),
}


@pytest.mark.parametrize("words", UNREPRESENTABLE)
def test_what_a_config_asks_for_and_headstream_lacks_is_named(words, tmp_path):
    kind, changes = UNREPRESENTABLE[words]
    write(tmp_path, kind)
    edit(tmp_path / "config.json", **changes)
    assert words in refusal(tmp_path)


OF_LIBRARIES = {  # what libraries write besides
    "gpt2": {
        "architectures": ["GPT2LMHeadModel"],
        "attn_pdrop": 0.1,
        "bos_token_id": 36,
        "eos_token_id": 36,
        "initializer_range": 0.02,
        "n_ctx": 19,
        "summary_first_dropout": 0.1,
        "summary_type": "cls_index",
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
        "reorder_and_upcast_attn": False,
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "use_cache": True,
        "dtype": "float32",
    },
    "gpt_neox": {
        "attention_bias": True,
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "classifier_dropout": 0.1,
        "eos_token_id": 0,
        "hidden_dropout": 0.0,
        "rope_theta": 10_000,
        "rope_scaling": None,
        "torch_dtype": "float16",
        "transformers_version": "4.40.0",
    },
    "llama": {
        "attention_dropout": 0.0,
        "is_llama_config": True,
        "pretraining_tp": 1,
        "rope_interleaved": False,
        "rope_scaling": None,
        "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
    },
    "qwen2": {
        "use_sliding_window": False,
        "sliding_window": 131_072,
        "max_window_layers": 28,
        "use_mrope": False,
        "layer_types": ["full_attention", "full_attention"],
        "rope_parameters": {"rope_theta": 70_000.0, "rope_type": "default"},
    },
}


@pytest.mark.parametrize("name", OF_LIBRARIES)
def test_what_libraries_write_besides_changes_nothing_and_needs_no_word(name, tmp_path):
    write(tmp_path, name)
    before = open_foreign(tmp_path)
    edit(tmp_path / "config.json", **OF_LIBRARIES[name])
    after = open_foreign(tmp_path)
    assert after.architecture == before.architecture
    assert [note for note in after.notes if "BOS" not in note] == []


def test_a_context_longer_than_headstreams_is_told(tmp_path):
    write(tmp_path)
    edit(tmp_path / "config.json", max_position_embeddings=1 << 20)
    model = open_foreign(tmp_path)
    assert model.architecture.n_ctx == 1 << 17
    assert model.notes == ("it can read more positions than the 131,072 that Headstream takes",)


def test_settings_that_nobody_reads_are_told(tmp_path):
    write(tmp_path)
    edit(tmp_path / "config.json", use_cache=True, novel_gate="on", other_gate=False, torch_dtype="float32")
    assert open_foreign(tmp_path).notes == ("settings that are not read: novel_gate",)


STRANGE = {
    "value embeddings": {"value_embeds.0.weight": torch.ones(3)},
    "adapters (LoRA)": {"model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(3)},
    "experts": {"model.layers.0.mlp.experts.0.w1.weight": torch.ones(3)},
    "norms of queries and keys": {"model.layers.0.self_attn.q_norm.weight": torch.ones(3)},
    "norms after sublayers": {"model.layers.1.post_feedforward_layernorm.weight": torch.ones(3)},
    "quantised weights": {"model.layers.0.self_attn.q_proj.qweight": torch.ones(3).int()},
    "holds model.surprise, which the architecture doesn't have": {"surprise": torch.ones(3)},
    "bias and 1 more": {f"model.layers.{i}.self_attn.q_proj.bias": torch.ones(24) for i in range(2)},
    "has no tensor model.layers.1.mlp.up_proj.weight": {"model_layers_1_mlp_up_proj_weight": None},
    "lm_head.weight has shape [37, 16]": {"lm_head_weight": torch.ones(37, 16)},
    "self_attn.k_proj.weight has shape [17, 8]": {"model_layers_0_self_attn_k_proj_weight": torch.ones(17, 8)},
    "is I8": {"model_norm_weight": torch.ones(17, dtype=torch.int8)},
    "1 of 17 weights in model.norm.weight are not finite": {
        "model_norm_weight": torch.tensor([float("nan")] + 16 * [1.0])
    },
    "17 of 17 weights in model.norm": {"model_norm_weight": torch.full([17], float("inf"))},
}


@pytest.mark.parametrize("words", STRANGE)
def test_tensors_that_the_architecture_has_not_are_named(words, tmp_path):
    write(tmp_path)
    retensor(tmp_path, **STRANGE[words])
    assert words in refusal(tmp_path)


def test_a_copy_of_tied_embeddings_must_be_one(tmp_path):
    write(tmp_path, "gpt2")
    W_E = load_file(tmp_path / "model.safetensors")["transformer.wte.weight"]
    retensor(tmp_path, **{"lm_head.weight": W_E.clone()})
    open_foreign(tmp_path).read_weights()
    retensor(tmp_path, **{"lm_head.weight": W_E + 1})
    assert "lm_head.weight differs from transformer.wte.weight" in refusal(tmp_path)


def broken_json(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def deep_json(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000)


def large_json(folder: Path) -> None:
    (folder / "config.json").write_text('{"a": "' + "a" * (5 << 20) + '"}')


def json_list(folder: Path) -> None:
    (folder / "config.json").write_text("[1]")


def json_of_huge_numbers(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "llama", "vocab_size": ' + "9" * 10_000 + "}")


def linked_in_a_circle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("other")
    (folder / "other").symlink_to("model.safetensors")


def folder_for_a_file(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


def cut_short(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-100])


def empty(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def huge_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((1 << 62).to_bytes(8, "little") + b"{}")


def tensors_beyond_the_end(folder: Path) -> None:
    header = b'{"model.norm.weight":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}'
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def tensors_that_overlap(folder: Path) -> None:
    header = (
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    )
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"0000")


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def adapter(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")


def tokenizer_of_nothing(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


def tokenizer_without_its_unknown_token(folder: Path) -> None:
    Tokenizer(WordLevel({"b": 0}, unk_token="none")).save(str(folder / "tokenizer.json"))


BROKEN = {
    tokenizer_without_its_unknown_token: "tokenizer.json does not describe a tokenizer",
    broken_json: "config.json is not valid JSON",
    deep_json: "config.json is not valid JSON",
    large_json: "bytes, more than the 4,194,304 allowed",
    json_list: "holds data of type list, not a JSON object",
    json_of_huge_numbers: "config.json is not valid JSON",
    linked_in_a_circle: "can't open",
    folder_for_a_file: "is not a regular file",
    cut_short: "is not a whole safetensors file",
    empty: "is not a whole safetensors file",
    huge_header: "is not a whole safetensors file",
    tensors_beyond_the_end: "is not a whole safetensors file",
    tensors_that_overlap: "is not a whole safetensors file",
    pickled: "pytorch_model.bin in",
    no_weights: "has neither model.safetensors nor",
    adapter: "Merge it into its model",
    tokenizer_of_nothing: "tokenizer.json does not describe a tokenizer",
}


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
def test_damaged_and_hostile_folders_are_refused_in_a_line(damage, tmp_path):
    write(tmp_path)
    damage(tmp_path)
    assert BROKEN[damage] in refusal(tmp_path)


def test_links_to_files_are_followed_as_caches_have_them(tmp_path):
    weights = write(tmp_path / "blobs")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for file in (tmp_path / "blobs").iterdir():
        (snapshot / file.name).symlink_to(file)
    assert torch.equal(open_foreign(snapshot).read_weights()["W_E"], weights["W_E"])


def test_the_hash_is_of_all_files_that_decide_the_model(tmp_path):
    write(tmp_path)
    before = content_hash(open_foreign(tmp_path))
    (tmp_path / "README.md").write_text("more")
    assert content_hash(open_foreign(tmp_path)) == before
    edit(tmp_path / "config.json", rope_theta=1234.0)
    changed = content_hash(open_foreign(tmp_path))
    write_words(tmp_path / "tokenizer.json", D_VOCAB - 1)
    assert len({before, changed, content_hash(open_foreign(tmp_path))}) == 3


@pytest.mark.skipif(
    "HEADSTREAM_TEST_MODELS" not in os.environ, reason="HEADSTREAM_TEST_MODELS names no folder of models"
)
def test_a_pretrained_llama_tells_its_story():
    """Weights that a stranger trained speak English only where each one is."""
    found = open_foreign(Path(os.environ["HEADSTREAM_TEST_MODELS"]) / "stories260K")
    assert (found.format, found.tokenizer.entries, found.tokenizer.bos) == ("huggingface llama", 512, 1)
    model = Transformer(found.architecture, found.d_vocab)
    model.load_state_dict(found.read_weights())
    tokenizer = Tokenizer.from_str(found.tokenizer.json)
    ids = [found.tokenizer.bos, *tokenizer.encode("Once upon a time", add_special_tokens=False).ids]
    for _ in range(30):
        ids.append(int(model.eval()(torch.tensor([ids]))[0, -1].argmax()))
    assert tokenizer.decode(ids).startswith("Once upon a time, there was a little girl named Lily. She loved to play")
