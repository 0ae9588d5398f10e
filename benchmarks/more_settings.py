"""Every setting of the configs of more families, changed: GPT-Neo, OPT, Phi, OLMo, Qwen3 and Gemma with their kin."""

from benchmarks.setting_changes import (
    FULL,
    IDLE,
    LAYERS_REFUSED,
    LLAMA3_CONTEXTS,
    LLAMA_COUNTED,
    LLAMA_IDLE,
    LLAMA_REFUSED,
    N_CTX,
    OF_LLAMA3,
    ROTARY,
    ROTARY_IDLE,
    ROTARY_REFUSED,
    STRETCHED,
    STRETCHED_REFUSED,
    VOCABULARY,
    WINDOWED,
    Changes,
    Each,
    Refused,
    Settings,
    llama_config,
)

GELUS = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", ...)
BOTH = {"attention_layers": ["global", "local"]}

GPT_NEO = Changes(
    base={
        "model_type": "gpt_neo",
        "vocab_size": VOCABULARY,
        "num_layers": 2,
        "num_heads": 3,
        "hidden_size": 15,
        "intermediate_size": 23,
        "max_position_embeddings": N_CTX,
        "attention_types": [[["local", "global"], 1]],
        "window_size": 5,
        "activation_function": "relu",
        "layer_norm_epsilon": 0.1,
        "tie_word_embeddings": False,
    },
    counted=(
        {"num_heads": 5},
        *({"activation_function": kind} for kind in GELUS),
        {"layer_norm_epsilon": 0.01},
        {"layer_norm_epsilon": ...},
        {"window_size": 3},
        {"window_size": ...},
        {"attention_types": [[["global", "local"], 1]]},
        {"attention_types": [[["local"], 2]]},
        {"attention_types": [[["global"], 1], [["global"], 1]]},
        {"attention_types": ..., **BOTH},
        {"attention_types": [[["global", "local"], 1]], **BOTH},
    ),
    refused=(
        ({"num_layers": 1}, "of each of 1 layers"),
        ({"num_layers": 3, "attention_types": [[["local"], 3]]}, "transformer.h.2."),
        ({"attention_types": ...}, "of each of 2 layers"),
        (BOTH, "and attention_layers the same"),
        ({"hidden_size": 18}, "wte.weight has shape"),
        ({"intermediate_size": 24}, "mlp.c_fc.weight has shape"),
        ({"intermediate_size": ...}, "mlp.c_fc.weight has shape"),
        ({"max_position_embeddings": 18}, "wpe.weight has shape"),
        ({"max_position_embeddings": ...}, "wpe.weight has shape"),
        ({"vocab_size": 38}, "wte.weight has shape"),
        ({"tie_word_embeddings": True}, "lm_head.weight differs"),
        ({"tie_word_embeddings": ...}, "lm_head.weight differs"),
        ({"activation_function": "silu"}, "activation_function must be"),
        ({"num_attention_heads": 5}, "num_attention_heads must be"),
        ({"num_hidden_layers": 1}, "num_hidden_layers must be"),
    ),
    idle=IDLE | {"resid_dropout": 0.3, "embed_dropout": 0.3, "classifier_dropout": 0.3},
    idle_besides=({"attention_layers": ["local", "global"]}, {"num_attention_heads": 3, "num_hidden_layers": 2}),
)
OPT = Changes(
    base={
        "model_type": "opt",
        "vocab_size": VOCABULARY,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "hidden_size": 15,
        "word_embed_proj_dim": 15,
        "ffn_dim": 23,
        "max_position_embeddings": N_CTX,
        "activation_function": "gelu",
        "tie_word_embeddings": False,
    },
    counted=({"num_attention_heads": 5}, *({"activation_function": kind} for kind in ("relu", *GELUS[1:]))),
    refused=(
        ({"num_hidden_layers": 1}, "model.decoder.layers.1."),
        ({"num_hidden_layers": 3}, "model.decoder.layers.2."),
        ({"hidden_size": 18, "word_embed_proj_dim": 18}, "embed_tokens.weight has shape"),
        ({"word_embed_proj_dim": 12}, "word_embed_proj_dim must be"),
        ({"ffn_dim": 24}, "fc1.weight has shape"),
        ({"max_position_embeddings": 18}, "embed_positions.weight has shape"),
        ({"max_position_embeddings": ...}, "embed_positions.weight has shape"),
        ({"vocab_size": 38}, "embed_tokens.weight has shape"),
        ({"tie_word_embeddings": True}, "lm_head.weight differs"),
        ({"tie_word_embeddings": ...}, "lm_head.weight differs"),
        ({"activation_function": "silu"}, "activation_function must be"),
        ({"do_layer_norm_before": False}, "do_layer_norm_before must be"),
        ({"_remove_final_layer_norm": True}, "_remove_final_layer_norm must be"),
        ({"enable_bias": False}, "enable_bias must be"),
        ({"layer_norm_elementwise_affine": False}, "layer_norm_elementwise_affine must be"),
    ),
    idle=IDLE | {"dropout": 0.3, "layerdrop": 0.3, "init_std": 0.7, "activation_dropout": 0.3},
    idle_besides=({"word_embed_proj_dim": ...}, {"do_layer_norm_before": True, "enable_bias": True}),
)
PHI = Changes(
    base={
        "model_type": "phi",
        "vocab_size": VOCABULARY,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "hidden_size": 24,
        "intermediate_size": 29,
        "max_position_embeddings": N_CTX,
        "hidden_act": "relu",
        "layer_norm_eps": 0.1,
        "partial_rotary_factor": 1.0,
        "rope_theta": 70.0,
        "tie_word_embeddings": False,
    },
    counted=(
        {"num_attention_heads": 6, "num_key_value_heads": 2},
        *({"hidden_act": kind} for kind in GELUS),
        {"layer_norm_eps": 0.01},
        {"layer_norm_eps": ...},
        {"partial_rotary_factor": 0.25},
        {"partial_rotary_factor": ...},
        {"rope_scaling": {"rope_type": "default", "partial_rotary_factor": 0.25}},
        {"rope_parameters": {"rope_theta": 70.0, "partial_rotary_factor": 0.25}},
        {"rope_theta": 7},
        {"rope_theta": ...},
        *ROTARY,
        *STRETCHED,
    ),
    refused=(
        ({"num_hidden_layers": 1}, "model.layers.1."),
        ({"num_attention_heads": 4}, "k_proj.weight has shape"),
        ({"num_key_value_heads": 3}, "k_proj.weight has shape"),
        ({"num_key_value_heads": ...}, "k_proj.weight has shape"),
        ({"hidden_size": 30}, "embed_tokens.weight has shape"),
        ({"intermediate_size": 30}, "mlp.fc1.weight has shape"),
        ({"vocab_size": 38}, "embed_tokens.weight has shape"),
        ({"tie_word_embeddings": True}, "lm_head.weight differs"),
        ({"hidden_act": "silu"}, "hidden_act must be"),
        ({"qk_layernorm": True}, "qk_layernorm must be"),
        *ROTARY_REFUSED,
    ),
    idle=IDLE | {"max_position_embeddings": 17, "embd_pdrop": 0.3, "resid_pdrop": 0.3},
    idle_besides=({"max_position_embeddings": ...}, {"qk_layernorm": False}, {"sliding_window": 3}, *ROTARY_IDLE),
)


def _without(refused: Refused, *named: str) -> Refused:
    """Refused changes but those that name one of these settings alone."""
    return tuple((change, words) for change, words in refused if not set(change) <= set(named))


def _but(each: Each, *named: str) -> Each:
    """Changes but those that name one of these settings."""
    return tuple(change for change in each if not set(change) & set(named))


_PHI3_BASE = {name: value for name, value in llama_config("phi3", {"hidden_size": 24}).items() if name != "head_dim"}
PHI3 = Changes(
    base=_PHI3_BASE
    | {
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "partial_rotary_factor": 0.5,
        "sliding_window": 5,
        "original_max_position_embeddings": 11,
        "pad_token_id": 0,
    },
    counted=(
        {"num_attention_heads": 6, "num_key_value_heads": 2, "partial_rotary_factor": 1.0},
        *({"hidden_act": kind} for kind in ("silu", "swish", *GELUS[1:])),
        {"rms_norm_eps": 0.01},
        {"rms_norm_eps": ...},
        {"partial_rotary_factor": 0.25},
        {"partial_rotary_factor": ...},
        {"rope_scaling": {"rope_type": "default", "partial_rotary_factor": 0.25}},
        {"rope_parameters": {"rope_theta": 70.0, "partial_rotary_factor": 0.25}},
        *({"sliding_window": keys} for keys in (3, None, ...)),
        {"rope_theta": 7},
        {"rope_theta": ...},
        *ROTARY,
    ),
    refused=(
        ({"num_hidden_layers": 1}, "model.layers.1."),
        ({"num_attention_heads": 6}, "qkv_proj.weight has shape"),
        ({"num_key_value_heads": 3}, "qkv_proj.weight has shape"),
        ({"num_key_value_heads": ...}, "qkv_proj.weight has shape"),
        ({"hidden_size": 36}, "embed_tokens.weight has shape"),
        ({"head_dim": 4}, "o_proj.weight has shape"),
        ({"intermediate_size": 30}, "mlp.down_proj.weight has shape"),
        ({"vocab_size": 38}, "embed_tokens.weight has shape"),
        ({"tie_word_embeddings": True}, "lm_head.weight differs"),
        ({"hidden_act": "relu"}, "hidden_act must be"),
        ({"rope_interleaved": True}, "rope_interleaved must be"),
        *STRETCHED_REFUSED,
        *ROTARY_REFUSED,
    ),
    idle=LLAMA_IDLE | {"embd_pdrop": 0.3, "resid_pdrop": 0.3, "original_max_position_embeddings": 13},
    idle_besides=(
        {"max_position_embeddings": ...},
        {"head_dim": 8},
        {"auto_map": {"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"}},
        {"attention_bias": False},
        *ROTARY_IDLE,
    ),
)
_LAYERS: Each = ({"layer_types": [FULL, FULL]}, {"layer_types": [WINDOWED, FULL]}, {"layer_types": [FULL, WINDOWED]})
QWEN3 = Changes(
    base=llama_config(
        "qwen3", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0, "attention_bias": True}
    ),
    counted=(
        *LLAMA_COUNTED[1:],
        *({"sliding_window": keys} for keys in (3, None, ...)),
        {"use_sliding_window": False},
        {"use_sliding_window": ...},
        *({"max_window_layers": first} for first in (1, 2, ...)),
        *_LAYERS,
    ),
    refused=(
        *_without(LLAMA_REFUSED, "head_dim"),
        *(({"head_dim": width}, "q_norm.weight has shape") for width in (6, ...)),
        ({"num_key_value_heads": ...}, "n_key_value_heads must divide"),
        ({"attention_bias": False}, "_proj.bias"),
        ({"attention_bias": ...}, "_proj.bias"),
        *LAYERS_REFUSED,
    ),
    idle=LLAMA_IDLE,
    idle_besides=(
        {"layer_types": [WINDOWED, WINDOWED], "max_window_layers": 28},
        {"max_position_embeddings": ...},
        *ROTARY_IDLE,
    ),
)
OLMO = Changes(
    base={name: value for name, value in llama_config("olmo", {"attention_bias": True}).items() if name[:3] != "rms"},
    counted=_but(LLAMA_COUNTED, "rms_norm_eps"),
    refused=(
        *LLAMA_REFUSED,
        ({"num_key_value_heads": ...}, "k_proj.weight has shape"),
        ({"attention_bias": False}, "_proj.bias"),
        ({"attention_bias": ...}, "_proj.bias"),
        ({"clip_qkv": 8.0}, "clip_qkv must be"),
    ),
    idle=LLAMA_IDLE | {"pretraining_tp": 2, "rms_norm_eps": 0.3},
    idle_besides=({"max_position_embeddings": ...}, {"clip_qkv": None}, {"sliding_window": 3}, *ROTARY_IDLE),
)
OLMO2 = Changes(
    base=llama_config("olmo2", {"attention_bias": True}),
    counted=LLAMA_COUNTED[1:],
    refused=(
        *_without(LLAMA_REFUSED, "num_attention_heads", "num_key_value_heads", "head_dim"),
        ({"num_attention_heads": 8}, "q_norm.weight has shape"),
        ({"head_dim": 6}, "q_norm.weight has shape"),
        ({"head_dim": ...}, "d_head must be even"),
        *(({"num_key_value_heads": n}, "k_norm.weight has shape") for n in (3, None, ...)),
        ({"attention_bias": False}, "_proj.bias"),
        ({"attention_bias": ...}, "_proj.bias"),
    ),
    idle=LLAMA_IDLE | {"pretraining_tp": 2},
    idle_besides=({"max_position_embeddings": ...}, {"sliding_window": 3}, *ROTARY_IDLE),
)


def _gemma_config(model_type: str, own: Settings) -> Settings:
    shared = {name: value for name, value in llama_config(model_type, {}).items() if name != "hidden_act"}
    return shared | {"hidden_activation": "gelu", "attention_bias": True, **own}


_GEMMA_COUNTED: Each = (
    *_but(LLAMA_COUNTED, "hidden_act"),
    *({"hidden_activation": kind} for kind in ("silu", "swish", *GELUS[1:])),
    *({"query_pre_attn_scalar": scalar} for scalar in (16, ...)),
    *({"final_logit_softcapping": cap} for cap in (1.5, None, ...)),
    *({"sliding_window": keys} for keys in (3, ...)),
    *_LAYERS,
)
_GEMMA_REFUSED: Refused = (
    *_without(LLAMA_REFUSED, "hidden_act", "head_dim", "num_key_value_heads", "num_hidden_layers"),
    ({"num_hidden_layers": 1, "layer_types": [WINDOWED]}, "model.layers.1."),
    ({"num_hidden_layers": 1}, "layer_types must say"),
    ({"num_key_value_heads": 3}, "k_proj.weight has shape"),
    ({"num_key_value_heads": None}, "k_proj.weight has shape"),
    ({"num_key_value_heads": ...}, "n_key_value_heads must divide"),
    ({"tie_word_embeddings": ...}, "lm_head.weight differs"),
    ({"hidden_activation": "relu"}, "hidden_activation must be"),
    ({"attention_bias": False}, "_proj.bias"),
    ({"attention_bias": ...}, "_proj.bias"),
    ({"use_bidirectional_attention": True}, "use_bidirectional_attention must be"),
    *LAYERS_REFUSED,
)
_GEMMA_IDLE = LLAMA_IDLE | {"hidden_act": "silu", "cache_implementation": "hybrid"}
_GEMMA_IDLE_BESIDES: Each = ({"max_position_embeddings": ...}, {"use_bidirectional_attention": False}, *ROTARY_IDLE)
_CAPPED: Settings = {
    "query_pre_attn_scalar": 9,
    "final_logit_softcapping": 3.0,
    "sliding_window": 5,
    "layer_types": [WINDOWED, WINDOWED],
}
GEMMA2 = Changes(
    base=_gemma_config("gemma2", _CAPPED | {"attn_logit_softcapping": 2.0}),
    counted=(*_GEMMA_COUNTED, {"layer_types": ...}, *({"attn_logit_softcapping": cap} for cap in (1.0, None, ...))),
    refused=(*_GEMMA_REFUSED, *(({"head_dim": width}, "q_proj.weight has shape") for width in (6, ...))),
    idle=_GEMMA_IDLE,
    idle_besides=_GEMMA_IDLE_BESIDES,
)
GEMMA3 = Changes(
    base=_gemma_config("gemma3_text", _CAPPED | {"rope_local_base_freq": 30.0, "layer_types": [FULL, WINDOWED]}),
    counted=(
        *_but(_GEMMA_COUNTED, "num_attention_heads", "rope_parameters", "rope_scaling", "layer_types"),
        {"layer_types": [FULL, FULL]},
        {"layer_types": [WINDOWED, FULL]},
        {"layer_types": [WINDOWED, WINDOWED]},
        {"layer_types": ..., "sliding_window_pattern": 2},
        {"layer_types": ...},
        {"rope_local_base_freq": 7},
        {"rope_local_base_freq": ...},
        {"rope_scaling": {"rope_type": "default", "rope_theta": 7.0}},
        {"rope_scaling": {"rope_theta": 7.0}},
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"rope_scaling": OF_LLAMA3},
        *LLAMA3_CONTEXTS,
        {"rope_parameters": {FULL: {"rope_type": "default", "rope_theta": 7.0}}},
        {"rope_parameters": {FULL: {"rope_type": "linear", "rope_theta": 70.0, "factor": 2.0}}},
        {"rope_parameters": {WINDOWED: {"rope_type": "default", "rope_theta": 7.0}}},
        {"rope_parameters": {FULL: {"rope_theta": 7.0}, WINDOWED: {"rope_theta": 7.0}}},
        {"rope_parameters": {FULL: {}, WINDOWED: {}}, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    ),
    refused=(
        *_without(_GEMMA_REFUSED, "rope_parameters", "rope_scaling"),
        *(({"head_dim": width}, "q_norm.weight has shape") for width in (6, ...)),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping must be"),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}}, "rope_type must be none"),
        ({"rope_parameters": {"rope_theta": 7.0}}, "rope_theta must be none"),
        ({"rope_parameters": {WINDOWED: {"rope_type": "linear", "factor": 2.0}}}, "rope_type must be default"),
        *(
            ({"rope_scaling": {"rope_type": kind, "factor": 2.0}}, f"rope_type must be default, got {kind}")
            for kind in ("dynamic", "yarn", "longrope")
        ),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "type must be default, got dynamic"),
        ({"rope_scaling": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor must be"),
    ),
    idle=_GEMMA_IDLE | {"_sliding_window_pattern": 3, "sliding_window_pattern": 2},
    idle_besides=(
        {"max_position_embeddings": ...},
        {"attn_logit_softcapping": None},
        {"rope_scaling": {"rope_type": "default"}},
        {"rope_parameters": {FULL: {"rope_type": "default"}, WINDOWED: {"rope_type": "default"}}},
    ),
)
GEMMA = Changes(
    base=llama_config("gemma", {"hidden_act": "silu", "attention_bias": True}),
    counted=(*_but(LLAMA_COUNTED, "hidden_act"), *({"hidden_act": kind} for kind in GELUS)),
    refused=(
        *_without(LLAMA_REFUSED, "head_dim"),
        *(({"head_dim": width}, "q_proj.weight has shape") for width in (6, ...)),
        ({"num_key_value_heads": ...}, "n_key_value_heads must divide"),
        ({"tie_word_embeddings": ...}, "lm_head.weight differs"),
        ({"attention_bias": False}, "_proj.bias"),
        ({"attention_bias": ...}, "_proj.bias"),
        ({"hidden_activation": "gelu"}, "hidden_activation must be"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention must be"),
    ),
    idle=LLAMA_IDLE | {"hidden_activation": "gelu_pytorch_tanh"},
    idle_besides=(
        {"max_position_embeddings": ...},
        {"use_bidirectional_attention": False},
        {"hidden_activation": None},
        {"sliding_window": 3},
        *ROTARY_IDLE,
    ),
)
OTHERS = (GPT_NEO, OPT, PHI, PHI3, QWEN3, OLMO, OLMO2, GEMMA, GEMMA2, GEMMA3)
