"""Tiny random models of Hugging Face's families: a config, and the tensors that its layout calls for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from written_models import D_VOCAB, N_CTX, write_folder

Config = dict[str, Any]
Shapes = dict[str, tuple[int, ...]]
N_LAYERS = 3


def gpt_neo_config() -> Config:
    return {
        **{"num_layers": N_LAYERS, "num_heads": 3, "hidden_size": 15, "max_position_embeddings": N_CTX},
        **{"attention_types": [[["global", "local"], 1], [["local"], 1]], "window_size": 5, "intermediate_size": 23},
        **{"activation_function": "gelu_new", "layer_norm_epsilon": 1e-3, "tie_word_embeddings": True},
    }


def gpt_neo_shapes(c: Config) -> Shapes:
    d, mlp = c["hidden_size"], c.get("intermediate_size") or 4 * c["hidden_size"]
    shapes: Shapes = {"transformer.wte.weight": (D_VOCAB, d), "transformer.wpe.weight": (N_CTX, d)}
    shapes |= _norm("transformer.ln_f", d)
    for i in range(c["num_layers"]):
        h = f"transformer.h.{i}"
        shapes |= _norm(f"{h}.ln_1", d) | _norm(f"{h}.ln_2", d)
        shapes |= {f"{h}.attn.attention.{which}_proj.weight": (d, d) for which in "qkv"}
        shapes |= _linear(f"{h}.attn.attention.out_proj", d, d)
        shapes |= _linear(f"{h}.mlp.c_fc", d, mlp) | _linear(f"{h}.mlp.c_proj", mlp, d)
    return shapes | _unembedding(c, d, tied=True)


def llama_config() -> Config:
    return _llama_sizes() | {"attention_bias": False, "mlp_bias": False}


def llama_shapes(c: Config) -> Shapes:
    mlp = ("gate", "up", "down") if c.get("mlp_bias") else ()
    return _llama_shapes(c, biases="qkvo" if c.get("attention_bias") else "", mlp_biases=mlp)


def qwen3_config() -> Config:
    return {
        **_llama_sizes(),
        **{"attention_bias": True, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2},
    }


def qwen3_shapes(c: Config) -> Shapes:
    return _llama_shapes(c, biases=("qkvo" if c.get("attention_bias") else ""), qk_norms=(_d_head(c), _d_head(c)))


def olmo_config() -> Config:
    return {name: value for name, value in _llama_sizes().items() if name != "rms_norm_eps"} | {"attention_bias": True}


def olmo_shapes(c: Config) -> Shapes:
    shapes = _llama_shapes(c, biases="qkvo" if c["attention_bias"] else "", norms=())
    return {name: shape for name, shape in shapes.items() if name != "model.norm.weight"}


def olmo2_config() -> Config:
    return _llama_sizes() | {"attention_bias": False}


def olmo2_shapes(c: Config) -> Shapes:
    n_heads, d_head = c["num_attention_heads"], _d_head(c)
    widths = (n_heads * d_head, (c.get("num_key_value_heads") or n_heads) * d_head)
    biases, norms = "qkvo" if c["attention_bias"] else "", ("post_attention_layernorm", "post_feedforward_layernorm")
    return _llama_shapes(c, biases=biases, qk_norms=widths, norms=norms)


def phi_config() -> Config:
    shared = {name: value for name, value in _llama_sizes().items() if name not in ("head_dim", "rms_norm_eps")}
    own = {
        "hidden_size": 24,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-3,
        "partial_rotary_factor": 0.5,
    }
    return shared | own | {"qk_layernorm": False}


def phi_shapes(c: Config) -> Shapes:
    d, mlp, groups = c["hidden_size"], c["intermediate_size"], c.get("num_key_value_heads") or c["num_attention_heads"]
    d_keys = groups * d // c["num_attention_heads"]
    shapes: Shapes = {"model.embed_tokens.weight": (D_VOCAB, d), "lm_head.bias": (D_VOCAB,)}
    shapes |= _norm("model.final_layernorm", d)
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        shapes |= _norm(f"{layer}.input_layernorm", d) | _linear(f"{layer}.self_attn.dense", d, d)
        for which, width in (("q", d), ("k", d_keys), ("v", d_keys)):
            shapes |= _linear(f"{layer}.self_attn.{which}_proj", d, width)
        shapes |= _linear(f"{layer}.mlp.fc1", d, mlp) | _linear(f"{layer}.mlp.fc2", mlp, d)
    return shapes | _unembedding(c, d, tied=False)


def phi3_config() -> Config:
    own = {"hidden_size": 24, "partial_rotary_factor": 1.0, "sliding_window": 7, "resid_pdrop": 0.1}
    shared = {name: value for name, value in _llama_sizes().items() if name != "head_dim"}
    return shared | own | {"original_max_position_embeddings": N_CTX}


def phi3_shapes(c: Config) -> Shapes:
    apart = _llama_shapes(c)
    shapes = {name: shape for name, shape in apart.items() if "q_proj" not in name and "up_proj" not in name}
    shapes = {name: shape for name, shape in shapes.items() if not any(f"{x}_proj" in name for x in ("k", "v", "gate"))}
    rows = (c["num_attention_heads"] + 2 * (c.get("num_key_value_heads") or c["num_attention_heads"])) * _d_head(c)
    for i in range(c["num_hidden_layers"]):
        shapes[f"model.layers.{i}.self_attn.qkv_proj.weight"] = (rows, c["hidden_size"])
        shapes[f"model.layers.{i}.mlp.gate_up_proj.weight"] = (2 * c["intermediate_size"], c["hidden_size"])
    return shapes


def opt_config() -> Config:
    return {
        **{"num_hidden_layers": N_LAYERS, "num_attention_heads": 3, "hidden_size": 15, "ffn_dim": 23, "dropout": 0.1},
        **{"max_position_embeddings": N_CTX, "do_layer_norm_before": True, "word_embed_proj_dim": 15},
        **{"_remove_final_layer_norm": False, "activation_function": "relu", "layerdrop": 0.0, "init_std": 0.02},
    }


def opt_shapes(c: Config) -> Shapes:
    d, mlp, decoder = c["hidden_size"], c["ffn_dim"], "model.decoder"
    shapes: Shapes = {
        f"{decoder}.embed_tokens.weight": (D_VOCAB, d),
        f"{decoder}.embed_positions.weight": (N_CTX + 2, d),
    }
    shapes |= _norm(f"{decoder}.final_layer_norm", d)
    for i in range(c["num_hidden_layers"]):
        layer = f"{decoder}.layers.{i}"
        shapes |= _norm(f"{layer}.self_attn_layer_norm", d) | _norm(f"{layer}.final_layer_norm", d)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes |= _linear(f"{layer}.self_attn.{name}", d, d)
        shapes |= _linear(f"{layer}.fc1", d, mlp) | _linear(f"{layer}.fc2", mlp, d)
    return shapes | _unembedding(c, d, tied=True)


_GEMMA_NORMS = tuple(
    f"{place}_layernorm" for place in ("input", "post_attention", "pre_feedforward", "post_feedforward")
)


def gemma_config() -> Config:
    own = {"hidden_act": "gelu", "hidden_activation": None, "attention_bias": False, "tie_word_embeddings": True}
    return _llama_sizes() | own


def gemma_shapes(c: Config) -> Shapes:
    return _llama_shapes(c, biases="qkvo" if c.get("attention_bias") else "", tied=True)


def gemma2_config() -> Config:
    shared = {name: value for name, value in _llama_sizes().items() if name != "hidden_act"}
    return shared | {
        **{"hidden_size": 18, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 3},
        **{"sliding_window": 5},
        **{"attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5, "tie_word_embeddings": True},
    }


def gemma2_shapes(c: Config) -> Shapes:
    return _llama_shapes(c, biases="qkvo" if c.get("attention_bias") else "", norms=_GEMMA_NORMS, tied=True)


def gemma3_config() -> Config:
    own = {"rope_local_base_freq": 40.0, "sliding_window_pattern": 2, "attn_logit_softcapping": None}
    return gemma2_config() | own | {"final_logit_softcapping": None, "attention_bias": False}


def gemma3_shapes(c: Config) -> Shapes:
    biases = "qkvo" if c.get("attention_bias") else ""
    return _llama_shapes(c, biases=biases, norms=_GEMMA_NORMS, qk_norms=(_d_head(c), _d_head(c)), tied=True)


def _d_head(c: Config) -> int:
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def _llama_sizes() -> Config:
    return {
        **{"num_hidden_layers": N_LAYERS, "hidden_size": 17, "num_attention_heads": 6, "num_key_value_heads": 2},
        **{"head_dim": 4, "intermediate_size": 31, "max_position_embeddings": N_CTX, "hidden_act": "silu"},
        **{"rms_norm_eps": 1e-3, "rope_theta": 700.0, "tie_word_embeddings": False},
    }


def _llama_shapes(
    c: Config,
    *,
    biases: str = "",
    mlp_biases: tuple[str, ...] = (),
    qk_norms: tuple[int, int] | None = None,
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm"),
    tied: bool = False,
) -> Shapes:
    """Llama's tensors, in relatives with other biases and norms."""
    d, d_head, mlp, n_heads = c["hidden_size"], _d_head(c), c["intermediate_size"], c["num_attention_heads"]
    n_groups = c.get("num_key_value_heads") or n_heads
    shapes: Shapes = {"model.embed_tokens.weight": (D_VOCAB, d), "model.norm.weight": (d,)}
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        shapes |= {f"{layer}.{norm}.weight": (d,) for norm in norms}
        for which, n in (("q", n_heads), ("k", n_groups), ("v", n_groups)):
            shapes |= _linear(f"{layer}.self_attn.{which}_proj", d, n * d_head, bias=which in biases)
        shapes |= _linear(f"{layer}.self_attn.o_proj", n_heads * d_head, d, bias="o" in biases)
        if qk_norms:
            shapes |= {f"{layer}.self_attn.{which}_norm.weight": (n,) for which, n in zip("qk", qk_norms, strict=True)}
        for which, sizes in (("gate", (d, mlp)), ("up", (d, mlp)), ("down", (mlp, d))):
            shapes |= _linear(f"{layer}.mlp.{which}_proj", *sizes, bias=which in mlp_biases)
    return shapes | _unembedding(c, d, tied=tied)


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _linear(name: str, width_in: int, width_out: int, *, bias: bool = True) -> Shapes:
    """Of an nn.Linear, whose weight is [out, in]."""
    return {f"{name}.weight": (width_out, width_in)} | ({f"{name}.bias": (width_out,)} if bias else {})


def _unembedding(c: Config, width: int, *, tied: bool) -> Shapes:
    return {} if c.get("tie_word_embeddings", tied) else {"lm_head.weight": (D_VOCAB, width)}


CONFIGS: dict[str, Callable[[], Config]] = {
    "gpt_neo": gpt_neo_config,
    "llama": llama_config,
    "qwen3": qwen3_config,
    "olmo": olmo_config,
    "olmo2": olmo2_config,
    "phi": phi_config,
    "phi3": phi3_config,
    "opt": opt_config,
    "gemma": gemma_config,
    "gemma2": gemma2_config,
    "gemma3_text": gemma3_config,
}
SHAPES: dict[str, Callable[[Config], Shapes]] = {
    "gpt_neo": gpt_neo_shapes,
    "llama": llama_shapes,
    "qwen3": qwen3_shapes,
    "olmo": olmo_shapes,
    "olmo2": olmo2_shapes,
    "phi": phi_shapes,
    "phi3": phi3_shapes,
    "opt": opt_shapes,
    "gemma": gemma_shapes,
    "gemma2": gemma2_shapes,
    "gemma3_text": gemma3_shapes,
}

_OF_LLAMA3 = {
    **{"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "original_max_position_embeddings": 60,
}
_OF_LLAMA: dict[str, Any] = {
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 3,
    "head_dim": 6,
    "hidden_act": "gelu_pytorch_tanh",
    "rms_norm_eps": 0.1,
    "rope_theta": 50.0,
    "rope_parameters": {"rope_theta": ..., "rope_parameters": {"rope_type": "default", "rope_theta": 90.0}},
    "rope_scaling": {"rope_type": "linear", "factor": 3.0},
    "rope_parameters, llama3": {"rope_parameters": {"rope_theta": 90.0, "rope_type": "llama3", **_OF_LLAMA3}},
    "tie_word_embeddings": True,
}
_OF_GEMMA: dict[str, Any] = {
    **{name: value for name, value in _OF_LLAMA.items() if name != "hidden_act"},
    **{"hidden_activation": "gelu", "query_pre_attn_scalar": 9, "sliding_window": 2, "attention_bias": True},
    **{"tie_word_embeddings": False, "layer_types": ["full_attention", "full_attention", "sliding_attention"]},
}
# Other values of each setting of a config that decides what is computed.
CHANGES: dict[str, dict[str, Any]] = {
    "gpt_neo": {
        "num_layers": {"num_layers": 1, "attention_types": [[["local"], 1]]},
        "num_heads": 5,
        "attention_types": [[["local"], 3]],
        "attention_layers": {"attention_types": ..., "attention_layers": ["local", "global", "global"]},
        "window_size": 2,
        "intermediate_size": None,
        "activation_function": "relu",
        "layer_norm_epsilon": 0.1,
        "tie_word_embeddings": False,
    },
    "llama": _OF_LLAMA | {"attention_bias": True, "mlp_bias": True},
    "qwen3": {
        **_OF_LLAMA,
        "attention_bias": False,
        "use_sliding_window": False,
        "sliding_window": 2,
        "max_window_layers": 1,
        "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    },
    "olmo": {name: value for name, value in _OF_LLAMA.items() if name != "rms_norm_eps"} | {"attention_bias": False},
    "olmo2": _OF_LLAMA | {"attention_bias": True},
    "phi": {
        **{name: value for name, value in _OF_LLAMA.items() if name not in ("head_dim", "rms_norm_eps")},
        **{"num_attention_heads": 2, "num_key_value_heads": 3, "hidden_act": "relu"},
        **{"layer_norm_eps": 0.1, "partial_rotary_factor": 1.0},
    },
    "phi3": {
        **{name: value for name, value in _OF_LLAMA.items() if name not in ("rope_scaling", "rope_parameters, llama3")},
        **{"partial_rotary_factor": 0.5, "sliding_window": None},
    },
    "opt": {
        **{"num_hidden_layers": 1, "num_attention_heads": 5, "activation_function": "gelu"},
        "tie_word_embeddings": False,
    },
    "gemma": _OF_LLAMA | {"hidden_act": "silu", "attention_bias": True, "tie_word_embeddings": False},
    "gemma2": {
        **_OF_GEMMA,
        **{"attn_logit_softcapping": None, "final_logit_softcapping": 7.0},
        "caps, not said": {"attn_logit_softcapping": ..., "final_logit_softcapping": ...},
    },
    "gemma3_text": {
        **{name: value for name, value in _OF_GEMMA.items() if not name.startswith("rope_p")},
        **{"final_logit_softcapping": 3.0, "rope_local_base_freq": 7.0, "sliding_window_pattern": 3},
        "rope_parameters, and rope_scaling": {
            "rope_parameters": {"full_attention": {"rope_theta": 90.0}, "sliding_attention": {}},
            "rope_scaling": {"rope_type": "linear", "factor": 3.0},
        },
        "bases, not said": {"rope_theta": ..., "rope_local_base_freq": ..., "sliding_window_pattern": ...},
        "rope_parameters": {
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 90.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 7.0},
            }
        },
    },
}


# What published configs hold besides, none of which decides what is computed.
BESIDES: dict[str, dict[str, Any]] = {
    "gpt_neo": {
        **{"attention_layers": ["global", "local", "local"], "attention_dropout": 0, "embed_dropout": 0},
        **{"gradient_checkpointing": False, "summary_type": "cls_index", "resid_dropout": 0.1},
    },
    "llama": {"pretraining_tp": 1, "rope_scaling": None, "use_cache": True},
    "qwen3": {"rope_scaling": None, "attention_dropout": 0.0, "max_window_layers": 2, "tie_word_embeddings": False},
    "olmo": {"clip_qkv": None, "pretraining_tp": 1, "rope_scaling": None, "pad_token_id": 1},
    "olmo2": {"rope_scaling": None, "attention_dropout": 0.0, "torch_dtype": "float32"},
    "phi": {"embd_pdrop": 0.0, "resid_pdrop": 0.1, "qk_layernorm": False, "rope_scaling": None},
    "phi3": {"attention_bias": False, "embd_pdrop": 0.1, "rope_scaling": None, "pad_token_id": 32_000},
    "opt": {"activation_dropout": 0.1, "prefix": "</s>", "enable_bias": True, "layer_norm_elementwise_affine": True},
    "gemma": {"hidden_activation": "gelu_pytorch_tanh", "attention_dropout": 0.0, "rope_scaling": None},
    "gemma2": {"cache_implementation": "hybrid", "hidden_act": "gelu_pytorch_tanh"},
    "gemma3_text": {
        "cache_implementation": "hybrid",
        "_sliding_window_pattern": 6,
        "use_bidirectional_attention": False,
    },
}


def write_family(folder: Path, family: str, changes: Config | None = None, seed: int = 0) -> Path:
    """A folder of a family; of its settings, changes that are ... are left out."""
    config = CONFIGS[family]() | {"model_type": family, "vocab_size": D_VOCAB} | (changes or {})
    config = {name: value for name, value in config.items() if value is not ...}
    generator = torch.Generator().manual_seed(seed)
    shapes = SHAPES[family](config)
    return write_folder(
        folder, config, {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    )
