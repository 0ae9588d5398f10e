"""Models that Headstream itself wrote: model.json defines the meaning of a checkpoint's tensors."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ALL_EARLIER, ScoreForm, Visible, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import (
    gelu,
    gelu_tanh,
    kept_below,
    layer_norm,
    rates_of,
    read_out,
    relu,
    rms_norm,
    silu,
    stretched,
    turned,
)

_ACTIVATIONS = {
    "relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "swiglu": silu, "geglu": gelu, "geglu_tanh": gelu_tanh
}  # fmt: skip
EPSILONS = {"layernorm": 1e-5, "rmsnorm": 1e-6}
# The options of an architecture that are defined here, as models/known_options.py reads it: not so gates.
DEFINED: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("n_layers", "n_heads", "n_key_value_heads", "d_model", "d_head", "d_value", "d_mlp", "n_ctx")),
    "positions": ("relative", "shortformer", "learned_shortformer", "rotary", "learned", "sinusoidal", "none"),
    **dict.fromkeys(("rotary_base", "rotary_fraction", "rotary_stretch", "rotary_stretched_wavelengths")),
    "windowed_rotary_base": None,
    "rotary_pairs": ("neighbouring", "half-split"),
    "normalization": ("none", *EPSILONS),
    "normalization_place": ("pre", "post", "output", "both"),
    "norm_epsilon": None,
    "feed_forward": ("none", *_ACTIVATIONS),
    **dict.fromkeys(("parallel_sublayers", "tied_embeddings", "qk_normalization")),
    "qk_normalization_over": ("head", "layer"),
    **dict.fromkeys(("biases", "qkv_biases", "output_biases")),
    "attention": ("full", "local", "strided", "top_k"),
    **dict.fromkeys(("attention_window", "windowed_layers", "stride", "top_k", "score_scale")),
    **dict.fromkeys(("norm_offset", "embedding_scale", "score_cap", "logit_cap", "key_smearing")),
}


def headstream_logits(
    tensors: FileTensors, a: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits by the fields of an architecture, all of which are given."""
    n, post = tokens.shape[1], a["normalization_place"] == "post"
    before, of_output = a["normalization_place"] in ("pre", "both"), a["normalization_place"] in ("output", "both")
    epsilon = EPSILONS.get(a["normalization"], 0.0) if a["norm_epsilon"] is None else a["norm_epsilon"]

    def norm(x: Tensor, name: str) -> Tensor:
        match a["normalization"]:
            case "layernorm":
                return layer_norm(x, epsilon, _gain(tensors, a, name), tensors[f"{name}.bias"])
            case "rmsnorm":
                return rms_norm(x, epsilon, _gain(tensors, a, name))
        return x

    x = tensors.as_stored("W_E")[tokens].double() * a["embedding_scale"]
    if a["positions"] == "learned":
        x = x + tensors["W_pos"][:n]
    if a["positions"] == "sinusoidal":
        x = x + _waves(n, x.shape[-1])
    for i in range(a["n_layers"]):
        layer = tensors.within(f"layers.{i}.")
        attention, place = layer.within("attention."), f"layers.{i}"
        written = _attention(attention, a, norm(x, f"{place}.attention_norm") if before else x, i)
        written = norm(written, f"{place}.attention_out_norm") if of_output else written
        if "feed_forward.W_in" not in layer.names:
            x = norm(x + written, f"{place}.attention_norm") if post else x + written
        elif post:
            x = norm(x + written, f"{place}.attention_norm")
            x = norm(x + _feed_forward(layer.within("feed_forward."), a, x), f"{place}.feed_forward_norm")
        else:
            read = x if a["parallel_sublayers"] else x + written
            read = norm(read, f"{place}.feed_forward_norm") if before else read
            out = _feed_forward(layer.within("feed_forward."), a, read)
            x = x + written + (norm(out, f"{place}.feed_forward_out_norm") if of_output else out)
    x = x if post else norm(x, "final_norm")
    unembedding = tensors.as_stored("W_E") if a["tied_embeddings"] else tensors.as_stored("W_U_free").T
    logits = read_out(x, unembedding, tensors.get("b_U"))
    return logits if a["logit_cap"] is None else kept_below(logits, a["logit_cap"])


def _gain(tensors: FileTensors, a: Mapping[str, Any], name: str) -> Tensor:
    """The factor that a norm multiplies by."""
    return tensors[f"{name}.weight"] + (1 if a["norm_offset"] else 0)


def _attention(tensors: FileTensors, a: Mapping[str, Any], read: Tensor, layer: int) -> Tensor:
    n, width = read.shape[1:]
    with_place = read
    if a["positions"] == "shortformer":
        with_place = read + _waves(n, width)
    if a["positions"] == "learned_shortformer":
        with_place = read + tensors["W_pos"][:n]
    q, k, v = (_by_head(tensors, part, x) for part, x in (("Q", with_place), ("K", with_place), ("V", read)))
    d_head = q.shape[-1]
    if a["qk_normalization"]:
        epsilon = 1e-6 if a["norm_epsilon"] is None else a["norm_epsilon"]
        width = {"head": -1, "layer": -2}[a["qk_normalization_over"]]  # [..., head, dimension] from that axis on
        q, k = (
            rms_norm(x.flatten(width), epsilon, _gain(tensors, a, f"{name}_norm").flatten()).view_as(x)
            for name, x in (("q", q), ("k", k))
        )
    if a["key_smearing"]:
        k = _smeared(k, tensors["smearing"])
    if a["positions"] == "rotary":
        n_turned = int(a["rotary_fraction"] * d_head)
        half_split = a["rotary_pairs"] == "half-split"
        base, stretch = a["rotary_base"], a["rotary_stretch"]
        if a["windowed_rotary_base"] is not None and layer in a["windowed_layers"]:
            base, stretch = a["windowed_rotary_base"], 1.0
        rates = [stretched(rate, stretch, a["rotary_stretched_wavelengths"]) for rate in rates_of(base, n_turned)]
        q, k = (turned(part, rates, half_split) for part in (q, k))
    by_distance = None
    if a["positions"] == "relative":
        behind = torch.arange(n)[:, None] - torch.arange(n)
        by_distance = tensors["position_bias"][:, behind.clamp(min=0)]
    scale = d_head**-0.5 if a["score_scale"] is None else a["score_scale"]
    windowed = a["windowed_layers"] is None or layer in a["windowed_layers"]
    mixed = attended(q, k, v, ScoreForm(scale, a["score_cap"], by_distance), _visible(a) if windowed else ALL_EARLIER)
    out = torch.einsum("bphe,hed->bpd", mixed, tensors["W_O"])
    bias = tensors.get("b_O")
    return out if bias is None else out + bias


def _smeared(k: Float64[Tensor, "batch pos head d_head"], raw: Float64[Tensor, "head"]) -> Tensor:
    """Each key but the first as a mean of itself, with the weight 1 / (1 + e^-raw), and of the key before it."""
    weight = 1 / (1 + torch.exp(-raw))
    mixed = k.clone()
    for position in range(1, k.shape[1]):
        mixed[:, position] = weight[:, None] * k[:, position] + (1 - weight[:, None]) * k[:, position - 1]
    return mixed


def _visible(a: Mapping[str, Any]) -> Visible:
    """The keys that a query sees; where an architecture doesn't say how many, 32."""
    match a["attention"]:
        case "local":
            return Visible(a["attention_window"] or min(32, a["n_ctx"]))
        case "strided":
            stride = a["stride"] or 4
            return Visible(a["attention_window"] or min(32, (a["n_ctx"] - 1) // stride + 1), stride)
        case "top_k":
            return Visible(top_k=a["top_k"] or min(32, a["n_ctx"]))
    return ALL_EARLIER


def _by_head(tensors: FileTensors, part: str, x: Tensor) -> Tensor:
    shared = "_shared" if f"W_{part}_shared" in tensors.names else ""
    bias = tensors.get(f"b_{part}{shared}")
    out = torch.einsum("bpd,hde->bphe", x, tensors[f"W_{part}{shared}"])
    return out if bias is None else out + bias


def _feed_forward(tensors: FileTensors, a: Mapping[str, Any], x: Tensor) -> Tensor:
    def with_bias(out: Tensor, bias: Tensor | None) -> Tensor:
        return out if bias is None else out + bias

    hidden = with_bias(x @ tensors["W_in"], tensors.get("b_in"))
    activate = _ACTIVATIONS[a["feed_forward"]]
    if "W_gate" in tensors.names:
        hidden = activate(with_bias(x @ tensors["W_gate"], tensors.get("b_gate"))) * hidden
    else:
        hidden = activate(hidden)
    return with_bias(hidden @ tensors["W_out"], tensors.get("b_out"))


def _waves(n: int, width: int) -> Tensor:
    """Sine and cosine in turn, at wavelengths from 2 pi up. Source: Vaswani et al. 2017, section 3.5."""
    place = torch.arange(n, dtype=torch.float64)[:, None]
    rate = torch.tensor([10_000 ** (-(d // 2 * 2) / width) for d in range(width)], dtype=torch.float64)
    return torch.where(torch.arange(width) % 2 == 0, torch.sin(place * rate), torch.cos(place * rate))
