"""The sizes of a transformer that follow from its architectural choices, and checks of them."""

from typing import Any, Self

from pydantic import model_validator

from headstream.models.architecture_config import LATER, ArchitectureConfig

LAYERNORM_EPS, RMSNORM_EPS = 1e-5, 1e-6
DEFAULT_KEYS, DEFAULT_STRIDE = 32, 4  # of sparse attention; fewer keys if n_ctx is short


class Architecture(ArchitectureConfig):
    """A decoder-only transformer; the defaults are the setting in which path expansion is exact."""

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.positions == "rotary" and (self.rotary_width % 2 or not self.rotary_width):
            if self.rotary_fraction == 1:
                raise ValueError(
                    f"d_head must be even with rotary positions, got {self.head_width}. Choose an even d_head."
                )
            raise ValueError(
                f"rotary_fraction must select an even number of d_head={self.head_width} dimensions, got"
                f" {self.rotary_fraction:g}, which selects {self.rotary_width}. Choose another fraction."
            )
        if self.visible_distances[-1] >= self.n_ctx:
            longest = (self.n_ctx - 1) // self.visible_distances.step + 1
            raise ValueError(
                f"attention_window must fit n_ctx={self.n_ctx}, got {self.attention_window} keys"
                f" {self.visible_distances.step} apart. Choose {longest} or fewer, or a larger n_ctx."
            )
        return self

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """Number of heads in each layer."""
        return self.n_heads if isinstance(self.n_heads, tuple) else (self.n_heads,) * self.n_layers

    @property
    def head_width(self) -> int:
        """Width of queries and keys: d_head, or d_model / n_heads if it is not set."""
        return self.d_head or self.d_model // int(self.n_heads)  # type: ignore[arg-type]

    @property
    def value_width(self) -> int:
        """Width of values: d_value, or that of queries and keys if it is not set."""
        return self.d_value or self.head_width

    def key_value_heads(self, n_heads: int) -> int:
        """Number of keys and values in a layer of `n_heads` heads: one per head, or one per group that shares them."""
        return min(n_heads, self.n_key_value_heads or n_heads)

    @property
    def rotary_width(self) -> int:
        """Number of dimensions of queries and keys that rotary positions rotate."""
        return int(self.head_width * self.rotary_fraction)

    def epsilon_of(self, norm: str) -> float:
        """The number that a norm of some kind adds to the variance or mean square."""
        if self.norm_epsilon is not None:
            return self.norm_epsilon
        return LAYERNORM_EPS if norm == "layernorm" else RMSNORM_EPS

    @property
    def has_biases(self) -> bool:
        """True if there are biases on any sublayer or on the logits."""
        return self.biases or self.qkv_biases or self.output_biases

    @property
    def gated_feed_forward(self) -> bool:
        """True if feed-forward layers multiply two maps of their input."""
        return self.feed_forward in ("swiglu", "geglu", "geglu_tanh")

    @property
    def mlp_maps(self) -> int:
        """Number of matrices in a feed-forward layer, one more if it is gated."""
        return 3 if self.gated_feed_forward else 2

    @property
    def mlp_width(self) -> int:
        """Width of feed-forward layers: d_mlp, or 4 d_model if it is not set; 0 without such layers."""
        return 0 if self.feed_forward == "none" else self.d_mlp or 4 * self.d_model

    @property
    def windowed(self) -> bool:
        """True if a query sees only the keys of a window, adjacent or strided."""
        return self.attention in ("local", "strided")

    @property
    def visible_distances(self) -> range:
        """Distances, in positions back, of the keys that a query can see, before top_k chooses among them."""
        if not self.windowed:
            return range(self.n_ctx)
        step = (self.stride or DEFAULT_STRIDE) if self.attention == "strided" else 1
        window = self.attention_window or min(DEFAULT_KEYS, (self.n_ctx - 1) // step + 1)
        return range(0, window * step, step)

    @property
    def kept_keys(self) -> int | None:
        """Number of keys that top_k attention keeps for each query; None if all visible keys count."""
        return (self.top_k or min(DEFAULT_KEYS, self.n_ctx)) if self.attention == "top_k" else None

    @property
    def query_scale(self) -> float:
        """The factor of scores before softmax: score_scale, or 1 / sqrt(d_head) if it is not set."""
        return self.head_width**-0.5 if self.score_scale is None else self.score_scale

    def of_layer(self, layer: int) -> Self:
        """The architecture as a layer has it: with full attention if the layer is none of those with a window."""
        if self.windowed_layers is None:
            return self
        own: dict[str, object] = {"attention": "full", "attention_window": None, "stride": None}
        if layer in self.windowed_layers:
            base = self.windowed_rotary_base
            own = {} if base is None else {"rotary_base": base, "rotary_stretch": 1.0}
        return self.model_copy(update={"windowed_layers": None, "windowed_rotary_base": None, **own})

    @property
    def name(self) -> str:
        """A short name for people, such as 2L4H."""
        if not self.n_layers:
            return "0L"
        same = len(set(self.heads_per_layer)) == 1
        heads = str(self.heads_per_layer[0]) if same else "-".join(map(str, self.heads_per_layer))
        return f"{self.n_layers}L{heads}H"

    def as_kept(self) -> dict[str, Any]:
        """Every option by name, as keys and files hold it: one of `LATER` only where it isn't at its default."""
        fields = type(self).model_fields
        idle = {name for name in LATER if getattr(self, name) == fields[name].default}
        return self.model_dump(mode="json", exclude=idle)
