"""A Hugging Face model type: its config in terms of an architecture, its tensors in terms of parameters."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.settings import Settings

GELUS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh"}
ACTIVATION_NAMES = {**GELUS, "relu": "relu"}
GATED_ACTIVATION_NAMES = {"silu": "swiglu", "swish": "swiglu"} | {
    name: gelu.replace("gelu", "geglu") for name, gelu in GELUS.items()
}


def named_activation(feed_forward: str, activations: Mapping[str, str]) -> str | None:
    """A config's name for a feed-forward layer's activation; None if it has none."""
    return next((name for name, kind in activations.items() if kind == feed_forward), None)


def windowed_fields(window: int, layers: Sequence[int], n_layers: int, n_ctx: int) -> dict[str, Any]:
    """Fields of an architecture for windows in some layers; a window of the whole context needs none."""
    if window >= n_ctx or not layers:
        return {}
    fields: dict[str, Any] = {"attention": "local", "attention_window": window}
    return fields | ({"windowed_layers": tuple(layers)} if len(layers) < n_layers else {})


def layers_with_window(architecture: Architecture) -> Sequence[int]:
    """The layers of an architecture in which queries see a window alone."""
    a = architecture
    every = range(a.n_layers) if a.windowed_layers is None else a.windowed_layers
    return every if a.attention == "local" else ()


@dataclass(frozen=True)
class Family:
    """A model type; `config` and `fields` are inverses where the type can represent an architecture."""

    model_type: str
    class_name: str  # of transformers
    prefix: str  # of its tensors' names, except the unembedding's; some files leave it out
    unembedding: str  # the tensor that tied models may leave out
    embedding: str
    buffers: re.Pattern[str]  # tensors that hold no weights
    fields: Callable[[Settings], dict[str, Any]]  # of an architecture
    config: Callable[[Architecture], dict[str, Any]]
    placements: Callable[[Architecture, Mapping[str, Any]], list[Placement]]
    defines: Collection[str] = ()  # settings that other families must not have

    def full_name(self, tensor: str) -> str:
        """A tensor's name with the prefix that some files leave out."""
        of_unembedding = tensor.startswith(self.unembedding.removesuffix("weight"))
        return tensor if of_unembedding or tensor.startswith(self.prefix) else self.prefix + tensor
