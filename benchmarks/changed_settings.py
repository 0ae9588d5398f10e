"""Every setting of the configs of Hugging Face's families, changed: those that count, and those that don't.

Both readings must change as transformers does: `make peers` asks transformers, and a test asks that none is left out.
"""

from dataclasses import dataclass
from typing import Any

Settings = dict[str, Any]  # changes to a config; a value of ... takes a setting out

Each = tuple[Settings, ...]
Refused = tuple[tuple[Settings, str], ...]  # and words that the refusal has

VOCABULARY, N_CTX = 37, 19
CONTEXT = "original_max_position_embeddings"
OF_LLAMA3: dict[str, Any] = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    CONTEXT: 32,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}


@dataclass(frozen=True)
class Changes:
    """A config of one family, and changes to it."""

    base: Settings  # nothing in it is as the library has it by default
    counted: Each  # change what the model computes
    refused: Refused
    idle: Settings  # change nothing
    idle_besides: Each = ()  # change nothing either, each for itself


IDLE: Settings = {
    "_name_or_path": "elsewhere",
    "architectures": ["Some"],
    "attention_dropout": 0.2,
    "bos_token_id": 3,
    "chunk_size_feed_forward": 2,
    "dtype": "float32",
    "eos_token_id": 4,
    "id2label": {"0": "no", "1": "yes"},
    "initializer_range": 0.7,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "label2id": {"no": 0, "yes": 1},
    "output_attentions": False,
    "output_hidden_states": False,
    "pad_token_id": 5,
    "problem_type": None,
    "return_dict": True,
    "transformers_version": "5.0.0",
    "use_cache": False,
}

_ROTARY: Each = (
    {"rope_scaling": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_scaling": {"type": "default", "rope_theta": 7.0}},
    {"rope_scaling": {"rope_theta": 7.0}},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_parameters": {"rope_theta": 7}},
    {"rope_scaling": {}, "rope_parameters": {"rope_theta": 7.0}},
    {"rope_scaling": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_scaling": {"rope_theta": 7.0}, "rope_parameters": {"rope_type": "default", "rope_theta": 3.0}},
)
_ROTARY_IDLE: Each = (
    {"rope_scaling": {"rope_type": "default"}},
    {"rope_scaling": {"rope_type": "default"}, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_parameters": {"rope_type": "default"}},
)
_STRETCHED: Each = (
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"rope_scaling": {"type": "linear", "factor": 2, "rope_theta": 7.0}},
    {"rope_parameters": {"rope_type": "linear", "factor": 2.0}},
    {"rope_scaling": OF_LLAMA3},
    {"rope_parameters": OF_LLAMA3 | {"rope_theta": 7.0}},
    *({"rope_scaling": OF_LLAMA3 | {name: OF_LLAMA3[name] * 2}} for name in ("factor", "low_freq_factor")),
    *({"rope_scaling": OF_LLAMA3 | {name: OF_LLAMA3[name] // 2}} for name in (CONTEXT, "high_freq_factor")),
)
_STRETCHED_REFUSED: Refused = (
    *(
        ({"rope_scaling": {"rope_type": kind, "factor": 2.0}}, f"rope_type must be default, got {kind}")
        for kind in ("linear", "llama3")
    ),
    ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "type must be default, got linear"),
    ({"rope_parameters": {"rope_type": "linear", "factor": 2.0}}, "rope_type must be default, got linear"),
)
_ROTARY_REFUSED: Refused = (
    *(
        ({"rope_scaling": {"rope_type": kind, "factor": 2.0}}, f"rope_type must be default, got {kind}")
        for kind in ("dynamic", "longrope")
    ),
    ({"rope_parameters": YARN}, "rope_type must be default, got yarn"),
    ({"rope_parameters": {"full_attention": {"rope_theta": 7.0}}}, "full_attention must be none"),
    ({"rope_scaling": {"sliding_attention": {"rope_theta": 7.0}}}, "sliding_attention must be none"),
)

GPT2 = Changes(
    base={
        "model_type": "gpt2",
        "vocab_size": VOCABULARY,
        "n_layer": 2,
        "n_head": 3,
        "n_embd": 15,
        "n_positions": N_CTX,
        "n_inner": 23,
        "activation_function": "relu",
        "layer_norm_epsilon": 0.1,
        "tie_word_embeddings": False,
    },
    counted=(
        {"n_head": 5},
        *({"activation_function": kind} for kind in ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", ...)),
        {"layer_norm_epsilon": 0.01},
        {"layer_norm_epsilon": ...},
    ),
    refused=(
        ({"n_layer": 1}, "transformer.h.1."),
        ({"n_layer": 3}, "transformer.h.2."),
        ({"n_embd": 18}, "wte.weight has shape"),
        ({"n_inner": 24}, "mlp.c_fc.weight has shape"),
        ({"n_inner": ...}, "mlp.c_fc.weight has shape"),
        ({"n_positions": 18}, "wpe.weight has shape"),
        ({"n_positions": ...}, "wpe.weight has shape"),
        ({"vocab_size": 38}, "wte.weight has shape"),
        ({"tie_word_embeddings": True}, "lm_head.weight differs"),
        ({"tie_word_embeddings": ...}, "lm_head.weight differs"),
        ({"activation_function": "silu"}, "activation_function must be"),
        ({"scale_attn_weights": False}, "scale_attn_weights must be"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx must be"),
        ({"add_cross_attention": True}, "add_cross_attention must be"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads must be"),
        ({"num_attention_heads": 5}, "num_attention_heads must be"),
        ({"num_hidden_layers": 1}, "num_hidden_layers must be"),
        ({"hidden_size": 30}, "hidden_size must be"),
    ),
    idle=IDLE
    | {
        "attn_pdrop": 0.3,
        "embd_pdrop": 0.3,
        "resid_pdrop": 0.3,
        "reorder_and_upcast_attn": True,
        "summary_activation": "tanh",
        "summary_first_dropout": 0.3,
        "summary_proj_to_labels": False,
        "summary_type": "mean",
        "summary_use_proj": False,
    },
    idle_besides=({"num_attention_heads": 3, "hidden_size": 15, "num_hidden_layers": 2},),
)
GPT_NEOX = Changes(
    base={
        "model_type": "gpt_neox",
        "vocab_size": VOCABULARY,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "hidden_size": 24,
        "intermediate_size": 29,
        "max_position_embeddings": N_CTX,
        "hidden_act": "relu",
        "layer_norm_eps": 0.1,
        "rotary_pct": 0.5,
        "rotary_emb_base": 70.0,
        "use_parallel_residual": False,
        "tie_word_embeddings": False,
    },
    counted=(
        {"num_attention_heads": 2},
        *({"hidden_act": kind} for kind in ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", ...)),
        {"layer_norm_eps": 0.01},
        {"layer_norm_eps": ...},
        {"rotary_pct": 1.0},
        {"rotary_pct": ...},
        {"rotary_emb_base": 7},
        {"rotary_emb_base": ...},
        {"rotary_emb_base": ..., "rope_theta": 70.0},
        {"use_parallel_residual": True},
        {"use_parallel_residual": ...},
        *_ROTARY,
        {"rope_scaling": {"rope_type": "default", "partial_rotary_factor": 1.0}},
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0}},
    ),
    refused=(
        ({"num_hidden_layers": 1}, "gpt_neox.layers.1."),
        ({"hidden_size": 27}, "embed_in.weight has shape"),
        ({"intermediate_size": 30}, "dense_h_to_4h.weight has shape"),
        ({"vocab_size": 38}, "embed_in.weight has shape"),
        ({"tie_word_embeddings": True}, "embed_out.weight differs"),
        ({"attention_bias": False}, "attention.dense.bias"),
        ({"hidden_act": "silu"}, "hidden_act must be"),
        *_STRETCHED_REFUSED,
        *_ROTARY_REFUSED,
    ),
    idle=IDLE | {"classifier_dropout": 0.3, "hidden_dropout": 0.3, "max_position_embeddings": 17},
    idle_besides=({"rope_theta": 7.0}, {"partial_rotary_factor": 1.0}, {"max_position_embeddings": ...}, *_ROTARY_IDLE),
)


def _llama(model_type: str, own: Settings) -> Settings:
    return {
        "model_type": model_type,
        "vocab_size": VOCABULARY,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "hidden_size": 18,
        "head_dim": 4,
        "intermediate_size": 31,
        "max_position_embeddings": N_CTX,
        "hidden_act": "gelu",
        "rms_norm_eps": 0.1,
        "rope_theta": 70.0,
        "tie_word_embeddings": False,
        **own,
    }


_LLAMA_COUNTED: Each = (
    {"num_attention_heads": 12, "num_key_value_heads": 4, "head_dim": 2, "hidden_size": 18},
    *({"hidden_act": kind} for kind in ("silu", "swish", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", ...)),
    {"rms_norm_eps": 0.01},
    {"rms_norm_eps": ...},
    {"rope_theta": 7},
    {"rope_theta": ...},
    *_ROTARY,
    *_STRETCHED,
)
_LLAMA_REFUSED: Refused = (
    ({"num_hidden_layers": 1}, "model.layers.1."),
    ({"num_attention_heads": 8}, "q_proj.weight has shape"),
    ({"num_key_value_heads": 3}, "k_proj.weight has shape"),
    ({"num_key_value_heads": None}, "k_proj.weight has shape"),
    ({"hidden_size": 24}, "embed_tokens.weight has shape"),
    ({"head_dim": 6}, "q_proj.weight has shape"),
    ({"head_dim": ...}, "d_head must be even"),
    ({"intermediate_size": 30}, "gate_proj.weight has shape"),
    ({"vocab_size": 38}, "embed_tokens.weight has shape"),
    ({"tie_word_embeddings": True}, "lm_head.weight differs"),
    ({"hidden_act": "relu"}, "hidden_act must be"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor must be"),
    ({"rope_scaling": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor must be"),
    ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor must be"),
    ({"rope_interleaved": True}, "rope_interleaved must be"),
    *_ROTARY_REFUSED,
)
_LLAMA_IDLE = IDLE | {"max_position_embeddings": 17}
LLAMA = Changes(
    base=_llama("llama", {"attention_bias": False, "mlp_bias": False}),
    counted=_LLAMA_COUNTED,
    refused=(
        *_LLAMA_REFUSED,
        ({"num_key_value_heads": ...}, "k_proj.weight has shape"),
        ({"attention_bias": True}, "q_proj.bias"),
        ({"mlp_bias": True}, "gate_proj.bias"),
    ),
    idle=_LLAMA_IDLE | {"pretraining_tp": 2},
    idle_besides=({"sliding_window": 3}, {"max_position_embeddings": ...}, *_ROTARY_IDLE),
)
MISTRAL = Changes(
    base=_llama("mistral", {"sliding_window": 5}),
    counted=(
        *_LLAMA_COUNTED,
        *({"sliding_window": keys} for keys in (3, None, ...)),
        {"layer_types": ["full_attention", "full_attention"]},
        {"layer_types": ["sliding_attention", "full_attention"]},
    ),
    refused=(*_LLAMA_REFUSED, ({"num_key_value_heads": ...}, "n_key_value_heads must divide")),
    idle=_LLAMA_IDLE,
    idle_besides=({"max_position_embeddings": ...}, *_ROTARY_IDLE),
)
QWEN2 = Changes(
    base=_llama("qwen2", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}),
    counted=(
        *_LLAMA_COUNTED,
        *({"sliding_window": keys} for keys in (3, None, ...)),
        {"use_sliding_window": False},
        {"use_sliding_window": ...},
        {"max_window_layers": 2},
        {"max_window_layers": ...},
        {"layer_types": ["full_attention", "full_attention"]},
        {"max_window_layers": 1},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"layer_types": ["sliding_attention", "full_attention"]},
    ),
    refused=(*_LLAMA_REFUSED, ({"num_key_value_heads": ...}, "n_key_value_heads must divide")),
    idle=_LLAMA_IDLE | {"use_mrope": False},
    idle_besides=(
        {"layer_types": ["sliding_attention", "sliding_attention"], "max_window_layers": 28},
        {"max_position_embeddings": ...},
        *_ROTARY_IDLE,
    ),
)
CHANGES = {changes.base["model_type"]: changes for changes in (GPT2, GPT_NEOX, LLAMA, MISTRAL, QWEN2)}


def changed(config: Settings, change: Settings) -> Settings:
    """A config with a change."""
    return {name: value for name, value in {**config, **change}.items() if value is not ...}


def names_in(change: Settings) -> set[str]:
    """The settings that a change names, those within sections included."""
    inner = [names_in(value) for value in change.values() if isinstance(value, dict)]
    return set(change).union(*inner)
