"""Changes to the settings of a model's config, and those that several of Hugging Face's families have in common."""

from dataclasses import dataclass
from typing import Any

Settings = dict[str, Any]  # changes to a config; a value of ... takes a setting out

Each = tuple[Settings, ...]
Refused = tuple[tuple[Settings, str], ...]  # and words that the refusal has

VOCABULARY, N_CTX = 37, 19
FULL, WINDOWED = "full_attention", "sliding_attention"
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

ROTARY: Each = (
    {"rope_scaling": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_scaling": {"type": "default", "rope_theta": 7.0}},
    {"rope_scaling": {"rope_theta": 7.0}},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_parameters": {"rope_theta": 7}},
    {"rope_scaling": {}, "rope_parameters": {"rope_theta": 7.0}},
    {"rope_scaling": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_scaling": {"rope_theta": 7.0}, "rope_parameters": {"rope_type": "default", "rope_theta": 3.0}},
)
ROTARY_IDLE: Each = (
    {"rope_scaling": {"rope_type": "default"}},
    {"rope_scaling": {"rope_type": "default"}, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_parameters": {"rope_type": "default"}},
)
_UNSAID = {name: value for name, value in OF_LLAMA3.items() if name != CONTEXT}
LLAMA3_CONTEXTS: Each = (
    {"rope_scaling": OF_LLAMA3, CONTEXT: 16},
    {"rope_scaling": _UNSAID, CONTEXT: 16},
    {"rope_scaling": _UNSAID},
    {"rope_scaling": _UNSAID, "max_position_embeddings": 40},
)
STRETCHED: Each = (
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"rope_scaling": {"type": "linear", "factor": 2, "rope_theta": 7.0}},
    {"rope_parameters": {"rope_type": "linear", "factor": 2.0}},
    {"rope_scaling": OF_LLAMA3},
    {"rope_parameters": OF_LLAMA3 | {"rope_theta": 7.0}},
    *LLAMA3_CONTEXTS,
    *({"rope_scaling": OF_LLAMA3 | {name: OF_LLAMA3[name] * 2}} for name in ("factor", "low_freq_factor")),
    *({"rope_scaling": OF_LLAMA3 | {name: OF_LLAMA3[name] // 2}} for name in (CONTEXT, "high_freq_factor")),
)
STRETCHED_REFUSED: Refused = (
    *(
        ({"rope_scaling": {"rope_type": kind, "factor": 2.0}}, f"rope_type must be default, got {kind}")
        for kind in ("linear", "llama3")
    ),
    ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "type must be default, got linear"),
    ({"rope_parameters": {"rope_type": "linear", "factor": 2.0}}, "rope_type must be default, got linear"),
)
ROTARY_REFUSED: Refused = (
    *(
        ({"rope_scaling": {"rope_type": kind, "factor": 2.0}}, f"rope_type must be default, got {kind}")
        for kind in ("dynamic", "longrope")
    ),
    ({"rope_parameters": YARN}, "rope_type must be default, got yarn"),
    ({"rope_parameters": {"full_attention": {"rope_theta": 7.0}}}, "full_attention must be none"),
    ({"rope_scaling": {"sliding_attention": {"rope_theta": 7.0}}}, "sliding_attention must be none"),
)


def llama_config(model_type: str, own: Settings) -> Settings:
    """A config of a relative of Llama, in which nothing is as the library has it by default."""
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


LLAMA_COUNTED: Each = (
    {"num_attention_heads": 12, "num_key_value_heads": 4, "head_dim": 2, "hidden_size": 18},
    *({"hidden_act": kind} for kind in ("silu", "swish", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", ...)),
    {"rms_norm_eps": 0.01},
    {"rms_norm_eps": ...},
    {"rope_theta": 7},
    {"rope_theta": ...},
    *ROTARY,
    *STRETCHED,
)
LLAMA_REFUSED: Refused = (
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
    *ROTARY_REFUSED,
)
LAYERS_REFUSED: Refused = (
    ({"layer_types": [FULL]}, "layer_types must say"),
    ({"layer_types": [FULL, WINDOWED, FULL]}, "layer_types must say"),
    ({"layer_types": [FULL, "chunked_attention"]}, "layer_types must say"),
)
LLAMA_IDLE = IDLE | {"max_position_embeddings": 17}


def changed(config: Settings, change: Settings) -> Settings:
    """A config with a change."""
    return {name: value for name, value in {**config, **change}.items() if value is not ...}


def names_in(change: Settings) -> set[str]:
    """The settings that a change names, those within sections included."""
    inner = [names_in(value) for value in change.values() if isinstance(value, dict)]
    return set(change).union(*inner)
