"""Every architectural choice of a transformer, with its default; what follows from them is in architecture.py."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST_HEADS, WIDEST, LONGEST = 1024, 1 << 16, 1 << 17  # in a layer; dimensions; positions

HeadCount = Annotated[int, Field(ge=0, le=MOST_HEADS)]
HeadCounts = HeadCount | tuple[HeadCount, ...]


class ArchitectureConfig(BaseModel):
    """Choices that make a decoder-only transformer; the defaults are the setting in which path expansion is exact."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_layers: int = Field(2, ge=0, le=64, description="Layers; 0 leaves embedding and unembedding alone.")
    n_heads: HeadCounts = Field(4, description="Heads in every layer, or a list with one count a layer.")
    d_model: int = Field(128, ge=1, le=WIDEST, description="Width of the residual stream.")
    d_head: int | None = Field(
        None, ge=1, le=WIDEST, description="Width of queries and keys; default d_model / n_heads."
    )
    d_value: int | None = Field(None, ge=1, le=WIDEST, description="Width of values; default d_head.")
    n_ctx: int = Field(128, ge=2, le=LONGEST, description="Positions a sequence may have, BOS included.")
    positions: Literal["relative", "shortformer", "rotary", "learned", "sinusoidal", "none"] = Field(
        "relative",
        description="relative: a learned bias per head and distance; shortformer: sinusoids added to what"
        " queries and keys read; rotary: queries and keys turned; learned, sinusoidal: added to the stream.",
    )
    normalization: Literal["none", "layernorm", "rmsnorm"] = Field("none", description="Of the stream.")
    normalization_place: Literal["pre", "post"] = Field("pre", description="Before or after each sublayer.")
    feed_forward: Literal["none", "relu", "gelu"] = Field("none", description="Feed-forward activation.")
    d_mlp: int | None = Field(None, ge=1, le=4 * WIDEST, description="Feed-forward width; default 4 d_model.")
    biases: bool = Field(False, description="Biases on queries, keys, values, outputs, MLP and logits.")
    output_biases: bool = Field(
        False, description="Biases on the outputs of attention alone, where pruned heads leave their mean."
    )
    tied_embeddings: bool = Field(False, description="W_U is the transpose of W_E.")
    qk_normalization: bool = Field(False, description="RMS-normalise queries and keys of each head.")
    attention: Literal["full", "local", "strided", "top_k"] = Field(
        "full",
        description="Keys that a query sees. full: itself and all before it; local: the nearest of these; strided:"
        " every stride-th; top_k: the highest scores. BOS is a key like any other.",
    )
    attention_window: int | None = Field(
        None,
        ge=1,
        le=LONGEST,
        description="Keys that local and strided attention see, the query's own included; default 32.",
    )
    stride: int | None = Field(
        None, ge=1, le=LONGEST, description="Distance between the keys of strided attention; default 4."
    )
    top_k: int | None = Field(
        None, ge=1, le=LONGEST, description="Keys that top_k attention keeps of each query; default 32."
    )
    gates: Literal["none", "hard_concrete", "dynamic"] = Field(
        "none",
        description="On what each head mixed. hard_concrete: a number a head, 0..1, learned under a penalty on open"
        " gates; dynamic: open or closed for each token, by what the head reads.",
    )

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        if isinstance(self.n_heads, tuple):
            if len(self.n_heads) != self.n_layers:
                raise ValueError(
                    f"n_heads as a list must hold one count a layer, got {len(self.n_heads)} counts for"
                    f" n_layers={self.n_layers}. Give {self.n_layers} counts, or one number for all layers."
                )
            if self.d_head is None:
                raise ValueError("d_head must be set when n_heads is a list, got none. Set d_head.")
        elif self.n_heads == 0:
            raise ValueError("n_heads must be at least 1, got 0. For a model without heads set n_layers = 0.")
        elif self.d_head is None and self.d_model % self.n_heads:
            divisors = [n for n in range(1, self.d_model + 1) if self.d_model % n == 0]
            near = ", ".join(map(str, divisors[:3])) + ", ..."
            raise ValueError(
                f"n_heads must divide d_model, got n_heads={self.n_heads}, d_model={self.d_model}."
                f" Choose {near}, or set d_head."
            )
        if self.d_mlp is not None and self.feed_forward == "none":
            raise ValueError(
                f"d_mlp needs a feed-forward layer, got d_mlp={self.d_mlp} with feed_forward='none'."
                " Set feed_forward to 'relu' or 'gelu', or leave d_mlp out."
            )
        patterns = {"attention_window": ("local", "strided"), "stride": ("strided",), "top_k": ("top_k",)}
        for field, needed in patterns.items():
            if (value := getattr(self, field)) is not None and self.attention not in needed:
                raise ValueError(
                    f"{field} needs attention = {' or '.join(map(repr, needed))}, got {field}={value} with"
                    f" attention={self.attention!r}. Set attention, or leave {field} out."
                )
        if self.top_k is not None and self.top_k > self.n_ctx:
            raise ValueError(f"top_k must be at most n_ctx={self.n_ctx}, got {self.top_k}. Choose fewer keys.")
        return self
