"""State dicts of TransformerLens, folded or not. Source: https://github.com/TransformerLensOrg/TransformerLens"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, Visible, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, layer_norm, read_out, rms_norm, rotated
from headstream.tasks.importing.reference.said_settings import given, require_defined

# Settings that change what a model computes, and the values of which this file says how.
_DEFINED: dict[str, tuple[Any, ...]] = {
    "attention_dir": ("causal",),
    **dict.fromkeys(("post_embedding_ln", "use_qk_norm", "use_normalization_before_and_after"), (False,)),
    **dict.fromkeys(("use_NTK_by_parts_rope", "use_yarn_rope"), (False,)),
    **dict.fromkeys(("attn_scores_soft_cap", "output_logits_soft_cap"), (-1,)),
    **dict.fromkeys(("num_experts", "rotary_base_local"), (None,)),
    "rotary_scaling_factor": (1,),
}


def transformer_lens_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `HookedTransformer` with this config."""
    require_defined(config, _DEFINED)
    kind = config.get("normalization", config.get("normalization_type", "LN"))  # the older name first
    epsilon, d_head = given(config, "eps", 1e-5), given(config, "d_head", config["d_model"] // config["n_heads"])
    positions = given(config, "positional_embedding_type", "standard")
    if config.get("shortformer_pos"):  # of older configs
        positions = "shortformer"
    windows = _windows(config)

    def norm(x: Tensor, name: str, kind: str | None = kind) -> Tensor:
        weight, bias = tensors.get(f"{name}.w"), tensors.get(f"{name}.b")
        match kind:
            case None:
                return x
            case "LN" | "LNPre":
                return layer_norm(x, epsilon, weight, bias)
            case "RMS" | "RMSPre":
                return rms_norm(x, epsilon, weight)
        raise ValueError(kind)

    x = tensors.as_stored("embed.W_E")[tokens].double()
    placed = tensors["pos_embed.W_pos"][: tokens.shape[1]] if positions in ("standard", "shortformer") else None
    if placed is not None and positions == "standard":
        x = x + placed
    for i in range(config["n_layers"]):
        block = f"blocks.{i}"
        read = norm(x, f"{block}.ln1")
        read_by_scores = read if positions != "shortformer" or placed is None else read + placed
        q, k, v = (
            _by_head(tensors, f"{block}.attn", part, source)
            for part, source in (("Q", read_by_scores), ("K", read_by_scores), ("V", read))
        )
        if positions == "rotary":
            n_turned = given(config, "rotary_dim", d_head)
            adjacent = given(config, "rotary_adjacent_pairs", False)
            base = given(config, "rotary_base", 10_000)
            q, k = (rotated(part, base, n_turned, half_split=not adjacent) for part in (q, k))
        own = given(config, "attn_scale", -1.0)
        divisor = (own if own > 0 else d_head**0.5) if given(config, "use_attn_scale", True) else 1.0
        if given(config, "scale_attn_by_inverse_layer_idx", False):
            divisor *= i + 1
        mixed = attended(q, k, v, ScoreForm(1 / divisor), Visible(windows[i]))
        attention_out = torch.einsum("bphe,hed->bpd", mixed, tensors[f"{block}.attn.W_O"])
        attention_out = attention_out + tensors[f"{block}.attn.b_O"]
        if config.get("attn_only", False):
            x = x + attention_out
            continue
        parallel = config.get("parallel_attn_mlp", False)
        read = norm(x if parallel else x + attention_out, f"{block}.ln2")
        x = x + attention_out + _feed_forward(tensors.within(f"{block}.mlp."), read, config)
    final = norm(x, "ln_final", "RMS" if config.get("final_rms") else kind)
    return read_out(final, tensors.as_stored("unembed.W_U").T, tensors.get("unembed.b_U"))


def _windows(config: Mapping[str, Any]) -> list[int | None]:
    """The keys that each layer sees; None: all."""
    kinds = config.get("attn_types") if config.get("use_local_attn") else None
    return [config["window_size"] if kinds and kinds[i] == "local" else None for i in range(config["n_layers"])]


def _by_head(tensors: FileTensors, place: str, part: str, x: Tensor) -> Tensor:
    """Queries, keys or values; those that heads share have names of their own."""
    shared = "_" if f"{place}._W_{part}" in tensors.names else ""
    weight, bias = tensors[f"{place}.{shared}W_{part}"], tensors[f"{place}.{shared}b_{part}"]
    return torch.einsum("bpd,hde->bphe", x, weight) + bias


def _feed_forward(tensors: FileTensors, x: Tensor, config: Mapping[str, Any]) -> Tensor:
    activate, bias_in, bias_out = REFERENCE_ACTIVATIONS[config["act_fn"]], tensors.get("b_in"), tensors.get("b_out")
    if config.get("gated_mlp", False):  # whose bias comes after the gate
        hidden = activate(x @ tensors["W_gate"]) * (x @ tensors["W_in"]) + (0 if bias_in is None else bias_in)
    else:
        hidden = activate(x @ tensors["W_in"] + (0 if bias_in is None else bias_in))
    return hidden @ tensors["W_out"] + (0 if bias_out is None else bias_out)
