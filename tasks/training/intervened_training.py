"""Interventions while a model trains: when they act, and what they do to its passes, its gradients and its loss."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headstream.models.nodes import Head
from headstream.models.parameters import declared_parameters
from headstream.models.transformer import Transformer
from headstream.tasks.study.training_interventions import InterventionConfig, Which, passes_at
from headstream.tasks.text.bigram_counts import commonest_successors
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.predicted_by_induction import predicted_by_induction


class IntervenedTraining:
    """What is done at each step of a training: like a batch, a function of the step alone."""

    def __init__(self, model: Transformer, interventions: tuple[InterventionConfig, ...], tokens: Tokens) -> None:
        self.model, self.interventions, self.bos = model, interventions, tokens.bos
        self.common_successors: Int[Tensor, "d_vocab"] | None = None
        if any(own.which == "beyond_bigrams" for own in interventions):
            common = commonest_successors(tokens.train, tokens.counts)
            self.common_successors = torch.from_numpy(common).to(model.W_E.device)
        self._acting: list[InterventionConfig] | None = None  # before the first step
        self._unlearned: list[Which] = []
        self._frozen: list[tuple[Tensor, Tensor, Tensor]] = []  # parameters, where they stay, and as what

    def as_kept(self) -> dict[str, Any]:
        """What a model's description says of it, so that the model is measured as it was trained."""
        return {"interventions": [own.model_dump(mode="json") for own in self.interventions], "bos": self.bos}

    def begin(self, tokens: int) -> None:
        """Have the model be what it is at the step after so many tokens."""
        acting = [own for own in self.interventions if own.acts_at(tokens)]
        if acting == self._acting:
            return
        self._acting = acting
        self.model.interventions = passes_at(self.interventions, self.model.architecture, tokens, self.bos) or None
        self._unlearned = [own.which for own in acting if own.which]
        frozen = [head for own in acting if own.kind == "freeze" for head in own.named_heads]
        self._frozen = _weights_of(self.model, frozen) if frozen else []

    def learned(self, windows: Int[Tensor, "batch pos_and_next"]) -> Bool[Tensor, "batch pos"] | None:
        """The predictions that have a loss; None if all have."""
        if not self._unlearned:
            return None
        unlearned = [
            predicted_by_induction(windows, self.bos, which, self.common_successors) for which in self._unlearned
        ]
        return ~torch.stack(unlearned).any(0)

    @torch.no_grad()
    def before_step(self) -> None:
        """Leave frozen weights out of the gradient."""
        for parameter, place, _ in self._frozen:
            if parameter.grad is not None:
                parameter.grad.masked_fill_(place, 0)

    @torch.no_grad()
    def after_step(self) -> None:
        """Put frozen weights back: momentum and decay move them, too."""
        for parameter, place, weights in self._frozen:
            parameter.copy_(torch.where(place, weights, parameter))


def _weights_of(model: Transformer, heads: Sequence[Head]) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Of each parameter with parts that are heads': the parameter, where the parts of some heads are, and a copy."""
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for name, parameter, declaration in declared_parameters(model):
        place = name.split(".")
        if place[0] != "layers" or declaration.head_axis is None:
            continue
        own = [head.head for head in heads if head.layer == int(place[1])]
        if own:
            where = torch.zeros(parameter.shape[declaration.head_axis], dtype=torch.bool, device=parameter.device)
            where[own] = True
            shape = [1] * parameter.dim()
            shape[declaration.head_axis] = -1
            found.append((parameter, where.view(shape), parameter.detach().clone()))
    return found
