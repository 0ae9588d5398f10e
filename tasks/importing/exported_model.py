"""A model to be exported, in the terms that formats share: choices that a format lacks become equivalent ones."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.positions import sinusoids
from headstream.tasks.errors import UserError
from headstream.tasks.importing.placements import Declared, Placement, parameters_of

# Positions that are a special case of learned ones.
_AS_LEARNED = {"sinusoidal": "learned", "none": "learned", "shortformer": "learned_shortformer"}

_ROTARY = ("rotary_stretch", "rotary_stretched_wavelengths", "windowed_rotary_base")
# Parameters with an entry for each dimension of queries or keys.
_OF_QUERIES_AND_KEYS = ("W_Q", "W_K", "b_Q", "b_K", "q_norm.weight", "k_norm.weight")
# Fields that decide nothing in a model without layers.
_OF_LAYERS = (
    *("n_heads", "n_key_value_heads", "d_head", "d_value", "qk_normalization", "qk_normalization_over", "qkv_biases"),
    "gates",
    *("rotary_base", "rotary_width", "rotary_pairs", "attention", "attention_window", "stride", "top_k"),
    *("score_scale", "score_cap", "windowed_layers", *_ROTARY),
    *("feed_forward", "d_mlp", "parallel_sublayers", "normalization_place"),
)


@dataclass(frozen=True)
class ExportedModel:
    """A model at one of its checkpoints."""

    architecture: Architecture
    d_vocab: int
    weights: Mapping[str, Tensor]  # by Headstream's names
    bos: int | None  # None: it was trained without
    step: int
    tokens: int | None  # number that it was trained on by then, if known


class ExportedFiles(NamedTuple):
    """The content of an export, in a format whose folders hold a config and weights."""

    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    notes: list[str]  # for the user: the model type it was written as, and choices that were expressed differently


def file_metadata(model: ExportedModel) -> dict[str, str]:
    """Metadata for a file of weights: how long they were trained."""
    known = {"format": "pt", "step": str(model.step)}
    return known if model.tokens is None else known | {"tokens": str(model.tokens)}


def with_learned_positions(model: ExportedModel) -> ExportedModel:
    """The same function with positions in a table, if a formula gives them or there are none."""
    a = model.architecture
    positions = "none" if not a.n_layers and a.positions not in ("learned", "sinusoidal") else a.positions
    if positions not in _AS_LEARNED:
        return model
    table = torch.zeros(a.n_ctx, a.d_model)
    if positions != "none":
        table = sinusoids(a.n_ctx, a.d_model, table)
    learned = _AS_LEARNED[positions]
    names = ["W_pos"] if learned == "learned" else [f"layers.{i}.attention.W_pos" for i in range(a.n_layers)]
    tables = {name: table.clone() for name in names}
    return replace(model, architecture=a.model_copy(update={"positions": learned}), weights={**model.weights, **tables})


def with_rotary_pairs(model: ExportedModel, pairs: Literal["half-split", "neighbouring"]) -> ExportedModel:
    """The same function with rotary pairs of this kind: dimensions of queries and keys are reordered alike."""
    a = model.architecture
    if a.positions != "rotary" or a.rotary_pairs == pairs:
        return model
    places = torch.arange(a.rotary_width)
    turned = torch.cat([places[::2], places[1::2]]) if pairs == "half-split" else places.view(2, -1).T.flatten()
    order = torch.cat([turned, torch.arange(a.rotary_width, a.head_width)])
    moved = {
        name: tensor[..., order]
        for name, tensor in model.weights.items()
        if name.rpartition("attention.")[2].removesuffix("_shared") in _OF_QUERIES_AND_KEYS
    }
    return replace(model, architecture=a.model_copy(update={"rotary_pairs": pairs}), weights={**model.weights, **moved})


def choices_of(architecture: Architecture) -> dict[str, Any]:
    """Every field of an architecture that matters given the others, with sizes and defaults spelled out.

    Most biases are left out, since they are only weights: writing them shows if a format has tensors for them.
    """
    a, waves = architecture, architecture.rotary_stretched_wavelengths
    spelled_out = {
        "n_heads": a.heads_per_layer,
        "n_key_value_heads": [a.key_value_heads(n) for n in a.heads_per_layer],
        "d_head": a.head_width,
        "d_value": a.value_width,
        "d_mlp": a.mlp_width,
        "norm_epsilon": a.epsilon_of(a.normalization),
        "rotary_width": a.rotary_width,
        "rotary_stretched_wavelengths": waves and tuple(float(f"{each:.12g}") for each in waves),
        "attention": "full" if a.attention == "local" and len(a.visible_distances) == a.n_ctx else a.attention,
        "attention_window": len(a.visible_distances),
        "top_k": a.kept_keys,
        "score_scale": None if math.isclose(a.query_scale, a.head_width**-0.5) else float(f"{a.query_scale:.12g}"),
    }
    choices = dict(a) | spelled_out
    idle = {"biases", "output_biases", "rotary_fraction", *_idle(choices)}
    return {name: value for name, value in choices.items() if name not in idle}


def _idle(choices: Mapping[str, Any]) -> Iterator[str]:
    """Fields that decide nothing beside others."""
    if not choices["n_layers"]:
        yield from _OF_LAYERS
    if not choices["qk_normalization"]:
        yield "qk_normalization_over"
    if not choices["qkv_biases"]:
        yield "qkv_biases"
    if choices["attention"] == "full":
        yield from ("attention_window", "windowed_layers", "stride", "top_k")
    if choices["positions"] != "rotary":
        yield from ("rotary_base", "rotary_width", "rotary_pairs", *_ROTARY)
    if choices["normalization"] == "none":
        yield from ("norm_epsilon", "normalization_place")
        if not choices["qk_normalization"]:
            yield "norm_offset"
    if choices["feed_forward"] == "none":
        yield from ("d_mlp", "parallel_sublayers")


def differences(wanted: Architecture, there: Architecture) -> list[str]:
    """Choices of one architecture that another doesn't share, as `field = value`."""
    own, other = choices_of(wanted), choices_of(there)
    return [f"{name} = {value!r}" for name, value in own.items() if name not in other or other[name] != value]


def written_tensors(
    model: ExportedModel, written: Architecture, placements: Sequence[Placement], what: str
) -> dict[str, Tensor]:
    """The tensors of a file; parameters that only the format has get their initial values.

    Raises:
        UserError: the format has no tensor for a parameter that differs from its initial values.
    """
    held = {name for place in placements for name in place.parameters}
    own = parameters_of(model.architecture, model.d_vocab)
    for name, declared in own.items():
        if name not in held and not _as_at_start(model.weights[name], declared):
            raise UserError(
                f"{what} has no tensor for {name}, which is not {declared.start} throughout. Export it --to headstream."
            )
    theirs = parameters_of(written, model.d_vocab)
    filled = {
        name: model.weights[name] if name in own else torch.full(theirs[name].shape, float(theirs[name].start or 0))
        for name in held
    }
    tensors = {}
    for place in placements:
        parameters = [filled[name] for name in place.parameters]
        written_once = place.layout.read(place.layout.write(*parameters), [each.shape for each in parameters])
        if not all(map(torch.equal, parameters, written_once)):
            raise UserError(
                f"{what} has one tensor for {' and '.join(place.parameters)}, which differ. Export it --to headstream."
            )
        tensors[place.tensor] = place.layout.write(*parameters).contiguous().clone()
    return tensors


def _as_at_start(weight: Tensor, declared: Declared) -> bool:
    return declared.start is not None and bool((weight == declared.start).all())
