"""What must hold exactly in a model: by how much it doesn't, on some text.

Identities have the names of the claims that rest on them. Differences of logits and of outputs are relative to the
standard deviation of what is compared, those of patterns are not. None: the identity isn't about such a model.
"""

from copy import deepcopy

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.circuits.frozen import FrozenLayer, FrozenRun, freeze_run
from models.circuits.paths import head_paths, paths_by_order
from models.transformer import Transformer


@torch.inference_mode()
def identity_errors(model: Transformer, tokens: Int[Tensor, "batch pos"]) -> dict[str, float]:
    """Largest violation of each identity that applies to a model, by the identity's name.

    Sums of paths are in the model's own arithmetic, since it is that which must not lose them; the rest is in float64.
    """
    tokens = tokens.to(model.W_E.device)
    run, exact = freeze_run(model, tokens), freeze_run(deepcopy(model).double(), tokens)
    errors = {check.__name__: check(run) for check in (paths_sum, terms_add)}
    for check in (pattern_bilinear, source_decides, heads_independent, one_head_is_attention):
        errors[check.__name__] = check(exact)
    errors = {name.replace("_", "-"): error for name, error in errors.items()}
    return {name: error for name, error in errors.items() if error is not None}


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
    logits = run.model.unembed(paths_by_order(run).orders[0])
    for _, part in head_paths(run):
        logits = logits + part @ run.model.W_U
    return _relative(logits, run.trace.logits)


def pattern_bilinear(run: FrozenRun) -> float | None:
    """Largest difference between the first layer's patterns and the softmax of W_E QK W_E^T and position bias."""
    a = run.model.architecture
    if not _first_heads_read_tokens(run) or a.positions not in ("relative", "none") or a.qk_normalization:
        return None
    if a.attention == "top_k":  # rounding decides which of equal scores are kept
        return None
    attention, (token, place) = run.layers[0].attention, run.tokens.unique(return_inverse=True)
    W_E = run.model.W_E[token]
    full = W_E @ (attention.W_Q @ attention.W_K.mT) @ W_E.T * attention.d_head**-0.5
    scores = full[:, place[:, :, None], place[:, None, :]].transpose(0, 1)
    return _largest(attention.pattern(scores) - run.layers[0].trace.pattern)


def source_decides(run: FrozenRun) -> float | None:
    """Largest difference between a first-layer head's logits and its pattern times W_E OV W_U of the source tokens."""
    a = run.model.architecture
    if not _first_heads_read_tokens(run) or a.positions in ("learned", "sinusoidal") or a.gates != "none":
        return None
    attention, traced = run.layers[0].attention, run.layers[0].trace
    token, place = run.tokens.unique(return_inverse=True)
    errors = []
    for head, (W_V, W_O) in enumerate(zip(attention.W_V, attention.W_O, strict=True)):
        full = run.model.W_E[token] @ (W_V @ W_O) @ run.model.W_U
        errors.append(_relative(traced.pattern[:, head] @ full[place], traced.head_outputs[:, head] @ run.model.W_U))
    return max(errors)


def heads_independent(run: FrozenRun) -> float | None:
    """Largest difference between what the heads of a layer write together and the sum of what each writes."""
    errors = []
    for layer in _layers_with_heads(run):
        b_O = layer.attention.b_O
        written = layer.trace.head_outputs.sum(1) + (0 if b_O is None else b_O)
        errors.append(_relative(written, layer.trace.attention_out))
    return max(errors, default=None)


def one_head_is_attention(run: FrozenRun) -> float | None:
    """Largest difference between what heads mix by the fast way and by their patterns; None with gates or top_k."""
    if run.model.architecture.attention == "top_k" or run.model.architecture.gates != "none":
        return None
    errors = [_relative(layer.attention.mix_fused(layer.read), layer.trace.z) for layer in _layers_with_heads(run)]
    return max(errors, default=None)


def _first_heads_read_tokens(run: FrozenRun) -> bool:
    """Whether there are heads in the first layer, and between them and the tokens nothing but weights."""
    a = run.model.architecture
    return sum(a.heads_per_layer[:1]) > 0 and a.normalization == "none" and not (a.biases or a.qkv_biases)


def _layers_with_heads(run: FrozenRun) -> list[FrozenLayer]:
    return [layer for layer in run.layers if len(layer.attention.W_O)]


def _relative(found: Float[Tensor, "*shape"], wanted: Float[Tensor, "*shape"]) -> float:
    return _largest(found - wanted) / max(wanted.std().item(), torch.finfo(wanted.dtype).tiny)


def _largest(difference: Float[Tensor, "*shape"]) -> float:
    return difference.abs().max().item()
