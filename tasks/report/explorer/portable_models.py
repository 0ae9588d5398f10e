"""Models as a page can run them: their sizes, and their weights in 16 bits."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from headstream.models.hard_concrete import gates_without_noise
from headstream.models.known_options import KnownOptions, unknown_options
from headstream.models.transformer import Transformer

# The options of an architecture that transformer.js runs.
RUNS: KnownOptions = {
    **dict.fromkeys(("n_layers", "n_heads", "n_key_value_heads", "d_model", "d_head", "d_value", "d_mlp", "n_ctx")),
    "positions": ("relative", "shortformer", "learned_shortformer", "rotary", "learned", "sinusoidal", "none"),
    **dict.fromkeys(("rotary_base", "rotary_fraction")),
    "rotary_pairs": ("neighbouring", "half-split"),
    "normalization": ("none", "layernorm", "rmsnorm"),
    "normalization_place": ("pre", "post"),
    "norm_epsilon": None,
    "feed_forward": ("none", "relu", "gelu", "gelu_tanh", "swiglu", "geglu", "geglu_tanh"),
    **dict.fromkeys(("parallel_sublayers", "tied_embeddings", "qk_normalization")),
    **dict.fromkeys(("biases", "qkv_biases", "output_biases")),
    "attention": ("full", "local", "strided", "top_k"),
    **dict.fromkeys(("attention_window", "stride", "top_k")),
    "gates": ("none", "hard_concrete", "dynamic"),
}


def not_run(model: Transformer) -> list[str]:
    """What of a model a page can't run: options of its architecture, as `field = value`, and interventions."""
    unknown = unknown_options(model.architecture, RUNS)
    return [*unknown, "clamped heads or cut edges"] if model.interventions else unknown


def n_parameters(model: Transformer) -> int:
    """How many numbers its weights are."""
    return sum(parameter.numel() for parameter in model.parameters())


def sizes(model: Transformer) -> dict[str, Any]:
    """What a forward pass must know beside the weights; transformer.js reads it."""
    a = model.architecture
    visible = a.visible_distances
    return {
        "heads": list(a.heads_per_layer),
        "keyValueHeads": [a.key_value_heads(n) for n in a.heads_per_layer],
        "dModel": a.d_model,
        "dHead": a.head_width,
        "dValue": a.value_width,
        "dMlp": a.mlp_width,
        "dVocab": model.d_vocab,
        "nContext": a.n_ctx,
        "positions": a.positions,
        "rotaryWidth": a.rotary_width,
        "rotaryBase": a.rotary_base,
        "rotaryHalves": a.rotary_pairs == "half-split",
        "post": a.normalization_place == "post",
        "parallel": a.parallel_sublayers,
        "epsilon": a.epsilon_of(a.normalization),
        "headEpsilon": a.epsilon_of("rmsnorm"),
        "feedForward": a.feed_forward,
        "stride": visible.step if a.windowed else 1,
        "nVisible": len(visible),
        "topK": a.kept_keys,
    }


def layout(model: Transformer) -> list[tuple[str, list[int]]]:
    """Names and shapes of the tensors that `packed_weights` writes, one after the other."""
    return [(name, list(tensor.shape)) for name, tensor in _tensors(model)]


def packed_weights(model: Transformer) -> bytes:
    """All weights as little-endian 16-bit floats."""
    flat = np.concatenate([tensor.detach().numpy().ravel() for _, tensor in _tensors(model)])
    return flat.astype("<f2").tobytes()


def _tensors(model: Transformer) -> Iterator[tuple[str, Tensor]]:
    """The parameters; static gates as what they come to."""
    for name, parameter in model.named_parameters():
        if name.endswith("gates.log_alpha"):
            yield name.replace("log_alpha", "fixed"), gates_without_noise(parameter)
        else:
            yield name, parameter
