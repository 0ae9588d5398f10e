"""Every setting of the configs of Hugging Face's families, changed: those that count, and those that don't.

Both readings must change as transformers does: `make peers` asks transformers, and a test asks that none is left out.
"""

from benchmarks.more_settings import OTHERS
from benchmarks.setting_changes import (
    IDLE,
    LAYERS_REFUSED,
    LLAMA_COUNTED,
    LLAMA_IDLE,
    LLAMA_REFUSED,
    N_CTX,
    ROTARY,
    ROTARY_IDLE,
    ROTARY_REFUSED,
    STRETCHED_REFUSED,
    VOCABULARY,
    Changes,
    llama_config,
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
        *ROTARY,
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
        *STRETCHED_REFUSED,
        *ROTARY_REFUSED,
    ),
    idle=IDLE | {"classifier_dropout": 0.3, "hidden_dropout": 0.3, "max_position_embeddings": 17},
    idle_besides=({"rope_theta": 7.0}, {"partial_rotary_factor": 1.0}, {"max_position_embeddings": ...}, *ROTARY_IDLE),
)


LLAMA = Changes(
    base=llama_config("llama", {"attention_bias": False, "mlp_bias": False}),
    counted=LLAMA_COUNTED,
    refused=(
        *LLAMA_REFUSED,
        ({"num_key_value_heads": ...}, "k_proj.weight has shape"),
        ({"attention_bias": True}, "q_proj.bias"),
        ({"mlp_bias": True}, "gate_proj.bias"),
    ),
    idle=LLAMA_IDLE | {"pretraining_tp": 2},
    idle_besides=({"sliding_window": 3}, {"max_position_embeddings": ...}, *ROTARY_IDLE),
)
MISTRAL = Changes(
    base=llama_config("mistral", {"sliding_window": 5}),
    counted=(
        *LLAMA_COUNTED,
        *({"sliding_window": keys} for keys in (3, None, ...)),
        {"layer_types": ["full_attention", "full_attention"]},
        {"layer_types": ["sliding_attention", "full_attention"]},
    ),
    refused=(*LLAMA_REFUSED, ({"num_key_value_heads": ...}, "n_key_value_heads must divide"), *LAYERS_REFUSED),
    idle=LLAMA_IDLE,
    idle_besides=({"max_position_embeddings": ...}, *ROTARY_IDLE),
)
QWEN2 = Changes(
    base=llama_config("qwen2", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}),
    counted=(
        *LLAMA_COUNTED,
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
    refused=(*LLAMA_REFUSED, ({"num_key_value_heads": ...}, "n_key_value_heads must divide"), *LAYERS_REFUSED),
    idle=LLAMA_IDLE | {"use_mrope": False},
    idle_besides=(
        {"layer_types": ["sliding_attention", "sliding_attention"], "max_window_layers": 28},
        {"max_position_embeddings": ...},
        *ROTARY_IDLE,
    ),
)
CHANGES = {changes.base["model_type"]: changes for changes in (GPT2, GPT_NEOX, LLAMA, MISTRAL, QWEN2, *OTHERS)}
