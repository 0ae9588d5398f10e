"""Each setting of each format, changed in the file: both readings change alike, or it is refused by name."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from written_families import SHAPES
from written_models import (
    gpt2_architecture,
    gpt2_tensors,
    gpt_neox_architecture,
    gpt_neox_tensors,
    llama_architecture,
    llama_tensors,
    nanogpt_checkpoint,
    random_weights,
    transformer_lens_config,
    transformer_lens_tensors,
)

from benchmarks.changed_settings import CHANGES
from benchmarks.setting_changes import Changes, changed, names_in
from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.huggingface_family import ACTIVATION_NAMES, GATED_ACTIVATION_NAMES
from headstream.tasks.importing.huggingface_folder import _NEUTRAL, FAMILIES
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.reference.forward import reference_logits
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS
from headstream.tasks.importing.reference.said_settings import UndefinedSettingError
from headstream.tasks.importing.settings import Settings
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

ALIKE, CHANGED = 1e-9, 1e-4  # of the logits' standard deviation: at most, and at least
TOKENS = torch.randint(37, (2, 13), generator=torch.Generator().manual_seed(1))

_RELU = {"feed_forward": "relu", "norm_epsilon": 0.1, "tied_embeddings": False}
_LLAMA = llama_architecture(d_model=18, feed_forward="geglu", norm_epsilon=0.1, rotary_base=70.0)
TENSORS = {
    "gpt2": (gpt2_architecture(**_RELU), gpt2_tensors),
    "gpt_neox": (gpt_neox_architecture(**_RELU), gpt_neox_tensors),
    "llama": (_LLAMA, llama_tensors),
    "mistral": (_LLAMA, llama_tensors),
    "qwen2": (_LLAMA.model_copy(update={"qkv_biases": True}), llama_tensors),
}


def huggingface(folder: Path, config: dict[str, Any], architecture: Architecture | None = None) -> Path:
    kind = config["model_type"]
    if kind in TENSORS:
        own, tensors = TENSORS[kind]
        architecture = architecture or own
        named = tensors(architecture, random_weights(architecture))
    else:
        generator = torch.Generator().manual_seed(0)
        shapes = SHAPES[kind](CHANGES[kind].base)
        named = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    save_file({name: tensor.contiguous() for name, tensor in named.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def nanogpt(folder: Path, config: dict[str, Any]) -> Path:
    a = gpt2_architecture(d_mlp=60)
    torch.save(nanogpt_checkpoint(a, random_weights(a)) | {"model_args": config}, folder / "ckpt.pt")
    return folder / "ckpt.pt"


NANOGPT = Changes(
    base={"n_layer": 2, "n_head": 3, "n_embd": 15, "block_size": 19, "bias": True, "vocab_size": 37, "dropout": 0.1},
    counted=({"n_head": 5}, {"bias": ...}),
    refused=(
        ({"n_layer": 1}, "transformer.h.1."),
        ({"n_embd": 18}, "wte.weight has shape"),
        ({"block_size": 18}, "wpe.weight has shape"),
        ({"vocab_size": 38}, "wte.weight has shape"),
        ({"bias": False}, ".bias"),
    ),
    idle={"dropout": 0.5, "flash": True},
)


_LENS = llama_architecture(attention="local", attention_window=5, norm_epsilon=0.1, rotary_base=70.0, qkv_biases=True)


def transformer_lens(folder: Path, config: dict[str, Any]) -> Path:
    torch.save(
        {"cfg": config, "state_dict": transformer_lens_tensors(_LENS, random_weights(_LENS))}, folder / "model.pt"
    )
    return folder / "model.pt"


TRANSFORMER_LENS = Changes(
    base=transformer_lens_config(_LENS) | {"act_fn": "gelu", "attn_scale": 2.0},
    counted=(
        *({"act_fn": kind} for kind in ("silu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh")),
        {"eps": 0.01},
        {"eps": ...},
        {"normalization": "RMS", "eps": 0.01},
        {"rotary_dim": 2},
        {"rotary_base": 7},
        {"rotary_base": ...},
        {"rotary_adjacent_pairs": True},
        {"window_size": 3},
        {"use_local_attn": False},
        {"use_local_attn": ...},
        {"attn_types": ["global", "global"]},
        {"parallel_attn_mlp": True},
    ),
    refused=(
        ({"n_layers": 1}, "blocks.1."),
        ({"d_model": 18}, "embed.W_E has shape"),
        ({"n_ctx": 1}, "n_ctx"),
        ({"d_head": 6}, "attn_scale must be sqrt(d_head)"),
        ({"d_head": 6, "attn_scale": -1}, "W_Q has shape"),
        ({"d_head": ...}, "rotary_fraction"),
        ({"n_heads": 4}, "W_Q has shape"),
        ({"n_key_value_heads": 3}, "_W_K has shape"),
        ({"n_key_value_heads": ...}, "_W_K"),
        ({"d_mlp": 30}, "mlp.W_in has shape"),
        ({"d_mlp": ...}, "mlp.W_in has shape"),
        ({"d_vocab": 38}, "vocabulary of outputs"),
        ({"d_vocab_out": 38}, "vocabulary of outputs"),
        ({"act_fn": "solu"}, "act_fn must be"),
        ({"gated_mlp": False}, "mlp.W_gate"),
        ({"attn_only": True}, "ln2.w"),
        ({"normalization_type": "LN"}, "ln_final.b"),
        ({"normalization_type": ...}, "ln_final.b"),
        ({"normalization_type": None}, "ln_final.w"),
        ({"positional_embedding_type": "standard"}, "pos_embed.W_pos"),
        ({"positional_embedding_type": ...}, "pos_embed.W_pos"),
        ({"shortformer_pos": True}, "pos_embed.W_pos"),
        ({"attn_types": ["global", "local"]}, "which isn't read in this format"),
        ({"attn_types": None}, "which isn't read in this format"),
        ({"use_attn_scale": False}, "use_attn_scale must be"),
        ({"attn_scale": 3.0}, "attn_scale must be"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx must be"),
        ({"attention_dir": "bidirectional"}, "attention_dir must be"),
        ({"post_embedding_ln": True}, "post_embedding_ln must be"),
        ({"num_experts": 4}, "num_experts must be"),
        ({"attn_scores_soft_cap": 5.0}, "attn_scores_soft_cap must be"),
        ({"output_logits_soft_cap": 5.0}, "output_logits_soft_cap must be"),
        ({"use_normalization_before_and_after": True}, "use_normalization_before_and_after must be"),
        ({"use_qk_norm": True}, "use_qk_norm must be"),
        ({"use_NTK_by_parts_rope": True}, "use_NTK_by_parts_rope must be"),
        ({"use_yarn_rope": True}, "use_yarn_rope must be"),
        ({"rotary_base_local": 7}, "rotary_base_local must be"),
        ({"rotary_scaling_factor": 2.0}, "rotary_scaling_factor must be"),
        ({"final_rms": True}, "final_rms must be"),
        ({"load_in_4bit": True}, "load_in_4bit must be"),
    ),
    idle={"seed": 5, "device": "cpu", "init_mode": "xavier_normal", "use_attn_in": True, "attn_scale": -1},
    idle_besides=({"rotary_dim": ...},),
)


def gguf(folder: Path, said: dict[str, Any]) -> Path:
    pytest.importorskip("gguf", reason="GGUF files are written with gguf, of the extra [models]")
    from written_gguf import gguf_architecture, gguf_metadata, gguf_tensors, write_gguf

    a = gguf_architecture(norm_epsilon=0.5, rotary_base=70.0, d_model=18)
    left_out = dict.fromkeys(gguf_metadata(a))
    return write_gguf(folder / "m.gguf", a, gguf_tensors(a, random_weights(a)), metadata=left_out | said)


GGUF = Changes(
    base={
        "block_count": 2,
        "context_length": 19,
        "embedding_length": 18,
        "feed_forward_length": 31,
        "attention.head_count": 6,
        "attention.head_count_kv": 2,
        "attention.key_length": 4,
        "attention.value_length": 4,
        "attention.layer_norm_rms_epsilon": 0.5,
        "rope.dimension_count": 4,
        "rope.freq_base": 70.0,
        "vocab_size": 37,
    },
    counted=(
        {"attention.head_count": 12, "attention.head_count_kv": 4, "attention.key_length": 2,
         "attention.value_length": 2, "rope.dimension_count": 2},
        {"attention.layer_norm_rms_epsilon": 0.25},
        {"rope.freq_base": 7.0},
        {"rope.freq_base": ...},
        {"rope.dimension_count": 2},
    ),
    refused=(
        ({"block_count": 1}, "blk.1."),
        ({"embedding_length": 24}, "token_embd.weight has shape"),
        ({"feed_forward_length": 30}, "ffn_gate.weight has shape"),
        ({"attention.head_count_kv": ...}, "attn_k.weight has shape"),
        ({"attention.key_length": ..., "rope.dimension_count": 2}, "attn_q.weight has shape"),
        ({"attention.value_length": ...}, "attn_v.weight has shape"),
        ({"attention.layer_norm_rms_epsilon": ...}, "layer_norm_rms_epsilon"),
        ({"vocab_size": 38}, "token_embd.weight has shape"),
        ({"context_length": ...}, "context_length"),
        ({"expert_count": 4}, "expert_count must be"),
        ({"rope.scaling.factor": 2.0}, "rope.scaling.factor must be"),
        ({"rope.scaling.factor": 4}, "rope.scaling.factor must be"),
        ({"rope.scaling.factor": 0.5}, "rope.scaling.factor must be"),
        ({"rope.scaling.factor": 2.0, "rope.scaling.type": "linear"}, "rope.scaling.factor must be"),
        ({"rope.scale_linear": 2.0}, "rope.scale_linear must be"),
        *(({"rope.scaling.type": kind}, "rope.scaling.type must be") for kind in ("yarn", "longrope", "llama3", "su")),
        ({"rope.scaling.attn_factor": 1.5}, "rope.scaling.attn_factor must be"),
        ({"rope.freq_base_swa": 10.0}, "rope.freq_base_swa must be"),
        ({"rope.dimension_sections": [1, 1]}, "rope.dimension_sections must be"),
        ({"attention.causal": False}, "attention.causal must be"),
        ({"attention.scale": 0.25}, "attention.scale must be"),
        ({"attention.max_alibi_bias": 8.0}, "attention.max_alibi_bias must be"),
        ({"attention.clamp_kqv": 8.0}, "attention.clamp_kqv must be"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping must be"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping must be"),
        ({"logit_scale": 0.5}, "logit_scale must be"),
        ({"residual_scale": 0.5}, "residual_scale must be"),
        ({"embedding_scale": 12.0}, "embedding_scale must be"),
        ({"use_parallel_residual": True}, "use_parallel_residual must be"),
    ),
    idle={"context_length": 17, "vocab_size": ..., "rope.scaling.finetuned": True},
    idle_besides=(
        {"rope.dimension_count": ...},
        {"rope.scaling.factor": 1.0},
        {"rope.scaling.factor": 0.0},
        {"rope.scaling.type": "linear"},
        {"rope.scaling.type": "none", "rope.scaling.factor": 2.0},
        {"rope.scaling.type": "none", "rope.scale_linear": 2.0},
    ),
)  # fmt: skip


HEADSTREAM_BASE = Architecture(
    n_layers=2, n_heads=3, d_model=24, d_head=8, n_ctx=19, positions="rotary", rotary_base=70.0, rotary_fraction=0.5,
    normalization="rmsnorm", norm_epsilon=0.1, feed_forward="swiglu", attention="local", attention_window=5,
)  # fmt: skip


def headstream(folder: Path, said: dict[str, Any]) -> Path:
    model = Transformer(HEADSTREAM_BASE, 37)
    model.load_state_dict(random_weights(HEADSTREAM_BASE))
    write_model_card(folder, model, 64)
    save_checkpoint(folder, model, 3)
    card = folder / "model.json"
    card.write_text(json.dumps(json.loads(card.read_text()) | {"architecture": said}))
    return folder


HEADSTREAM = Changes(
    base=HEADSTREAM_BASE.model_dump(mode="json"),
    counted=(
        {"rotary_base": 7.0},
        {"rotary_base": ...},
        {"rotary_fraction": 1.0},
        {"rotary_pairs": "half-split"},
        {"positions": "sinusoidal"},
        {"positions": "shortformer"},
        {"positions": "none"},
        {"norm_epsilon": 0.01},
        {"norm_epsilon": None},
        {"feed_forward": "geglu"},
        {"feed_forward": "geglu_tanh"},
        {"parallel_sublayers": True},
        {"attention_window": 3},
        {"attention_window": None},
        {"attention": "full", "attention_window": None},
        {"attention": "strided"},
        {"attention": "strided", "stride": 2},
        {"attention": "top_k", "attention_window": None, "top_k": 3},
        {"windowed_layers": [1]},
        {"windowed_layers": [0], "windowed_rotary_base": 7.0},
        {"rotary_stretch": 2.0},
        {"rotary_stretch": 2.0, "rotary_stretched_wavelengths": [10.0, 30.0]},
        {"score_scale": 1.0},
        {"norm_offset": True},
        {"embedding_scale": 3.0},
        {"score_cap": 0.4},
        {"logit_cap": 0.5},
    ),
    refused=(
        ({"n_layers": 1}, "layers.1."),
        ({"n_heads": 4}, "W_Q has shape"),
        ({"n_key_value_heads": 1}, "W_K"),
        ({"d_model": 21}, "W_E has shape"),
        ({"d_head": 4}, "W_Q has shape"),
        ({"d_value": 6}, "W_V has shape"),
        ({"d_mlp": 90}, "W_in has shape"),
        ({"n_ctx": 1}, "n_ctx"),
        ({"positions": "learned"}, "W_pos"),
        ({"positions": "learned_shortformer"}, "W_pos"),
        ({"positions": "relative"}, "position_bias"),
        ({"normalization": "layernorm"}, "norm.bias"),
        ({"normalization": "none"}, "norm.weight"),
        ({"normalization_place": "post"}, "final_norm.weight"),
        ({"feed_forward": "relu"}, "W_gate"),
        ({"feed_forward": "none"}, "W_gate"),
        ({"biases": True}, "b_U"),
        ({"qkv_biases": True}, "attention.b_Q"),
        ({"output_biases": True}, "attention.b_O"),
        ({"key_smearing": True}, "attention.smearing"),
        ({"tied_embeddings": True}, "W_U_free"),
        ({"qk_normalization": True}, "q_norm"),
        ({"qk_normalization": True, "qk_normalization_over": "layer"}, "q_norm"),
        ({"normalization_place": "output"}, "attention_norm.weight"),
        ({"normalization_place": "both"}, "out_norm"),
        ({"gates": "dynamic"}, "attention.gates"),
    ),
    idle={"n_ctx": 17},
)  # fmt: skip


@dataclass(frozen=True)
class Format:
    """A format: how its files are written, and changes to what they say."""

    write: Callable[[Path, dict[str, Any]], Path]
    changes: Changes


FORMATS = {kind: Format(huggingface, changes) for kind, changes in CHANGES.items()} | {
    "nanogpt": Format(nanogpt, NANOGPT),
    "transformer-lens": Format(transformer_lens, TRANSFORMER_LENS),
    "gguf": Format(gguf, GGUF),
    "headstream": Format(headstream, HEADSTREAM),
}


def cases(kind: str, which: str) -> list[Any]:
    """Changes of all formats of one kind, as parameters of a test."""
    return [
        pytest.param(name, change, id=f"{name}-{change}")
        for name, format in FORMATS.items()
        for change in getattr(format.changes, which)
    ]


def readings(path: Path) -> tuple[Tensor, Tensor]:
    """Logits by the model that is made of a file, and by the second reading, which isn't told what the first found."""
    foreign = open_foreign(path)
    model = Transformer(foreign.architecture, foreign.d_vocab)
    model.load_state_dict(foreign.read_weights())
    told = foreign if foreign.format == "headstream" else replace(foreign, architecture=None)
    with torch.no_grad():
        return model.double()(TOKENS), reference_logits(told, TOKENS)


def apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.std())


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory) -> Callable[[str], tuple[Tensor, Tensor]]:
    """Both readings of a format's base."""
    read: dict[str, tuple[Tensor, Tensor]] = {}

    def of(kind: str) -> tuple[Tensor, Tensor]:
        if kind not in read:
            format = FORMATS[kind]
            read[kind] = readings(format.write(tmp_path_factory.mktemp("base"), format.changes.base))
        return read[kind]

    return of


def written(folder: Path, kind: str, change: dict[str, Any]) -> Path:
    format = FORMATS[kind]
    return format.write(folder, changed(format.changes.base, change))


@pytest.mark.parametrize(("kind", "change"), cases("", "counted"))
def test_what_counts_changes_both_readings_alike(kind, change, unchanged, tmp_path):
    first, second = readings(written(tmp_path, kind, change))
    assert apart(first, second) < ALIKE
    assert apart(first, unchanged(kind)[0]) > CHANGED
    assert apart(second, unchanged(kind)[1]) > CHANGED


@pytest.mark.parametrize(("kind", "change"), cases("", "idle_besides"))
def test_what_counts_for_nothing_changes_neither(kind, change, unchanged, tmp_path):
    first, second = readings(written(tmp_path, kind, change))
    assert apart(first, unchanged(kind)[0]) < ALIKE
    assert apart(second, unchanged(kind)[1]) < ALIKE


@pytest.mark.parametrize("kind", FORMATS)
def test_all_that_counts_for_nothing_changes_neither(kind, unchanged, tmp_path):
    test_what_counts_for_nothing_changes_neither(kind, FORMATS[kind].changes.idle, unchanged, tmp_path)


@pytest.mark.parametrize(("kind", "case"), cases("", "refused"))
def test_what_cannot_be_is_refused_by_name(kind, case, tmp_path):
    change, words = case
    with pytest.raises(UserError) as refusal:
        open_foreign(written(tmp_path, kind, change)).read_weights()
    assert words in str(refusal.value)


@pytest.mark.parametrize(("kind", "n_heads", "groups"), [("llama", 6, None), ("mistral", 16, 8), ("qwen2", 64, 32)])
def test_keys_and_values_that_a_config_does_not_mention_are_those_of_its_family(kind, n_heads, groups, tmp_path):
    a = TENSORS[kind][0].model_copy(update={"n_heads": n_heads, "n_key_value_heads": groups})
    config = changed(CHANGES[kind].base, {"num_attention_heads": n_heads, "num_key_value_heads": ...})
    first, second = readings(huggingface(tmp_path, config, a))
    assert apart(first, second) < ALIKE
    assert open_foreign(tmp_path).architecture.n_key_value_heads == groups


OVERLOOKED = {
    "gpt2": ("scale_attn_", "num_"),
    "gpt_neox": ("rope_type", "type", "full_attention", "sliding_attention"),
    "llama": ("rope_type", "type", "full_attention", "sliding_attention"),
    "mistral": ("rope_type", "type"),
    "qwen2": ("rope_type", "type"),
    "transformer-lens": (
        "use_attn_scale", "scale_attn", "attention_dir", "post_embedding_ln", "num_experts", "attn_scores_soft_cap",
        "output_logits_soft_cap", "use_normalization_before", "use_qk_norm", "use_NTK", "use_yarn", "rotary_base_local",
        "rotary_scaling_factor",
    ),
    "gguf": ("expert_c", "rope.scal", "attention.scale", "attention.causal", "logit_s", "residual_s", "embedding_s"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        pytest.param(kind, change, id=f"{kind}-{change}")
        for kind, names in OVERLOOKED.items()
        for change, words in FORMATS[kind].changes.refused
        if words.startswith(names)
    ],
)
def test_what_the_first_reading_would_overlook_the_second_does_not(kind, change, unchanged, tmp_path, monkeypatch):
    monkeypatch.setattr(Settings, "must_be", lambda settings, name, neutral, part: None)
    foreign, said = open_foreign(written(tmp_path, kind, change)), ""
    try:
        second = reference_logits(foreign, TOKENS)
    except UndefinedSettingError as undefined:
        said = str(undefined)
    else:
        assert apart(second, unchanged(kind)[0]) > CHANGED
    assert not said or any(name in said for name in names_in(change))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_setting_that_is_read_has_been_changed(kind, tmp_path, monkeypatch):
    """Those whose neutral value is required of every family are tried where they are refused."""
    asked: set[str] = set()
    value = Settings._value

    def recorded(settings: Settings, name: str, default: Any) -> Any:
        asked.add(name)
        return value(settings, name, default)

    monkeypatch.setattr(Settings, "_value", recorded)
    changes = FORMATS[kind].changes

    open_foreign(written(tmp_path, kind, {}))
    if kind == "headstream":
        asked |= set(Architecture.model_fields) | {"rotary_base"}
    tried = [*changes.counted, *changes.idle_besides, changes.idle, *(change for change, _ in changes.refused)]
    required = set(_NEUTRAL) if kind in FAMILIES else set()
    left = asked - required - set().union(*map(names_in, tried)) - OF_A_FILE
    assert not left


OF_A_FILE = {
    "model_type",
    "max_position_embeddings",
    "general.architecture",
    "architecture",
    "d_vocab",
    "tokens",
    "tokens_per_step",
}


def test_every_family_is_tried():
    assert CHANGES.keys() == FAMILIES.keys()


def test_both_readings_know_the_same_activations():
    assert REFERENCE_ACTIVATIONS.keys() == ACTIVATION_NAMES.keys() | GATED_ACTIVATION_NAMES.keys()
