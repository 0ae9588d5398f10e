"""Layer-wise relevance propagation: the share of a prediction's relevance that passes through each head.

Relevance starts as 1 on the predicted token's logit and moves back through the run. Where an output is a sum of terms,
terms of its sign and of the other share its relevance half and half (alpha = beta = 0.5), each kind by size; a kind
whose sum is small compared with EPS counts for less, and one that is absent leaves all to the other. So relevance is
never negative and its sum is preserved at each step; only the part that a bias alone explains is lost. The terms of
  a matrix product (W_U, W_O, W_V, feed-forward): input times weight, without biases and the fill of pruned heads
  the residual stream: the stream before, and the output of the sublayer
  z: attention times value; patterns are held fixed, so a head that only changes later patterns gets nothing
  a gated feed-forward layer's activations: gate times the output of W_in; gates are held fixed like patterns
Norms, activations and gates pass their relevance on.
Source: Voita et al. 2019, section 4, and its code, lib/layers/lrp.py, which instead restores the sum once per layer
and, unless `consider_attn_constant`, lets queries and keys share by the softmax's derivative. Bach et al. 2015.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.heads.scoring_inputs import HeadScores, ScoringInputs
from headstream.models.transformer import HeadMask, Layer, LayerTrace, Trace, Transformer

EPS = 1e-5
MIN_STRENGTH = 1e-12  # weaker terms are too small to divide by


@torch.inference_mode()
def lrp(inputs: ScoringInputs) -> HeadScores:
    """Share of a prediction's relevance that passes through each head, mean over predictions, 0..1.

    The source divides each prediction's relevance by its layer's sum.
    """
    model, found = inputs.model, []
    for batch in batches(model, inputs.text):
        trace = model.trace(batch[:, :-1], inputs.head_mask, inputs.fill)
        found.append([heads.double().mean(2).cpu() for heads in relevance(model, trace, inputs.head_mask)[0]])
    return [torch.cat(layer).mean(0) for layer in zip(*found, strict=True)]


def relevance(
    model: Transformer, trace: Trace, head_mask: HeadMask | None
) -> tuple[list[Float[Tensor, "batch _ pos"]], list[Float[Tensor, "batch pos d_model"]]]:
    """Relevance of all predictions together in each head's z, and in the stream that each layer, and W_U, reads.

    Each position of a sequence starts with 1.
    """
    to_logit = trace.residual_final * model.W_U.T[trace.logits.argmax(-1)]
    r = _to_terms(torch.ones_like(to_logit[..., :1]), to_logit, dim=-1)
    heads, streams = [], [r]
    for i, traced in reversed(list(enumerate(trace.layers))):
        layer = model.layers[i]
        z = traced.z if head_mask is None else traced.z * head_mask[i][:, None, None].to(traced.z.dtype)
        r_z, r = _through_layer(layer, traced, z, r)
        heads.append(r_z.sum(-1))
        streams.append(r)
    return heads[::-1], streams[::-1]


def _through_layer(
    layer: Layer, traced: LayerTrace, z: Float[Tensor, "batch head pos d_value"], r: Float[Tensor, "batch pos d_model"]
) -> tuple[Float[Tensor, "batch head pos d_value"], Float[Tensor, "batch pos d_model"]]:
    """Propagate relevance from the stream after a layer to its z, and to the stream before it."""
    x, attention = traced.residual_in, layer.attention
    beside: Tensor | float = 0.0  # of what a parallel feed-forward layer read
    if layer.feed_forward is not None and traced.feed_forward_out is not None:
        middle = layer.residual_mid(x, traced.attention_out)
        r, r_out = _to_terms(r, torch.stack([middle, layer.feed_forward_out_norm(traced.feed_forward_out)]), dim=0)
        read_mid, feed_forward = layer.read_mid(x, middle), layer.feed_forward
        r_hidden = _through_product(r_out, feed_forward.hidden(read_mid), feed_forward.W_out)
        r_read = _through_product(r_hidden, read_mid, feed_forward.W_in)
        r, beside = (r, r_read) if layer.parallel else (r + r_read, beside)
    r, r_out = _to_terms(r, torch.stack([x, layer.attention_out_norm(traced.attention_out)]), dim=0)
    r = r + beside
    z = z.transpose(1, 2)
    r_z = _through_product(r_out, z.flatten(2), attention.W_O.flatten(0, 1)).view_as(z).transpose(1, 2)
    read = layer.read(x)
    values = attention.queries_keys_values(read)[2]
    r_values = _through_mix(r_z, traced.pattern, values)
    W_V = attention.W_V.transpose(0, 1).flatten(1)
    return r_z, r + _through_product(r_values.transpose(1, 2).flatten(2), read, W_V)


def _to_terms(r: Float[Tensor, "..."], terms: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """Propagate relevance from a sum along a dimension to its terms."""
    raising, lowering = _signs(terms)
    per_raising, per_lowering = _per_unit(r, raising.sum(dim, keepdim=True), lowering.sum(dim, keepdim=True))
    return raising * per_raising + lowering * per_lowering


def _through_product(
    r: Float[Tensor, "batch pos out"], x: Float[Tensor, "batch pos in"], weight: Float[Tensor, "in out"]
) -> Float[Tensor, "batch pos in"]:
    """Propagate relevance from x @ weight to x."""
    (x_up, x_down), (w_up, w_down) = _signs(x), _signs(weight)
    per_raising, per_lowering = _per_unit(r, x_up @ w_up + x_down @ w_down, x_up @ w_down + x_down @ w_up)
    up, down = per_raising @ w_up.T + per_lowering @ w_down.T, per_raising @ w_down.T + per_lowering @ w_up.T
    return x_up * up + x_down * down


def _through_mix(
    r: Float[Tensor, "batch head q_pos d_value"],
    pattern: Float[Tensor, "batch head q_pos k_pos"],
    values: Float[Tensor, "batch head k_pos d_value"],
) -> Float[Tensor, "batch head k_pos d_value"]:
    """Propagate relevance from pattern @ values to values."""
    up, down = _signs(values)
    per_raising, per_lowering = _per_unit(r, pattern @ up, pattern @ down)
    return up * (pattern.mT @ per_raising) + down * (pattern.mT @ per_lowering)


def _per_unit(
    r: Float[Tensor, "..."], raising: Float[Tensor, "..."], lowering: Float[Tensor, "..."]
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Relevance per unit of the terms that raise a sum, and of those that lower it, given the two totals."""
    strength = raising / (raising + EPS) + lowering / (lowering - EPS)
    r = (r / strength).where(strength > MIN_STRENGTH, 0)
    return r / (raising + EPS), r / (lowering - EPS)


def _signs(x: Float[Tensor, "..."]) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    return x.clamp(min=0), x.clamp(max=0)
