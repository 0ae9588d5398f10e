"""A cell of a study's grid: a model to train."""

from dataclasses import dataclass
from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.study.stage import Passes
from headstream.tasks.study.training_config import TrainingConfig


@dataclass(frozen=True)
class Cell:
    """A model of the grid; its label holds its place on the axes that matter to it, such as `n_layers=2 seed=0`."""

    label: str
    architecture: Architecture
    training: TrainingConfig
    places: tuple[str, ...]  # full labels of the grid's places that give this model: one, unless an axis has no effect

    @property
    def trained_as(self) -> dict[str, Any]:
        """The settings that decide the model's weights, besides the text: all but where and how it is computed."""
        unused = set() if self.training.interventions else {"interventions"}  # models without keep their ids
        training = self.training.model_dump(mode="json", exclude={"device", "precision", "compile", "threads", *unused})
        return {"architecture": self.architecture.as_kept(), "training": training}

    @property
    def roles(self) -> list[str]:
        """The roles by which its interventions name heads."""
        return sorted({own.role for own in self.training.interventions if own.role})

    @property
    def passes(self) -> Passes:
        """What interventions do to the model's passes at the end of its training."""
        kinds = {own.kind for own in self.training.interventions if own.acts_at(self.training.tokens)}
        if kinds & {"clamp", "cut"}:
            return "changed"
        return "silenced" if "silence" in kinds else "plain"

    @property
    def short_name(self) -> str:
        """A short name that distinguishes it from other models of its architecture."""
        return f"s{self.training.seed}"

    def parameters(self, vocabulary: int) -> int:
        """Approximate number of the model's parameters."""
        return matrix_entries(self.architecture, vocabulary)


def matrix_entries(a: Architecture, vocabulary: int) -> int:
    """Number of entries in a model's matrices, embeddings included: nearly all of its parameters."""
    n_maps = sum(a.heads_per_layer) + sum(map(a.key_value_heads, a.heads_per_layer))
    heads = n_maps * a.d_model * (a.head_width + a.value_width)
    return heads + a.n_layers * a.mlp_maps * a.d_model * a.mlp_width + 2 * a.d_model * vocabulary
