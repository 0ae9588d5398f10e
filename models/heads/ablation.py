"""The effect of each head on the loss: its output z is replaced, for all heads in one pass over the text.

Source: Michel et al. 2019, sections 3.2 (zero) and 3.3 (others); Chan et al. 2022, Causal Scrubbing (resample).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.ablated_runs import ROWS, IntactRun
from headstream.models.batching import at_once
from headstream.models.heads.references import derangement
from headstream.models.transformer import Fill, HeadMask, Transformer

Replacement = Fill | Int[Tensor, "sequence"]  # values for z, or the index of the sequence whose z each sequence gets


class Ablation(NamedTuple):
    """One way to ablate every head."""

    ablated: Literal["head", "others"]  # this head, or all heads of its layer but this one
    method: str  # name of the replacements for z
    scope: Literal["full", "frozen_patterns"]  # what later layers recompute: everything, or all but their patterns


@dataclass(frozen=True)
class Effects:
    """Effects of ablation, ablated minus intact, nats per token, mean over replacements; NaN for pruned heads."""

    loss_nats: list[Float[Tensor, "_ sequence"]]  # a tensor per layer, a row per head, in float64
    kl_nats: list[Float[Tensor, "_ sequence"]]  # KL(intact || ablated)


@torch.inference_mode()
def ablation_effects(
    model: Transformer,
    text: Int[Tensor, "sequence pos"],
    ablations: Collection[Ablation],
    replacements: Mapping[str, Sequence[Replacement]],
    head_mask: HeadMask | None = None,
    fill: Fill | None = None,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> dict[Ablation, Effects]:
    """Effects of ablating every head, for each kind of ablation; NaN if a method has no replacements.

    With a head mask (of 0 and 1), intact means with `fill` in place of masked heads, which have no effects.
    `on_progress` is told the fraction done after each layer.
    """
    text, heads_per_layer = text.to(model.W_E.device), model.architecture.heads_per_layer
    found = {
        ablation: [torch.full((2, n_heads, len(text)), torch.nan, dtype=torch.float64) for n_heads in heads_per_layer]
        for ablation in ablations
    }
    runs_rows = text.shape[1] * max([1, *heads_per_layer])
    parts = torch.arange(len(text)).split(max(1, at_once(ROWS, text) // runs_rows))
    for i, rows in enumerate(parts):
        run = IntactRun(model, text[rows], head_mask, fill)
        drawn = {method: [_fill_of(run, text, draw, rows) for draw in draws] for method, draws in replacements.items()}
        for layer in (layer for layer, heads in enumerate(run.heads) if len(heads)):
            for ablation, effects in _layer_effects(run, layer, ablations, drawn).items():
                found[ablation][layer][:, run.heads[layer].cpu()[:, None], rows] = effects
            on_progress((i + (layer + 1) / len(run.heads)) / len(parts))
    return {
        ablation: Effects([loss for loss, _ in layers], [kl for _, kl in layers]) for ablation, layers in found.items()
    }


def _fill_of(run: IntactRun, text: Int[Tensor, "sequence pos"], draw: Replacement, rows: Tensor) -> Fill:
    """Values to replace z by on some rows of the text: those given, or z on the sequences drawn."""
    return run.z_of(text[draw[rows]]) if isinstance(draw, Tensor) else draw


def zero_z(model: Transformer) -> Fill:
    """A fill of zeros, which zero ablation puts in place of each head's z."""
    values = [layer.attention.W_V for layer in model.layers]
    return [W_V.new_zeros(len(W_V), 1, W_V.shape[2]) for W_V in values]


def other_sequences(n: int, draws: int, seed: int) -> list[Int[Tensor, "n"]]:
    """The index of another of n sequences that each one takes its z from, draw by draw; none if there is no other."""
    generator = torch.Generator().manual_seed(seed)
    return [derangement(n, generator) for _ in range(draws)] if n > 1 else []


def _layer_effects(
    run: IntactRun, layer: int, ablations: Collection[Ablation], drawn: Mapping[str, Sequence[Fill]]
) -> dict[Ablation, Float[Tensor, "2 head batch"]]:
    """Mean over draws of the effects on a layer's heads."""
    found: dict[Ablation, Tensor] = {}
    for ablation in ablations:
        full = ablation._replace(scope="full")
        if run.is_last(layer) and full in found:  # no pattern comes after it
            found[ablation] = found[full]
        elif draws := drawn[ablation.method]:
            how = {"others": ablation.ablated == "others", "full": ablation.scope == "full"}
            found[ablation] = torch.stack([run.effects(layer, z[layer], **how) for z in draws]).mean(0)
    return found
