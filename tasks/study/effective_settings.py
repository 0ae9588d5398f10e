"""The settings of a model that have an effect: models that agree in them are the same, however they are written."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from headstream.models.architecture import Architecture
from headstream.tasks.study.training_config import TrainingConfig

# Without heads these have no effect; nor have positions, unless they are added to the stream.
_OF_HEADS = (
    *(
        "d_value",
        "n_key_value_heads",
        "qk_normalization",
        "qk_normalization_over",
        "qkv_biases",
        "windowed_rotary_base",
    ),
    *("attention", "attention_window", "windowed_layers", "stride", "top_k", "score_scale", "score_cap"),
    *("gates", "key_smearing"),
)
_OF_ROTARY = (
    *("rotary_base", "rotary_fraction", "rotary_pairs"),
    *("rotary_stretch", "rotary_stretched_wavelengths", "windowed_rotary_base"),
)
_IN_THE_STREAM = ("learned", "sinusoidal")
# Derived from other settings where they are not set.
_DERIVED = (
    "n_key_value_heads",
    "d_head",
    "d_value",
    "d_mlp",
    "norm_epsilon",
    "attention_window",
    "stride",
    "top_k",
    "score_scale",
)


def effective(architecture: Architecture, training: TrainingConfig) -> tuple[Architecture, TrainingConfig]:
    """The same model with every setting that has no effect at its default."""
    architecture = _effective_architecture(architecture)
    inert = dict.fromkeys(_inert_in_training(architecture, training))
    return architecture, training.model_copy(update={name: _default(TrainingConfig, name) for name in inert})


def _effective_architecture(a: Architecture) -> Architecture:
    fields = a.model_dump()
    if a.n_layers == 0:
        fields |= {"n_heads": 1, "d_head": None} | _defaults("feed_forward", "d_mlp", "output_biases")
    elif a.heads_per_layer[0] and len(set(a.heads_per_layer)) == 1:
        fields["n_heads"] = a.heads_per_layer[0]
    if not any(a.heads_per_layer):
        fields |= _defaults(*_OF_HEADS)
        if a.positions not in _IN_THE_STREAM:
            fields |= _defaults("positions")
        if a.n_layers:
            fields["d_head"] = 1  # a list of head counts needs one
    if fields["positions"] != "rotary":
        fields |= _defaults(*_OF_ROTARY)
    if a.normalization == "none":
        fields |= _defaults("normalization_place")
        if not fields["qk_normalization"]:
            fields |= _defaults("norm_offset")
    if fields["feed_forward"] == "none":
        fields |= _defaults("parallel_sublayers")
    if not a.qk_normalization:
        fields |= _defaults("qk_normalization_over")
    if a.rotary_stretch == 1:
        fields |= _defaults("rotary_stretched_wavelengths")
    if a.windowed_rotary_base == a.rotary_base and a.rotary_stretch == 1:
        fields |= _defaults("windowed_rotary_base")
    if a.windowed_layers == tuple(range(a.n_layers)) and fields["windowed_rotary_base"] is None:
        fields |= _defaults("windowed_layers")
    if a.biases:
        fields |= _defaults("output_biases", "qkv_biases")
    a = Architecture.model_validate(fields)
    for name in _DERIVED:
        try:
            derived = Architecture.model_validate({**a.model_dump(), name: None})
        except ValidationError:  # it must be set
            continue
        if _sizes(derived) == _sizes(a):
            a = derived
    return a


def _inert_in_training(a: Architecture, training: TrainingConfig) -> Iterator[str]:
    """Fields of a training that have no effect on a model of this (effective) architecture."""
    has_heads = any(a.heads_per_layer)
    if a.n_layers == 0:
        yield "optimizer"  # Muon is for the matrices of layers
    if a.n_layers == 0 or training.optimizer != "muon":
        yield from ("muon_learning_rate", "muon_weight_decay")
    if not has_heads:
        yield "prune_to"
    if not has_heads or a.positions != "relative":
        yield "position_rate"
    if a.gates == "none":
        yield from ("gate_penalty", "gate_rate")
    if a.gates != "dynamic":
        yield "active_fraction"


def _sizes(a: Architecture) -> tuple[object, ...]:
    sizes = (a.head_width, a.value_width, a.mlp_width, a.visible_distances, a.kept_keys, a.query_scale)
    shared = tuple(map(a.key_value_heads, a.heads_per_layer))
    norms = {a.normalization, "rmsnorm" if a.qk_normalization else "none"} - {"none"}
    return a.heads_per_layer, shared, *sizes, *(a.epsilon_of(kind) for kind in sorted(norms))


def _defaults(*names: str) -> dict[str, Any]:
    return {name: _default(Architecture, name) for name in names}


def _default(config: type[Architecture] | type[TrainingConfig], name: str) -> Any:
    return config.model_fields[name].default
