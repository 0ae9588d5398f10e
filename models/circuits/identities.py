"""Identities that must hold exactly in a model, and by how much they fail on some text.

Identities have the names of the claims that rest on them. Differences of logits and of outputs are relative to the
standard deviation of what is compared, those of patterns are not. None: the identity isn't about such a model.
"""

from copy import deepcopy

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.circuits.paths import head_paths, paths_by_order
from headstream.models.frozen import FrozenLayer, FrozenRun, freeze_layer, freeze_run
from headstream.models.transformer import Transformer


@torch.inference_mode()
def identity_errors(model: Transformer, tokens: Int[Tensor, "batch pos"]) -> dict[str, float]:
    """Largest violation of each identity that applies to a model, by the identity's name.

    Sums of paths are in the model's own arithmetic, since it is that which must not lose them; the rest is in float64,
    layer by layer.
    """
    tokens = tokens.to(model.W_E.device)
    run = freeze_run(model, tokens)
    found: dict[str, list[float | None]] = {check.__name__: [check(run)] for check in (paths_sum, terms_add)}
    x = model.embed(tokens).double()
    for i, layer in enumerate(model.layers):
        exact = deepcopy(layer).double()
        trace = exact.trace(x)
        x, frozen = trace.residual_out, freeze_layer(exact, trace)
        if i == 0:
            found |= {check.__name__: [check(model, tokens, frozen)] for check in (pattern_bilinear, source_decides)}
        for every in (heads_independent, one_head_is_attention):
            found.setdefault(every.__name__, []).append(every(model, frozen))
    errors = {name: [error for error in own if error is not None] for name, own in found.items()}
    return {name.replace("_", "-"): max(own) for name, own in errors.items() if own}


def paths_sum(run: FrozenRun) -> float:
    """Largest difference between the logits and the sum of the paths of all orders."""
    paths = paths_by_order(run)
    stream = paths.orders.sum(0)
    if paths.feed_forward is not None:
        stream = stream + paths.feed_forward
    return _relative(run.model.unembed(stream), run.trace.logits)


def terms_add(run: FrozenRun) -> float | None:
    """Largest difference between a one-layer model's logits and the sum of the direct path's and each head's."""
    a = run.model.architecture
    if a.n_layers != 1 or a.feed_forward != "none":
        return None
    logits = run.model.linear_logits(paths_by_order(run).orders[0])
    for _, part in head_paths(run):
        logits = logits + part @ run.model.W_U
    return _relative(run.model.capped(logits), run.trace.logits)


def pattern_bilinear(model: Transformer, tokens: Int[Tensor, "batch pos"], first: FrozenLayer) -> float | None:
    """Largest difference between the first layer's patterns and the softmax of W_E QK W_E^T and position bias."""
    a = model.architecture
    if not _first_heads_read_tokens(model) or a.positions not in ("relative", "none") or a.qk_normalization:
        return None
    if a.key_smearing or a.attention == "top_k" or a.score_cap is not None:
        return None  # a key isn't of one token; or rounding decides which of equal scores are kept
    attention, (token, place) = first.attention, tokens.unique(return_inverse=True)
    W_E = model.token_vectors[token].double()
    full = W_E @ (attention.W_Q @ attention.W_K.mT) @ W_E.T * attention.scale
    scores = full[:, place[:, :, None], place[:, None, :]].transpose(0, 1)
    return _largest(attention.pattern(scores) - first.trace.pattern)


def source_decides(model: Transformer, tokens: Int[Tensor, "batch pos"], first: FrozenLayer) -> float | None:
    """Largest difference between a first-layer head's logits and its pattern times W_E OV W_U of the source tokens."""
    a = model.architecture
    if not _first_heads_read_tokens(model) or a.positions in ("learned", "sinusoidal") or a.gates != "none":
        return None
    attention, traced, W_U = first.attention, first.trace, model.W_U.double()
    token, place = tokens.unique(return_inverse=True)
    errors = []
    for head, (W_V, W_O) in enumerate(zip(attention.W_V, attention.W_O, strict=True)):
        full = model.token_vectors[token].double() @ (W_V @ W_O) @ W_U
        errors.append(_relative(traced.pattern[:, head] @ full[place], traced.head_outputs[:, head] @ W_U))
    return max(errors)


def heads_independent(model: Transformer, layer: FrozenLayer) -> float | None:
    """Largest difference between what the heads of a layer write together and the sum of what each writes."""
    if not len(layer.attention.W_O):
        return None
    b_O = layer.attention.b_O
    written = layer.trace.head_outputs.sum(1) + (0 if b_O is None else b_O)
    return _relative(written, layer.trace.attention_out)


def one_head_is_attention(model: Transformer, layer: FrozenLayer) -> float | None:
    """Largest difference between what heads mix by the fast way and by their patterns; None with gates or top_k."""
    if not len(layer.attention.W_O) or model.architecture.attention == "top_k" or model.architecture.gates != "none":
        return None
    return _relative(layer.attention.mix_fused(layer.read), layer.trace.z)


def _first_heads_read_tokens(model: Transformer) -> bool:
    """True if there are heads in the first layer, and nothing but weights between them and the tokens."""
    a = model.architecture
    return sum(a.heads_per_layer[:1]) > 0 and a.normalization == "none" and not (a.biases or a.qkv_biases)


def _relative(found: Float[Tensor, "*shape"], wanted: Float[Tensor, "*shape"]) -> float:
    return _largest(found - wanted) / max(wanted.std().item(), torch.finfo(wanted.dtype).tiny)


def _largest(difference: Float[Tensor, "*shape"]) -> float:
    return difference.abs().max().item()
