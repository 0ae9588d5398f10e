"""Losses of a model without its feed-forward layers or groups of their neurons, at its last checkpoint."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.feed_forward_ablation import (
    NeuronAblation,
    losses_without_feed_forward,
    mean_activations,
    neuron_ablations,
    neuron_parts,
)
from headstream.models.losses import sequence_losses
from headstream.tasks.measuring.budgets import windows_within_budget
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analyses.feed_forward_config import FeedForwardConfig


@torch.inference_mode()
def measure_feed_forward(config: FeedForwardConfig, trained: TrainedModel) -> None:
    """Write feed_forward_ablations, of a model that has feed-forward layers.

    Cost: reruns of later layers for each part of each layer and sequence, which `max_reruns` bounds, each as a pass
    grows in layers and vocabulary. Heads hardly count, and checkpoints don't.

    Raises:
        UserError: the text is too short for one sequence.
    """
    model = trained.model
    if not model.architecture.mlp_width or not len(model.layers):
        return
    n_parts = len(model.layers) * len(neuron_parts(model.architecture.mlp_width, config.n_groups))
    text, documents = trained.evaluation_text(windows_within_budget(config.windows, config.max_reruns, n_parts))
    means = mean_activations(model, trained.reference_text(config.reference_windows).sequences)
    fills = {"zero": [torch.zeros_like(mean) for mean in means], "mean": means}
    intact = sequence_losses(model, text)
    of_all = {
        method: (losses_without_feed_forward(model, text, fill) - intact).mean().item()
        for method, fill in fills.items()
    }
    trained.on_progress(0.2)
    ablations = neuron_ablations(model, text, fills, config.n_groups)
    trained.write("feed_forward_ablations", _ablation_rows(ablations, documents, of_all))


def _ablation_rows(
    ablations: list[NeuronAblation], documents: Int[Tensor, "sequence"], of_all: dict[str, float]
) -> list[dict[str, Any]]:
    """Rows of `feed_forward_ablations`; `of_all` is the effect of all feed-forward layers together, by method."""
    effects = torch.stack([ablation.loss_effects_nats for ablation in ablations])
    lows, highs = clustered_mean(effects, documents).interval()
    return [
        {
            "layer": ablation.layer,
            "part": ablation.part,
            "method": ablation.method,
            "first_neuron": ablation.neurons.start,
            "n_neurons": ablation.neurons.stop - ablation.neurons.start,
            "loss_effect_nats": effect,
            "ci_low_nats": low,
            "ci_high_nats": high,
            "kl_nats": ablation.kl_nats.mean().item(),
            "share_of_loss": effect / of_all[ablation.method] if of_all[ablation.method] > 0 else None,
            "n_sequences": effects.shape[1],
        }
        for ablation, effect, low, high in zip(
            ablations, effects.mean(1).tolist(), lows.tolist(), highs.tolist(), strict=True
        )
    ]
