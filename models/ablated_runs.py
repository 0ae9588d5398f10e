"""Runs of a batch with one head's z replaced, for all heads of a layer side by side, compared with the intact run.

A head changes nothing before it, so its runs start from the intact stream at its own layer. With x the vector that W_U
reads, p the intact predictions and d for ablated minus intact,
    rise of the loss = d logsumexp - dx . W_U[:, target]        KL(intact || ablated) = d logsumexp - dx . W_U p
so that logsumexp is all that is needed of an ablated run's logits, unless they are capped.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.stream_losses import log_normalisers
from headstream.models.transformer import Fill, HeadMask, Transformer

ROWS = 2**10  # positions of all runs at once: as many as fit in a CPU's cache


class IntactRun:
    """The run of a batch that ablated runs start from; heads masked by 0 are pruned in all of them, and not ablated."""

    def __init__(
        self,
        model: Transformer,
        batch: Int[Tensor, "batch pos"],
        head_mask: HeadMask | None = None,
        fill: Fill | None = None,
    ) -> None:
        self.model, self.head_mask, self.fill = model, head_mask, fill
        self.layers = list(model.layers)
        self.trace = model.trace(batch[:, :-1], head_mask, fill)
        masks = head_mask or [traced.W_O.new_ones(len(traced.W_O)) for traced in self.trace.layers]
        self.heads = [mask.nonzero()[:, 0] for mask in masks]
        self.logsumexp = self.trace.logits.logsumexp(-1)
        W_U = model.W_U.T
        self.targets = batch[:, 1:]
        self.directions = torch.stack([W_U[batch[:, 1:]], self.trace.logits.softmax(-1) @ W_U], dim=-1)

    def z_of(self, sequences: Int[Tensor, "batch pos"]) -> Fill:
        """The z of all heads on other sequences, with the same heads pruned."""
        return [layer.z for layer in self.model.trace(sequences[:, :-1], self.head_mask, self.fill).layers]

    def is_last(self, layer: int) -> bool:
        """True for the last layer."""
        return layer + 1 == len(self.layers)

    def effects(
        self, layer: int, z: Float[Tensor, "*batch n_heads _ d_value"], *, others: bool, full: bool
    ) -> Float[Tensor, "2 head batch"]:
        """Rise of the loss, and KL divergence, when `z` replaces that of each head of a layer, or of all its others.

        Unless `full`, later patterns stay as they were.
        """
        traced, heads, a = self.trace.layers[layer], self.heads[layer], self.model.architecture
        change = (z - traced.z).transpose(0, 1)[heads]
        written = (change.flatten(1, 2) @ traced.W_O[heads]).unflatten(1, change.shape[1:3])
        if others:
            written = written.sum(0) - written
        elif self.is_last(layer) and a.normalization == a.feed_forward == "none" and a.logit_cap is None:
            return self._compare(written, self._linear_logsumexp(change.flatten(1, 2), traced.W_O[heads]))
        return self.effects_of(layer, written, full=full)

    def effects_of(
        self, layer: int, written: Float[Tensor, "run batch pos d_model"], *, full: bool = True
    ) -> Float[Tensor, "2 run batch"]:
        """The effects when the heads of a layer write `written` in addition to their own outputs."""
        traced = self.trace.layers[layer]
        attention_out = (traced.attention_out + written).flatten(0, 1)
        residual_in = traced.residual_in.expand_as(written).flatten(0, 1)
        x = self.layers[layer].after_attention(residual_in, attention_out)[-1]
        return self.effects_from(layer + 1, x.view_as(written), full=full)

    def effects_from(
        self, layer: int, x: Float[Tensor, "run batch pos d_model"], *, full: bool = True
    ) -> Float[Tensor, "2 run batch"]:
        """The effects when x replaces the stream that a layer reads."""
        read = self._rerun(layer, x.flatten(0, 1), full).view_as(x)
        if self.model.architecture.logit_cap is not None:
            return self._compare_logits(read)
        rows = read.flatten(0, 2)
        logsumexp = log_normalisers(self.model, len(rows), lambda part: self.model.unembed(rows[part]))
        return self._compare(read - self.trace.residual_final, logsumexp)

    def _rerun(self, first: int, x: Float[Tensor, "runs pos d_model"], full: bool) -> Float[Tensor, "runs pos d_model"]:
        """The vectors that W_U reads when x replaces the stream that a layer reads."""
        for i, later in enumerate(self.layers[first:], start=first):
            z = later.attention.mix_fused(later.read(x)) if full else self._mix_as_before(i, later.read(x))
            mask, fill = self.head_mask[i] if self.head_mask else None, self.fill[i] if self.fill else None
            x = later.write(x, z, mask, fill)[-1]
        return self.model.final_norm(x)

    def _mix_as_before(
        self, layer: int, read: Float[Tensor, "runs pos d_model"]
    ) -> Float[Tensor, "runs head pos d_value"]:
        """New values mixed by the patterns of the intact run."""
        attention, pattern = self.layers[layer].attention, self.trace.layers[layer].pattern
        values = torch.einsum("npd,hdv->nhpv", read, attention.W_V)
        if attention.b_V is not None:
            values = values + attention.b_V[:, None]
        z = torch.einsum("bhqk,nbhkv->nbhqv", pattern, values.unflatten(0, (-1, len(pattern)))).flatten(0, 1)
        return z if attention.gates is None else z * attention.gates(read)[..., None]

    def _compare(
        self, dx: Float[Tensor, "head batch pos d_model"], logsumexp: Float[Tensor, "rows"]
    ) -> Float[Tensor, "2 head batch"]:
        rise = logsumexp.view(dx.shape[:3]) - self.logsumexp
        return _means(rise - torch.einsum("hbpd,bpdm->mhbp", dx, self.directions))

    def _compare_logits(self, read: Float[Tensor, "run batch pos d_model"]) -> Float[Tensor, "2 run batch"]:
        """The effects by all logits of each run, which holds for logits that aren't linear in what W_U reads."""
        intact = self.trace.logits
        predicted = intact.softmax(-1)

        def of_run(x: Tensor) -> Tensor:
            change = self.model.unembed(x) - intact
            rise = (intact + change).logsumexp(-1) - self.logsumexp
            of_target = change.gather(-1, self.targets[..., None])[..., 0]
            return torch.stack([rise - of_target, rise - (predicted * change).sum(-1)])

        return _means(torch.stack([of_run(x) for x in read], dim=1))

    def _linear_logsumexp(
        self, change: Float[Tensor, "head rows d_value"], W_O: Float[Tensor, "head d_value d_model"]
    ) -> Float[Tensor, "head_rows"]:
        """Logsumexp of ablated logits that are linear in z: the intact ones plus the change of z times W_O W_U."""
        intact, W_OU = self.trace.logits.flatten(0, 1), W_O @ self.model.W_U

        def of_head(dz: Tensor, own: Tensor) -> Tensor:
            return log_normalisers(self.model, len(dz), lambda part: torch.addmm(intact[part], dz[part], own))

        return torch.cat([of_head(dz, own) for dz, own in zip(change, W_OU, strict=True)])


def _means(effects: Float[Tensor, "2 run batch pos"]) -> Float[Tensor, "2 run batch"]:
    """Means over positions of rises of the loss and KL divergences."""
    loss, kl = effects.double().mean(-1).cpu()
    return torch.stack([loss, kl.clamp(min=0)])  # below 0 only by rounding
