"""Models of every format, written from known weights entry by entry, by the formats' own definitions."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer

D_VOCAB, N_CTX = 37, 19


def random_weights(architecture: Architecture, d_vocab: int = D_VOCAB, seed: int = 0) -> dict[str, Tensor]:
    """Every parameter of an architecture, random; the bias of logits, which these formats lack, is 0."""
    generator = torch.Generator().manual_seed(seed)
    parameters = Transformer(architecture, d_vocab).named_parameters()
    return {name: torch.randn(p.shape, generator=generator) * (name != "b_U") for name, p in parameters}


def gpt2_architecture(**options: Any) -> Architecture:
    fields = {"n_layers": 2, "n_heads": 3, "d_model": 15, "n_ctx": N_CTX, "positions": "learned", "biases": True}
    fields |= {"normalization": "layernorm", "norm_epsilon": 1e-5, "feed_forward": "gelu_tanh", "d_mlp": 23}
    return Architecture(**{**fields, "tied_embeddings": True, **options})


def gpt_neox_architecture(**options: Any) -> Architecture:
    fields = {"n_layers": 2, "n_heads": 3, "d_model": 24, "n_ctx": N_CTX, "positions": "rotary", "biases": True}
    fields |= {"rotary_pairs": "half-split", "rotary_fraction": 0.25, "parallel_sublayers": True, "d_mlp": 29}
    fields |= {"normalization": "layernorm", "norm_epsilon": 1e-5, "feed_forward": "gelu"}
    return Architecture(**{**fields, **options})


def llama_architecture(**options: Any) -> Architecture:
    fields = {"n_layers": 2, "n_heads": 6, "d_model": 17, "d_head": 4, "n_ctx": N_CTX, "positions": "rotary"}
    fields |= {"rotary_pairs": "half-split", "rotary_base": 70_000.0, "n_key_value_heads": 2, "d_mlp": 31}
    fields |= {"normalization": "rmsnorm", "norm_epsilon": 3e-6, "feed_forward": "swiglu"}
    return Architecture(**{**fields, **options})


def gpt2_tensors(a: Architecture, weights: dict[str, Tensor], *, out_in: bool = False) -> dict[str, Tensor]:
    """GPT-2's tensors: matrices are [in, out], or with `out_in`, as nanoGPT's are, [out, in]."""
    H, w, D = a.n_heads, a.head_width, a.d_model
    turn = (lambda matrix: matrix.T.contiguous()) if out_in else (lambda matrix: matrix)
    tensors = {"wte.weight": weights["W_E"], "wpe.weight": weights["W_pos"]}
    for part in ("weight", "bias"):
        tensors[f"ln_f.{part}"] = weights[f"final_norm.{part}"]
    for i in range(a.n_layers):
        own = {name.removeprefix(f"layers.{i}."): tensor for name, tensor in weights.items()}
        for part in ("weight", "bias"):
            tensors[f"h.{i}.ln_1.{part}"] = own[f"attention_norm.{part}"]
            tensors[f"h.{i}.ln_2.{part}"] = own[f"feed_forward_norm.{part}"]
        fused, bias = torch.empty(D, 3 * D), torch.empty(3 * D)
        written = torch.empty(D, D)
        for head in range(H):
            for place, which in enumerate("QKV"):
                for c in range(w):
                    fused[:, place * D + head * w + c] = own[f"attention.W_{which}"][head, :, c]
                    if a.biases:
                        bias[place * D + head * w + c] = own[f"attention.b_{which}"][head, c]
            for c in range(w):
                written[head * w + c] = own["attention.W_O"][head, c]
        tensors[f"h.{i}.attn.c_attn.weight"] = turn(fused)
        tensors[f"h.{i}.attn.c_proj.weight"] = turn(written)
        tensors[f"h.{i}.mlp.c_fc.weight"] = turn(own["feed_forward.W_in"])
        tensors[f"h.{i}.mlp.c_proj.weight"] = turn(own["feed_forward.W_out"])
        if a.biases:
            tensors[f"h.{i}.attn.c_attn.bias"] = bias
            tensors[f"h.{i}.attn.c_proj.bias"] = own["attention.b_O"]
            tensors[f"h.{i}.mlp.c_fc.bias"] = own["feed_forward.b_in"]
            tensors[f"h.{i}.mlp.c_proj.bias"] = own["feed_forward.b_out"]
    tensors = {f"transformer.{name}": tensor for name, tensor in tensors.items()}
    if not a.tied_embeddings:
        tensors["lm_head.weight"] = weights["W_U_free"].T.contiguous()
    return tensors


def gpt2_config(a: Architecture) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "n_layer": a.n_layers,
        "n_head": a.n_heads,
        "n_embd": a.d_model,
        "n_positions": a.n_ctx,
        "n_inner": a.d_mlp,
        "activation_function": {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu"}[a.feed_forward],
        "layer_norm_epsilon": a.norm_epsilon,
        "tie_word_embeddings": a.tied_embeddings,
        "vocab_size": D_VOCAB,
    }


def gpt_neox_tensors(a: Architecture, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rows of query_key_value: for each head its queries, its keys, its values."""
    H, w, D = a.n_heads, a.head_width, a.d_model
    tensors = {"embed_in.weight": weights["W_E"]}
    for part in ("weight", "bias"):
        tensors[f"final_layer_norm.{part}"] = weights[f"final_norm.{part}"]
    for i in range(a.n_layers):
        own = {name.removeprefix(f"layers.{i}."): tensor for name, tensor in weights.items()}
        block = f"layers.{i}"
        for part in ("weight", "bias"):
            tensors[f"{block}.input_layernorm.{part}"] = own[f"attention_norm.{part}"]
            tensors[f"{block}.post_attention_layernorm.{part}"] = own[f"feed_forward_norm.{part}"]
        fused, bias, dense = torch.empty(3 * D, D), torch.empty(3 * D), torch.empty(D, D)
        for head in range(H):
            for place, which in enumerate("QKV"):
                for c in range(w):
                    fused[head * 3 * w + place * w + c] = own[f"attention.W_{which}"][head, :, c]
                    bias[head * 3 * w + place * w + c] = own[f"attention.b_{which}"][head, c]
            for c in range(w):
                dense[:, head * w + c] = own["attention.W_O"][head, c]
        tensors[f"{block}.attention.query_key_value.weight"] = fused
        tensors[f"{block}.attention.query_key_value.bias"] = bias
        tensors[f"{block}.attention.dense.weight"] = dense
        tensors[f"{block}.attention.dense.bias"] = own["attention.b_O"]
        for name, end in (("dense_h_to_4h", "in"), ("dense_4h_to_h", "out")):
            tensors[f"{block}.mlp.{name}.weight"] = own[f"feed_forward.W_{end}"].T.contiguous()
            tensors[f"{block}.mlp.{name}.bias"] = own[f"feed_forward.b_{end}"]
    tensors = {f"gpt_neox.{name}": tensor for name, tensor in tensors.items()}
    if not a.tied_embeddings:
        tensors["embed_out.weight"] = weights["W_U_free"].T.contiguous()
    return tensors


def gpt_neox_config(a: Architecture) -> dict[str, Any]:
    return {
        "model_type": "gpt_neox",
        "num_hidden_layers": a.n_layers,
        "num_attention_heads": a.n_heads,
        "hidden_size": a.d_model,
        "intermediate_size": a.d_mlp,
        "max_position_embeddings": a.n_ctx,
        "hidden_act": {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu"}[a.feed_forward],
        "layer_norm_eps": a.norm_epsilon,
        "rotary_pct": a.rotary_fraction,
        "rotary_emb_base": a.rotary_base,
        "use_parallel_residual": a.parallel_sublayers,
        "tie_word_embeddings": a.tied_embeddings,
        "vocab_size": D_VOCAB,
    }


def llama_tensors(a: Architecture, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rows of q_proj, k_proj and v_proj are grouped by head; columns of o_proj are."""
    w, D = a.head_width, a.d_model
    tensors = {"embed_tokens.weight": weights["W_E"], "norm.weight": weights["final_norm.weight"]}
    for i in range(a.n_layers):
        own = {name.removeprefix(f"layers.{i}.").replace("_shared", ""): t for name, t in weights.items()}
        block = f"layers.{i}"
        tensors[f"{block}.input_layernorm.weight"] = own["attention_norm.weight"]
        tensors[f"{block}.post_attention_layernorm.weight"] = own["feed_forward_norm.weight"]
        for which in "QKV":
            W = own[f"attention.W_{which}"]
            rows = [W[head, :, c] for head in range(len(W)) for c in range(w)]
            tensors[f"{block}.self_attn.{which.lower()}_proj.weight"] = torch.stack(rows)
            if (bias := own.get(f"attention.b_{which}")) is not None:
                tensors[f"{block}.self_attn.{which.lower()}_proj.bias"] = torch.cat(list(bias))
        written = torch.empty(D, a.n_heads * w)
        for head in range(a.n_heads):
            for c in range(w):
                written[:, head * w + c] = own["attention.W_O"][head, c]
        tensors[f"{block}.self_attn.o_proj.weight"] = written
        if a.biases:
            tensors[f"{block}.self_attn.o_proj.bias"] = own["attention.b_O"]
        for name, end in (("gate", "gate"), ("up", "in"), ("down", "out")):
            tensors[f"{block}.mlp.{name}_proj.weight"] = own[f"feed_forward.W_{end}"].T.contiguous()
            if a.biases:
                tensors[f"{block}.mlp.{name}_proj.bias"] = own[f"feed_forward.b_{end}"]
    tensors = {f"model.{name}": tensor for name, tensor in tensors.items()}
    if not a.tied_embeddings:
        tensors["lm_head.weight"] = weights["W_U_free"].T.contiguous()
    return tensors


def llama_config(a: Architecture, model_type: str = "llama") -> dict[str, Any]:
    own = {
        "llama": {"attention_bias": a.biases, "mlp_bias": a.biases},
        "mistral": {"sliding_window": a.attention_window},
        "qwen2": {"use_sliding_window": a.attention == "local"}
        | ({"sliding_window": a.attention_window, "max_window_layers": 0} if a.attention == "local" else {}),
    }
    return {
        "model_type": model_type,
        "num_hidden_layers": a.n_layers,
        "num_attention_heads": a.n_heads,
        "num_key_value_heads": a.n_key_value_heads or a.n_heads,
        "hidden_size": a.d_model,
        "head_dim": a.head_width,
        "intermediate_size": a.d_mlp,
        "max_position_embeddings": a.n_ctx,
        "hidden_act": {"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_pytorch_tanh"}[a.feed_forward],
        "rms_norm_eps": a.norm_epsilon,
        "rope_theta": a.rotary_base,
        "tie_word_embeddings": a.tied_embeddings,
        "vocab_size": D_VOCAB,
        **own[model_type],
    }


def write_folder(
    folder: Path, config: dict[str, Any], tensors: dict[str, Tensor], n_ids: int | None = D_VOCAB, n_shards: int = 1
) -> Path:
    """A folder of Hugging Face's: a config, one or more files of tensors, and a tokenizer of so many words."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    if n_shards == 1:
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    else:
        places = {name: f"model-{1 + i % n_shards:05}-of-{n_shards:05}.safetensors" for i, name in enumerate(tensors)}
        for shard in set(places.values()):
            save_file({name: tensors[name] for name in places if places[name] == shard}, folder / shard)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    if n_ids is not None:
        write_words(folder / "tokenizer.json", n_ids)
    return folder


def write_words(path: Path, n_ids: int) -> None:
    """A tokenizer whose ids 0, 1, ... are the words w0, w1, ..."""
    Tokenizer(WordLevel({f"w{i}": i for i in range(n_ids)}, unk_token="w0")).save(str(path))


def transformer_lens_config(a: Architecture) -> dict[str, Any]:
    """The dictionary of a HookedTransformerConfig, as far as it decides anything."""
    positions = {"learned": "standard", "rotary": "rotary", "learned_shortformer": "shortformer"}
    activations = {"gelu_tanh": "gelu_new", "swiglu": "silu", "geglu": "gelu", "none": None}
    return {
        "n_layers": a.n_layers,
        "d_model": a.d_model,
        "n_ctx": a.n_ctx,
        "d_head": a.head_width,
        "n_heads": a.n_heads,
        "n_key_value_heads": a.n_key_value_heads,
        "d_mlp": a.d_mlp,
        "act_fn": activations.get(a.feed_forward, a.feed_forward),
        "attn_only": a.feed_forward == "none",
        "gated_mlp": a.gated_feed_forward,
        "d_vocab": D_VOCAB,
        "d_vocab_out": D_VOCAB,
        "eps": a.norm_epsilon or 1e-5,
        "normalization_type": {"layernorm": "LN", "rmsnorm": "RMS", "none": None}[a.normalization],
        "positional_embedding_type": positions[a.positions],
        "rotary_dim": a.rotary_width if a.positions == "rotary" else None,
        "rotary_base": int(a.rotary_base),
        "rotary_adjacent_pairs": a.rotary_pairs == "neighbouring",
        "parallel_attn_mlp": a.parallel_sublayers,
        "use_attn_scale": True,
        "attn_scale": a.head_width**0.5,
        "attention_dir": "causal",
        "use_local_attn": a.attention == "local",
        "window_size": a.attention_window,
        "attn_types": ["local"] * a.n_layers if a.attention == "local" else None,
        "seed": 3,
        "device": "cuda",
        "init_mode": "gpt2",
    }


def transformer_lens_tensors(a: Architecture, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state dict: all biases there are, 0 where the architecture has none, and buffers."""
    tensors = {"embed.W_E": weights["W_E"], "unembed.b_U": weights.get("b_U", torch.zeros(D_VOCAB))}
    tensors["unembed.W_U"] = weights["W_E"].T.contiguous() if a.tied_embeddings else weights["W_U_free"]
    if a.positions == "learned":
        tensors["pos_embed.W_pos"] = weights["W_pos"]
    if a.positions == "learned_shortformer":
        tensors["pos_embed.W_pos"] = weights["layers.0.attention.W_pos"]
    parts = {"layernorm": {"w": "weight", "b": "bias"}, "rmsnorm": {"w": "weight"}, "none": {}}[a.normalization]
    for short, long in parts.items():
        tensors[f"ln_final.{short}"] = weights[f"final_norm.{long}"]
    for i in range(a.n_layers):
        own = {name.removeprefix(f"layers.{i}."): tensor for name, tensor in weights.items()}
        block = f"blocks.{i}"
        for short, long in parts.items():
            tensors[f"{block}.ln1.{short}"] = own[f"attention_norm.{long}"]
            if a.feed_forward != "none":
                tensors[f"{block}.ln2.{short}"] = own[f"feed_forward_norm.{long}"]
        groups = a.n_key_value_heads or a.n_heads
        for which, n in (("Q", a.n_heads), ("K", groups), ("V", groups)):
            theirs = f"_{{}}_{which}" if n < a.n_heads else f"{{}}_{which}"
            ours = f"attention.{{}}_{which}_shared" if n < a.n_heads else f"attention.{{}}_{which}"
            tensors[f"{block}.attn.{theirs.format('W')}"] = own[ours.format("W")]
            zeros = torch.zeros(n, a.head_width)
            tensors[f"{block}.attn.{theirs.format('b')}"] = own.get(ours.format("b"), zeros)
        tensors[f"{block}.attn.W_O"] = own["attention.W_O"]
        tensors[f"{block}.attn.b_O"] = own.get("attention.b_O", torch.zeros(a.d_model))
        tensors[f"{block}.attn.mask"] = torch.ones(a.n_ctx, a.n_ctx).tril().bool()
        tensors[f"{block}.attn.IGNORE"] = torch.tensor(float("-inf"))
        if a.feed_forward != "none":
            for end in ("in", "out", *["gate"] * a.gated_feed_forward):
                tensors[f"{block}.mlp.W_{end}"] = own[f"feed_forward.W_{end}"]
            tensors[f"{block}.mlp.b_in"] = own.get("feed_forward.b_in", torch.zeros(a.mlp_width))
            tensors[f"{block}.mlp.b_out"] = own.get("feed_forward.b_out", torch.zeros(a.d_model))
    return tensors


def nanogpt_checkpoint(a: Architecture, weights: dict[str, Tensor], prefix: str = "") -> dict[str, Any]:
    """What nanoGPT's train.py saves, as far as it decides anything."""
    tensors = gpt2_tensors(a, weights, out_in=True)
    if not a.biases:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith("bias")}
    tensors.setdefault("lm_head.weight", tensors["transformer.wte.weight"])
    arguments = {"n_layer": a.n_layers, "n_head": a.n_heads, "n_embd": a.d_model, "block_size": a.n_ctx}
    arguments |= {"bias": a.biases, "vocab_size": D_VOCAB, "dropout": 0.1}
    training = {"batch_size": 3, "gradient_accumulation_steps": 5, "block_size": a.n_ctx, "learning_rate": 6e-4}
    return {
        "model": {prefix + name: tensor for name, tensor in tensors.items()},
        "optimizer": {"state": {0: {"exp_avg": torch.ones(3)}}, "param_groups": [{"betas": (0.9, 0.95)}]},
        "model_args": arguments,
        "iter_num": 700,
        "best_val_loss": torch.tensor(3.2),
        "config": training,
    }
