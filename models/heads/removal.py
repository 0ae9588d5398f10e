"""Physical removal of heads: a smaller model with the logits of the masked one."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.attention_heads import SHARED_SUFFIX
from headstream.models.parameters import declared_parameters
from headstream.models.transformer import Fill, HeadMask, Layer, Transformer

_State = dict[str, Tensor]


def remove_heads(model: Transformer, head_mask: HeadMask, fill: Fill | None = None) -> Transformer:
    """A smaller model without the heads that a mask sets to 0, whose logits are those of the masked model.

    Heads that shared keys and values get their own. A mask between 0 and 1 is folded into W_O, and the fill for z into
    b_O, which every layer gets if it had none. A layer that is left without heads, feed-forward layer, b_O and norm
    after it vanishes.

    Raises:
        ValueError: the fill differs between positions, which no bias can express; or no head can be removed.
    """
    if reason := why_no_removal(model.architecture):
        raise ValueError(reason)
    states, left = [], []
    for i, layer in enumerate(model.layers):
        state = _masked_state(layer, head_mask[i], fill[i] if fill else None)
        normalises = (layer.post and layer.attention_norm.kind != "none") or layer.attention_out_norm.bias is not None
        if len(state["attention.W_O"]) or layer.feed_forward or "attention.b_O" in state or normalises:
            states.append(state)
            left.append(i)
    if any("attention.b_O" in state for state in states):
        for state in states:
            state.setdefault("attention.b_O", model.W_E.new_zeros(model.architecture.d_model))
    return _assembled(model, states, left)


def why_no_removal(architecture: Architecture) -> str | None:
    """Why no smaller model has the logits of one with masked heads; None where there is one."""
    if architecture.qk_normalization and architecture.qk_normalization_over == "layer":
        return (
            "qk_normalization_over must be 'head' for heads to be removed, got 'layer': queries and keys that nobody"
            " needs any more would be missing from the norm of the others. Mask heads instead."
        )
    return None


def layer_without_heads(
    architecture: Architecture, layer: Layer, head_mask: Float[Tensor, "head"], fill: Tensor | None
) -> Layer:
    """A smaller layer that computes the same; it shares parameters that belong to no head with the original."""
    state = _masked_state(layer, head_mask, fill)
    changed = {"output_biases": not architecture.biases and "attention.b_O" in state, "n_key_value_heads": None}
    with torch.device("meta"):  # every parameter is given
        smaller = Layer(architecture.model_copy(update=changed), len(state["attention.W_O"]))
    smaller.load_state_dict(state, assign=True)
    return smaller.requires_grad_(False)


def _masked_state(layer: Layer, mask: Float[Tensor, "head"], fill: Float[Tensor, "head pos d_value"] | None) -> _State:
    """Parameters of a layer with a mask and its fill folded in, by name."""
    W_O = layer.attention.W_O.detach()
    kept, scale = mask.nonzero().flatten().to(W_O.device), mask.to(W_O)[:, None, None]
    state = dict(layer.state_dict()) | {"attention.W_O": W_O * scale}
    for name, _, declaration in declared_parameters(layer):
        if declaration.head_axis is not None:
            state[name] = state[name].index_select(declaration.head_axis, kept)
        elif name.endswith(SHARED_SUFFIX):  # the remaining heads may not form whole groups, so each gets its own
            own = layer.attention.to_heads(state.pop(name))
            state[name.removesuffix(SHARED_SUFFIX)] = own.index_select(0, kept)
    if fill is not None and (mask != 1).any():
        if fill.shape[1] != 1:
            raise ValueError(
                f"a fill must be the same at every position to become a bias, got {fill.shape[1]} positions."
                " Take means over positions."
            )

        constant = (fill.to(W_O) @ W_O * (1 - scale)).sum((0, 1))
        state["attention.b_O"] = state.get("attention.b_O", 0) + constant
    return state


def _assembled(model: Transformer, layers: list[_State], left: list[int]) -> Transformer:
    """The model with these layers, which were layers `left` of it, in place of its own."""
    a = model.architecture
    state = {name: weight.clone() for name, weight in model.state_dict().items() if not name.startswith("layers.")}
    for i, layer in enumerate(layers):
        state |= {f"layers.{i}.{name}": weight.clone() for name, weight in layer.items()}
    changed = {
        "n_layers": len(layers),
        "n_heads": tuple(len(layer["attention.W_O"]) for layer in layers),
        "d_head": a.head_width,
        "d_value": a.value_width,
        "n_key_value_heads": None,
        "output_biases": not a.biases and any("attention.b_O" in layer for layer in layers),
        **_windows(a, left),
    }
    with torch.device("meta"):  # every parameter is given
        smaller = Transformer(Architecture.model_validate(a.model_dump() | changed), model.d_vocab)
    smaller.load_state_dict(state, assign=True)
    return smaller.train(model.training).requires_grad_(model.W_E.requires_grad)


def _windows(a: Architecture, left: list[int]) -> dict[str, Any]:
    """Fields for the windows of the layers that are left, if only some layers have one."""
    if a.windowed_layers is None:
        return {}
    layers = tuple(new for new, old in enumerate(left) if old in a.windowed_layers)
    full = {"attention": "full", "attention_window": None, "stride": None} | dict.fromkeys(
        ("windowed_layers", "windowed_rotary_base")
    )
    return {"windowed_layers": layers} if layers else full
