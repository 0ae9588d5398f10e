"""Random models of every family that can be imported: shapes are odd, with primes, one head, shared keys and values."""

from typing import Any

from transformers import (
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GPTNeoConfig,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    OlmoConfig,
    OPTConfig,
    Phi3Config,
    PhiConfig,
    Qwen2Config,
    Qwen3Config,
)

VOCABULARY, N_CTX = 101, 23
ENDS = {"bos_token_id": 0, "eos_token_id": 0}

# What differs from the sizes below, by what a table says of it.
GPT2_SHAPES: dict[str, dict[str, Any]] = {
    "5 heads of 7": {"n_embd": 35, "n_head": 5},
    "1 head of 7, untied, exact GELU": {
        "n_embd": 7,
        "n_head": 1,
        "tie_word_embeddings": False,
        "activation_function": "gelu",
    },
}
GPT_NEO_SHAPES: dict[str, dict[str, Any]] = {
    "5 heads of 7, every second layer with window 3": {
        "hidden_size": 35,
        "num_heads": 5,
        "attention_types": [[["global", "local"], 1], [["global"], 1]],
        "window_size": 3,
    },
    "1 head of 6, untied, windows in all layers": {
        "hidden_size": 6,
        "num_heads": 1,
        "attention_types": [[["local"], 3]],
        "window_size": 4,
        "tie_word_embeddings": False,
    },
    "3 heads of 4, no windows, exact GELU": {
        "hidden_size": 12,
        "num_heads": 3,
        "attention_types": [[["global"], 3]],
        "activation_function": "gelu",
    },
}
GPT_NEOX_SHAPES: dict[str, dict[str, Any]] = {
    "7 heads of 8, a quarter turned": {"hidden_size": 56, "num_attention_heads": 7},
    "1 head of 6, all turned, sublayers in turn": {
        "hidden_size": 6,
        "num_attention_heads": 1,
        "rotary_pct": 1.0,
        "use_parallel_residual": False,
    },
    "3 heads of 10, 6 dimensions turned, tied": {
        "hidden_size": 30,
        "num_attention_heads": 3,
        "rotary_pct": 0.6,
        "tie_word_embeddings": True,
    },
}
LLAMA_SHAPES: dict[str, dict[str, Any]] = {
    "width 30, 6 heads of 14 in 2 groups": {
        "hidden_size": 30,
        "head_dim": 14,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
    },
    "7 heads of 4 in 1 group, tied": {
        "hidden_size": 28,
        "num_attention_heads": 7,
        "num_key_value_heads": 1,
        "tie_word_embeddings": True,
    },
    "1 head of 14, all biases, tanh GELU": {
        "hidden_size": 14,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "attention_bias": True,
        "mlp_bias": True,
        "hidden_act": "gelu_pytorch_tanh",
    },
}
_ROPE = {"rope_theta": 500.0, "factor": 8.0}
LLAMA_SHAPES |= {
    "5 heads of 6, linear scaling": {
        "hidden_size": 30,
        "num_attention_heads": 5,
        "rope_parameters": {"rope_type": "linear", **_ROPE},
    },
    "2 heads of 16, scaling of Llama 3": {
        "hidden_size": 32,
        "num_attention_heads": 2,
        "rope_parameters": {
            **{"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, **_ROPE},
            "original_max_position_embeddings": 64,
        },
    },
    "1 head of 14 in width 14, scaling of Llama 3": {
        "hidden_size": 14,
        "num_attention_heads": 1,
        "tie_word_embeddings": True,
        "rope_parameters": {
            **{"rope_type": "llama3", "low_freq_factor": 2.0, "high_freq_factor": 3.0, **_ROPE},
            "original_max_position_embeddings": 300,
        },
    },
}
MISTRAL_SHAPES: dict[str, dict[str, Any]] = {
    "6 heads of 8 in 3 groups, window 5": {
        "hidden_size": 48,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "sliding_window": 5,
    },
    "1 head of 12, no window": {
        "hidden_size": 12,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "sliding_window": None,
    },
}
QWEN2_SHAPES: dict[str, dict[str, Any]] = {
    "4 heads of 6 in 2 groups": {"hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2},
    "5 heads of 2, tied, window 3": {
        "hidden_size": 10,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "tie_word_embeddings": True,
        "use_sliding_window": True,
        "sliding_window": 3,
        "max_window_layers": 0,
    },
}
QWEN3_SHAPES: dict[str, dict[str, Any]] = {
    "width 30, 6 heads of 14 in 2 groups": {
        "hidden_size": 30,
        "head_dim": 14,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
    },
    "5 heads of 2, tied, window 3 in the last layer": {
        "hidden_size": 10,
        "head_dim": 2,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "tie_word_embeddings": True,
        "use_sliding_window": True,
        "sliding_window": 3,
        "max_window_layers": 2,
    },
    "1 head of 6, biases": {
        "hidden_size": 14,
        "head_dim": 6,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "attention_bias": True,
    },
}
OLMO_SHAPES: dict[str, dict[str, Any]] = {
    "5 heads of 6": {"hidden_size": 30, "num_attention_heads": 5},
    "6 heads of 4 in 2 groups, tied": {
        "hidden_size": 24,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "1 head of 14, biases, tanh GELU": {
        "hidden_size": 14,
        "num_attention_heads": 1,
        "attention_bias": True,
        "hidden_act": "gelu_pytorch_tanh",
    },
}
PHI_SHAPES: dict[str, dict[str, Any]] = {
    "5 heads of 8, half turned": {"hidden_size": 40, "num_attention_heads": 5},
    "6 heads of 4 in 2 groups, all turned, exact GELU": {
        "hidden_size": 24,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "partial_rotary_factor": 1.0,
        "hidden_act": "gelu",
    },
    "1 head of 10, 4 dimensions turned": {"hidden_size": 10, "num_attention_heads": 1, "partial_rotary_factor": 0.4},
}
PHI3_SHAPES: dict[str, dict[str, Any]] = {
    "5 heads of 6": {"hidden_size": 30, "num_attention_heads": 5},
    "6 heads of 8 in 2 groups, half turned, tied": {
        "hidden_size": 48,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "partial_rotary_factor": 0.5,
        "tie_word_embeddings": True,
    },
    "1 head of 14, window 5": {"hidden_size": 14, "num_attention_heads": 1, "sliding_window": 5},
}
OPT_SHAPES: dict[str, dict[str, Any]] = {
    "5 heads of 7": {"hidden_size": 35, "word_embed_proj_dim": 35, "num_attention_heads": 5},
    "1 head of 7, untied": {
        "hidden_size": 7,
        "word_embed_proj_dim": 7,
        "num_attention_heads": 1,
        "tie_word_embeddings": False,
    },
    "3 heads of 4, exact GELU": {
        "hidden_size": 12,
        "word_embed_proj_dim": 12,
        "num_attention_heads": 3,
        "activation_function": "gelu",
    },
}
FIRST_GEMMA_SHAPES: dict[str, dict[str, Any]] = {
    "width 30, 6 heads of 14 in 2 groups": {
        "hidden_size": 30,
        "head_dim": 14,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
    },
    "1 head of 6, untied, biases": {
        "hidden_size": 14,
        "head_dim": 6,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "attention_bias": True,
        "tie_word_embeddings": False,
    },
    "5 heads of 2, named gelu": {
        "hidden_size": 10,
        "head_dim": 2,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "hidden_act": "gelu",
    },
}
GEMMA_SHAPES: dict[str, dict[str, Any]] = {
    "width 30, 6 heads of 14 in 2 groups, window 5": {
        "hidden_size": 30,
        "head_dim": 14,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "query_pre_attn_scalar": 9,
        "sliding_window": 5,
        "final_logit_softcapping": 3.0,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
    "1 head of 6, untied, biases": {
        "hidden_size": 14,
        "head_dim": 6,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "attention_bias": True,
        "tie_word_embeddings": False,
        "final_logit_softcapping": None,
        "sliding_window": 3,
        "layer_types": ["full_attention", "full_attention", "sliding_attention"],
    },
    "5 heads of 2, all with window 4": {
        "hidden_size": 10,
        "head_dim": 2,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "sliding_window": 4,
        "layer_types": 3 * ["sliding_attention"],
    },
}
SIZES = {"max_position_embeddings": N_CTX, "num_hidden_layers": 3, "intermediate_size": 37}
FAMILIES = (
    (GPT2Config, GPT2_SHAPES, {"n_positions": N_CTX, "n_layer": 3}),
    (GPTNeoConfig, GPT_NEO_SHAPES, {"max_position_embeddings": N_CTX, "num_layers": 3, "intermediate_size": 37}),
    (GPTNeoXConfig, GPT_NEOX_SHAPES, SIZES),
    (LlamaConfig, LLAMA_SHAPES, SIZES),
    (MistralConfig, MISTRAL_SHAPES, SIZES),
    (Qwen2Config, QWEN2_SHAPES, SIZES),
    (Qwen3Config, QWEN3_SHAPES, SIZES),
    (OlmoConfig, OLMO_SHAPES, SIZES),
    (Olmo2Config, OLMO_SHAPES, SIZES),
    (PhiConfig, PHI_SHAPES, SIZES),
    (Phi3Config, PHI3_SHAPES, SIZES | {"pad_token_id": 0}),
    (
        OPTConfig,
        OPT_SHAPES,
        {"max_position_embeddings": N_CTX, "num_hidden_layers": 3, "ffn_dim": 37, "pad_token_id": 1},
    ),
    (GemmaConfig, FIRST_GEMMA_SHAPES, SIZES),
    (Gemma2Config, GEMMA_SHAPES, SIZES),
    (Gemma3TextConfig, GEMMA_SHAPES, SIZES),
)

# Models that training makes here, and that TransformerLens has, too.
_OWN = {"n_layers": 2, "n_heads": 3, "d_model": 18, "n_ctx": N_CTX, "positions": "learned"}
_TURNED = _OWN | {"positions": "rotary", "normalization": "rmsnorm"}
OWN: dict[str, dict[str, Any]] = {
    "attention alone": _OWN,
    "attention and LayerNorm, tied": _OWN | {"normalization": "layernorm", "tied_embeddings": True},
    "LayerNorm, tanh GELU, all biases": _OWN
    | {"normalization": "layernorm", "feed_forward": "gelu_tanh", "biases": True},
    "sinusoidal positions, ReLU": _OWN | {"positions": "sinusoidal", "feed_forward": "relu"},
    "no positions, exact GELU": _OWN | {"positions": "none", "feed_forward": "gelu"},
    "neighbouring pairs turned": _TURNED,
    "pairs half a head apart, gated, grouped": _TURNED
    | {"rotary_pairs": "half-split", "n_key_value_heads": 1, "feed_forward": "swiglu", "d_mlp": 31},
    "a third of each head turned, biases of q, k and v": _TURNED
    | {"rotary_pairs": "half-split", "rotary_fraction": 0.34, "feed_forward": "geglu_tanh", "qkv_biases": True},
}
