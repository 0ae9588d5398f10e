"""Attention: the heads of a layer, each with keys and values of its own or shared by groups."""

from jaxtyping import Float
from torch import Tensor, cat, nn
from torch.nn import functional as F

from headstream.models.architecture import Architecture
from headstream.models.attention_patterns import (
    at_every_distance,
    causal_mask,
    full_attention,
    keep_top,
    relative_scores,
    soft_capped,
    windowed_attention,
)
from headstream.models.gates import DynamicGates, StaticGates
from headstream.models.intervened_pass import LayerChange
from headstream.models.nodes import Port
from headstream.models.norms import Norm, NormOverHeads
from headstream.models.parameters import DeclaringModule, declared
from headstream.models.positions import Rotary, sinusoids

SHARED_SUFFIX = "_shared"  # suffix of the names of maps that groups of heads share


class Attention(DeclaringModule):
    """Attention heads of one layer, each with its own W_Q, W_K, W_V, W_O."""

    W_K: Tensor
    W_V: Tensor
    b_K: Tensor | None
    b_V: Tensor | None

    def __init__(self, architecture: Architecture, n_heads: int) -> None:
        super().__init__()
        a = architecture
        self.positions, self.scale, self.score_cap = a.positions, a.query_scale, a.score_cap
        self.rotary = Rotary(
            a.rotary_width,
            a.rotary_base,
            a.rotary_pairs == "half-split",
            a.rotary_stretch,
            a.rotary_stretched_wavelengths,
        )
        self.windowed, self.distances, self.top_k = a.windowed, a.visible_distances, a.kept_keys
        self.W_Q = declared("reading", n_heads, a.d_model, a.head_width, head_axis=0)
        n_shared = a.key_value_heads(n_heads)
        axis = 0 if n_shared == n_heads else None  # a shared map belongs to no single head
        self._keep("W_K", declared("reading", n_shared, a.d_model, a.head_width, head_axis=axis))
        self._keep("W_V", declared("reading", n_shared, a.d_model, a.value_width, head_axis=axis))
        self.W_O = declared("writing", n_heads, a.value_width, a.d_model, head_axis=0)
        relative = a.positions == "relative"
        self.position_bias = declared("position_bias", n_heads, a.n_ctx, head_axis=0, start=0) if relative else None
        learned = a.positions == "learned_shortformer"
        self.W_pos = declared("embedding", a.n_ctx, a.d_model, in_products=False) if learned else None
        biased = a.biases or a.qkv_biases
        self.b_Q = declared("vector", n_heads, a.head_width, head_axis=0, start=0) if biased else None
        for name, width in (("b_K", a.head_width), ("b_V", a.value_width)):
            self._keep(name, declared("vector", n_shared, width, head_axis=axis, start=0) if biased else None)
        self.b_O = declared("vector", a.d_model, start=0) if a.biases or a.output_biases else None
        self.smearing = declared("vector", n_shared, head_axis=axis, start=0) if a.key_smearing else None
        self.q_norm, self.k_norm = _qk_norm(a, n_heads, 0), _qk_norm(a, n_shared, axis)
        self.gates: StaticGates | DynamicGates | None = None
        if a.gates != "none":
            self.gates = StaticGates(n_heads) if a.gates == "hard_concrete" else DynamicGates(n_heads, a.d_model)

    def queries_keys_values(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_value"],
    ]:
        """Project the stream, by one matrix product for all heads and all three maps if they have the same input."""
        x = x.to(self.W_Q.dtype)
        W_K, W_V, _, _ = self.stored_keys_and_values()
        added = self.added_positions(x)
        if added is None:
            joined = cat([_flat(self.W_Q), _flat(W_K), _flat(W_V)], dim=1)
            widths = [w.shape[0] * w.shape[2] for w in (self.W_Q, W_K, W_V)]
            q, k, v = (x @ joined).split(widths, dim=2)
        else:
            read = x + added
            q, k, v = read @ _flat(self.W_Q), read @ _flat(W_K), x @ _flat(W_V)
        q, k, v = (
            part.unflatten(2, (weight.shape[0], weight.shape[2])).transpose(1, 2)
            for part, weight in ((q, self.W_Q), (k, W_K), (v, W_V))
        )
        return self.finished(q, k, v)

    def finished(
        self,
        q: Float[Tensor, "batch head pos d_head"],
        k: Float[Tensor, "batch group pos d_head"],
        v: Float[Tensor, "batch group pos d_value"],
        first: int = 0,
    ) -> tuple[
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_value"],
    ]:
        """Queries, keys and values from products with W_Q, W_K and W_V: biases, norms, rotations, one for each head.

        They are of the positions from `first` on.
        """
        _, _, b_K, b_V = self.stored_keys_and_values()
        keys = self._finished_keys(k, b_K, first)
        return self._finished_queries(q, self.b_Q, first), keys, self._finished_values(v, b_V)

    def _finished_queries(self, q: Tensor, bias: Tensor | None, first: int = 0) -> Tensor:
        q = self.q_norm(q if bias is None else q + bias[:, None])
        return self.rotary(q, first) if self.positions == "rotary" else q

    def _finished_keys(self, k: Tensor, bias: Tensor | None, first: int = 0) -> Tensor:
        k = self.smeared(self.k_norm(k if bias is None else k + bias[:, None]))
        return self.to_heads(self.rotary(k, first) if self.positions == "rotary" else k, dim=1)

    def _finished_values(self, v: Tensor, bias: Tensor | None) -> Tensor:
        return self.to_heads(v if bias is None else v + bias[:, None], dim=1)

    def projected(self, x: Float[Tensor, "batch pos d_model"], port: Port) -> Float[Tensor, "batch head pos width"]:
        """The queries, keys or values of `queries_keys_values` alone."""
        W_K, W_V, b_K, b_V = self.stored_keys_and_values()
        weight = {"Q": self.W_Q, "K": W_K, "V": W_V}[port]
        x = x.to(weight.dtype)
        added = None if port == "V" else self.added_positions(x)
        raw = ((x if added is None else x + added) @ _flat(weight)).unflatten(2, (weight.shape[0], weight.shape[2]))
        part = raw.transpose(1, 2)
        if port == "Q":
            return self._finished_queries(part, self.b_Q)
        return self._finished_keys(part, b_K) if port == "K" else self._finished_values(part, b_V)

    def smeared(self, k: Float[Tensor, "*parts head pos d_head"]) -> Float[Tensor, "*parts head pos d_head"]:
        """Keys of heads or of groups, or parts of them, mixed with those one position before; then they are rotated.

        k_j becomes s k_j + (1 - s) k_(j-1), where s is the sigmoid of a number for each head; the first key stays.
        Source: Olsson et al. 2022, argument 2 (smeared keys).
        """
        if self.smearing is None:
            return k
        raw = self.smearing if len(self.smearing) == k.shape[-3] else self.to_heads(self.smearing)
        own = raw.sigmoid()[:, None, None].to(k.dtype)
        mixed = own * k[..., 1:, :] + (1 - own) * k[..., :-1, :]
        return cat([k[..., :1, :], mixed], dim=-2)

    def stored_keys_and_values(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """W_K, W_V, b_K and b_V as stored: shared ones only once."""
        return self.W_K, self.W_V, self.b_K, self.b_V

    def to_heads(self, stored: Float[Tensor, "*shape"], dim: int = 0) -> Float[Tensor, "*expanded"]:
        """Expand stored keys or values along an axis, to one per head."""
        return stored

    def added_positions(
        self, x: Float[Tensor, "batch pos d_model"], first: int = 0
    ) -> Float[Tensor, "pos d_model"] | None:
        """The vectors that shortformer positions add to the input of queries and keys; None with other positions."""
        n = first + x.shape[1]
        if self.W_pos is not None:
            return self.W_pos[first:n].to(x.dtype)
        return sinusoids(n, x.shape[2], x)[first:] if self.positions == "shortformer" else None

    def position_scores(self, n: int) -> Float[Tensor, "*head q_pos k_pos"]:
        """Scores by position alone: -inf for hidden keys, and the bias of relative positions."""
        if self.windowed:
            return relative_scores(at_every_distance(self.scores_by_distance(), self.distances.step, n))
        if self.position_bias is None:
            return causal_mask(n, self.W_Q)
        return relative_scores(self.position_bias[:, :n])

    def scores_by_distance(self) -> Float[Tensor, "head n_seen"]:
        """Scores by distance within a window; a single row of zeros for all heads if there is no bias."""
        if self.position_bias is None:
            return self.W_Q.new_zeros(1, len(self.distances))
        return self.position_bias[:, self.distances.start : self.distances.stop : self.distances.step]

    def pattern(self, scores: Float[Tensor, "batch head q_pos k_pos"]) -> Float[Tensor, "batch head q_pos k_pos"]:
        """The attention pattern from scores, q k times their scale; queries stand at the last positions of keys."""
        n_queries, n_keys = scores.shape[-2:]
        scores = soft_capped(scores, self.score_cap) + self.position_scores(n_keys)[..., n_keys - n_queries :, :]
        return (scores if self.top_k is None else keep_top(scores, self.top_k)).softmax(dim=-1)

    def mix(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[Float[Tensor, "batch head q_pos k_pos"], Float[Tensor, "batch head pos d_value"]]:
        """The whole attention pattern, even if most of it is 0, and the values that each head mixed by it, gated."""
        q, k, v = self.queries_keys_values(x)
        pattern = self.pattern((q * self.scale) @ k.transpose(2, 3))
        return pattern, self._gated(pattern @ v, x)

    def mix_changed(
        self, x: Float[Tensor, "batch pos d_model"], projected: tuple[Tensor, Tensor, Tensor], change: LayerChange
    ) -> tuple[Float[Tensor, "batch head q_pos k_pos"], Float[Tensor, "batch head pos d_value"]]:
        """What `mix` gives of heads to which something is done, from their queries, keys and values."""
        q, k, v = projected
        pattern = change.pattern(self.pattern((q * self.scale) @ k.transpose(2, 3)))
        return pattern, change.mixed(self._gated(pattern @ v, x))

    def mix_projected(
        self,
        q: Float[Tensor, "batch head q_pos d_head"],
        k: Float[Tensor, "batch head k_pos d_head"],
        v: Float[Tensor, "batch head k_pos d_value"],
    ) -> Float[Tensor, "batch head q_pos d_value"]:
        """The values that each head mixed, before gates, by queries of the last of the positions of keys and values."""
        return self.pattern((q * self.scale) @ k.transpose(2, 3)) @ v

    def mix_fused(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch head pos d_value"]:
        """The values that each head mixed, gated, computed the fastest way: most hidden keys are skipped."""
        q, k, v = self.queries_keys_values(x)
        scaled = q * self.scale
        if self.top_k is not None or self.score_cap is not None:
            z = self.pattern(scaled @ k.transpose(2, 3)) @ v  # all scores are needed to choose the highest, or to cap
        elif self.windowed:
            z = windowed_attention(scaled, k, v, self.scores_by_distance(), self.distances.step)
        elif q.is_cuda:
            bias = None if self.position_bias is None else self.position_scores(q.shape[2])
            z = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=bias is None)
        else:
            z = full_attention(scaled, k, v, self.position_scores(q.shape[2]))
        return self._gated(z, x)

    def _keep(self, name: str, parameter: nn.Parameter | None) -> None:
        setattr(self, name, parameter)

    def _gated(self, z: Tensor, x: Tensor) -> Tensor:
        return z if self.gates is None else z * self.gates(x)[..., None].to(z.dtype)

    def write(self, z: Float[Tensor, "batch head pos d_value"]) -> Float[Tensor, "batch pos d_model"]:
        """The sum of all heads' outputs to the stream."""
        out = z.transpose(1, 2).flatten(2) @ self.W_O.flatten(0, 1)
        return out if self.b_O is None else out + self.b_O


class GroupedAttention(Attention):
    """Attention in which groups of adjacent heads share keys and values; W_K and the like are expanded to all heads.

    Source: Ainslie et al. 2023 (GQA).
    """

    W_K_shared: Tensor
    W_V_shared: Tensor
    b_K_shared: Tensor | None
    b_V_shared: Tensor | None

    @property
    def W_K(self) -> Float[Tensor, "head d_model d_head"]:  # type: ignore[override]
        """The map of each head's keys."""
        return self.to_heads(self.W_K_shared)

    @property
    def W_V(self) -> Float[Tensor, "head d_model d_value"]:  # type: ignore[override]
        """The map of each head's values."""
        return self.to_heads(self.W_V_shared)

    @property
    def b_K(self) -> Float[Tensor, "head d_head"] | None:  # type: ignore[override]
        """The bias of each head's keys."""
        return None if self.b_K_shared is None else self.to_heads(self.b_K_shared)

    @property
    def b_V(self) -> Float[Tensor, "head d_value"] | None:  # type: ignore[override]
        """The bias of each head's values."""
        return None if self.b_V_shared is None else self.to_heads(self.b_V_shared)

    def stored_keys_and_values(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """W_K, W_V, b_K and b_V as stored: one per group."""
        return self.W_K_shared, self.W_V_shared, self.b_K_shared, self.b_V_shared

    def to_heads(self, stored: Float[Tensor, "*shape"], dim: int = 0) -> Float[Tensor, "*expanded"]:
        """Expand stored keys or values along the axis of groups, to one per head."""
        return stored.repeat_interleave(self.W_Q.shape[0] // self.W_K_shared.shape[0], dim)

    def _keep(self, name: str, parameter: nn.Parameter | None) -> None:
        setattr(self, name + SHARED_SUFFIX, parameter)


def _qk_norm(a: Architecture, n_heads: int, head_axis: int | None) -> Norm:
    kind = "rmsnorm" if a.qk_normalization else "none"
    if a.qk_normalization and a.qk_normalization_over == "layer":
        return NormOverHeads(n_heads, a.head_width, a.epsilon_of(kind), head_axis, offset=a.norm_offset)
    return Norm(kind, a.head_width, a.epsilon_of(kind), offset=a.norm_offset)


def _flat(weight: Float[Tensor, "head d_model width"]) -> Float[Tensor, "d_model heads_width"]:
    return weight.transpose(0, 1).flatten(1)
