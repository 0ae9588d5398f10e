"""Every architectural choice of a transformer, with its default; architecture.py has the sizes that follow."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

MAX_LAYER_HEADS, MAX_WIDTH, MAX_CONTEXT = 1024, 1 << 16, 1 << 17  # in a layer; dimensions; positions

HeadCount = Annotated[int, Field(ge=0, le=MAX_LAYER_HEADS)]
HeadCounts = HeadCount | Annotated[tuple[HeadCount, ...], Strict(False)]  # of JSON and TOML, which have lists
_Wavelengths = Annotated[tuple[float, ...], Field(min_length=2, max_length=2), Strict(False)]
_Layers = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1), Strict(False)]
# Options that came later than models that are kept: keys and files name them only where they aren't at their default.
LATER = (
    *("score_scale", "windowed_layers", "qk_normalization_over"),
    *("rotary_stretch", "rotary_stretched_wavelengths", "windowed_rotary_base"),
    *("norm_offset", "embedding_scale", "score_cap", "logit_cap"),
    "key_smearing",
)


class ArchitectureConfig(BaseModel):
    """The choices that define a decoder-only transformer; with the defaults, path expansion is exact."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    n_layers: int = Field(2, ge=0, le=64, description="Layers; with 0, only embedding and unembedding remain.")
    n_heads: HeadCounts = Field(4, description="Heads in every layer, or a list with one count per layer.")
    n_key_value_heads: int | None = Field(
        None,
        ge=1,
        le=MAX_LAYER_HEADS,
        description="Keys and values in every layer, each shared by a group of adjacent heads; default one per head.",
    )
    d_model: int = Field(128, ge=1, le=MAX_WIDTH, description="Width of the residual stream.")
    d_head: int | None = Field(
        None, ge=1, le=MAX_WIDTH, description="Width of queries and keys; default d_model / n_heads."
    )
    d_value: int | None = Field(None, ge=1, le=MAX_WIDTH, description="Width of values; default d_head.")
    n_ctx: int = Field(128, ge=2, le=MAX_CONTEXT, description="Maximum length of a sequence, BOS included.")
    positions: Literal["relative", "shortformer", "learned_shortformer", "rotary", "learned", "sinusoidal", "none"] = (
        Field(
            "relative",
            description="relative: a learned bias per head and distance; shortformer: sinusoids added to the input of"
            " queries and keys, learned_shortformer: vectors that each layer learns; rotary: queries and keys are"
            " rotated; learned, sinusoidal: added to the stream.",
        )
    )
    rotary_base: float = Field(10_000.0, gt=1, le=1e9, description="Base of the wavelengths of rotary positions.")
    rotary_fraction: float = Field(
        1.0, gt=0, le=1, description="Fraction of d_head, its first dimensions, that rotary positions rotate."
    )
    rotary_stretch: float = Field(
        1.0, gt=0, le=1e6, description="Factor by which the wavelengths of rotary positions are stretched."
    )
    rotary_stretched_wavelengths: _Wavelengths | None = Field(
        None,
        description="Wavelengths, in positions, up to which rotary positions keep theirs, and from which on they are"
        " stretched; between, rates are interpolated, as in Llama 3. By default all are stretched.",
    )
    windowed_rotary_base: float | None = Field(
        None,
        gt=1,
        le=1e9,
        description="Base of rotary positions in windowed_layers, where nothing is stretched; by default as in others.",
    )
    rotary_pairs: Literal["neighbouring", "half-split"] = Field(
        "neighbouring",
        description="Pairs of dimensions that rotary positions rotate together: 0 and 1, 2 and 3, as in the paper; or 0"
        " and r/2, 1 and r/2 + 1 of the r that are rotated, as in GPT-NeoX and Llama.",
    )
    normalization: Literal["none", "layernorm", "rmsnorm"] = Field("none", description="Normalisation of the stream.")
    normalization_place: Literal["pre", "post", "output", "both"] = Field(
        "pre",
        description="pre: norms before each sublayer; post: of the stream after each; output: of what each writes,"
        " before it is added to the stream; both: before each and of what it writes.",
    )
    norm_epsilon: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Number added to the variance, or mean square, in every norm; default 1e-5 in LayerNorm, 1e-6 in"
        " RMSNorm.",
    )
    norm_offset: bool = Field(
        False, description="Norms multiply by 1 + weight, and weights start at 0; otherwise by weights that start at 1."
    )
    feed_forward: Literal["none", "relu", "gelu", "gelu_tanh", "swiglu", "geglu", "geglu_tanh"] = Field(
        "none",
        description="Activation of feed-forward layers; gelu_tanh is GPT-2's approximation. swiglu, geglu, geglu_tanh:"
        " gated layers, in which the activation of one map multiplies another.",
    )
    parallel_sublayers: bool = Field(
        False, description="Feed-forward layers read the stream that enters their layer, in parallel with attention."
    )
    d_mlp: int | None = Field(None, ge=1, le=4 * MAX_WIDTH, description="Feed-forward width; default 4 d_model.")
    biases: bool = Field(False, description="Biases on queries, keys, values, outputs, MLP and logits.")
    qkv_biases: bool = Field(False, description="Biases only on queries, keys and values.")
    output_biases: bool = Field(
        False, description="Biases only on the outputs of attention, where pruned heads leave their mean."
    )
    tied_embeddings: bool = Field(False, description="W_U is the transpose of W_E.")
    embedding_scale: float = Field(
        1.0, gt=0, le=1e4, description="Factor of W_E where tokens enter the stream, but not in W_U if it is tied."
    )
    qk_normalization: bool = Field(False, description="RMS-normalise the queries and keys of each head.")
    qk_normalization_over: Literal["head", "layer"] = Field(
        "head",
        description="What one norm of queries, or keys, spans: a head's dimensions; or those of all heads of a layer"
        " together, each with a weight of its own.",
    )
    attention: Literal["full", "local", "strided", "top_k"] = Field(
        "full",
        description="Keys that a query sees. full: itself and all before it; local: the nearest of these; strided:"
        " every stride-th; top_k: those with the highest scores. BOS is a key like any other.",
    )
    attention_window: int | None = Field(
        None,
        ge=1,
        le=MAX_CONTEXT,
        description="Keys that local and strided attention see, the query's own included; default 32.",
    )
    windowed_layers: _Layers | None = Field(
        None,
        description="Layers, counted from 0, in which local and strided attention see their window alone; queries see"
        " all keys before them in the others. By default all layers.",
    )
    stride: int | None = Field(
        None, ge=1, le=MAX_CONTEXT, description="Distance between the keys of strided attention; default 4."
    )
    top_k: int | None = Field(
        None, ge=1, le=MAX_CONTEXT, description="Keys that top_k attention keeps for each query; default 32."
    )
    key_smearing: bool = Field(
        False,
        description="The key at a position is a mixture of its own and of that before it, in a share that each head"
        " learns, half of each at first; so a head can match what came before without a second layer.",
    )
    score_scale: float | None = Field(
        None, gt=0, le=1e3, description="Factor of scores before softmax; default 1 / sqrt(d_head)."
    )
    score_cap: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="Bound c of scores, which become c tanh(score / c) before softmax; default none.",
    )
    logit_cap: float | None = Field(
        None, gt=0, le=1e6, description="Bound c of logits, which become c tanh(logit / c); default none."
    )
    gates: Literal["none", "hard_concrete", "dynamic"] = Field(
        "none",
        description="Gates on the mixed values of each head. hard_concrete: a number 0..1 per head, learned under a"
        " penalty on open gates; dynamic: open or closed for each token, depending on the head's input.",
    )

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        if isinstance(self.n_heads, tuple):
            if len(self.n_heads) != self.n_layers:
                raise ValueError(
                    f"n_heads as a list must have one count per layer, got {len(self.n_heads)} counts for"
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
                " Set feed_forward to 'relu', 'gelu' or another, or leave d_mlp out."
            )
        if self.n_key_value_heads is not None:
            counts = self.n_heads if isinstance(self.n_heads, tuple) else (self.n_heads,)
            if any(count % self.n_key_value_heads for count in counts):
                raise ValueError(
                    f"n_key_value_heads must divide the heads of every layer, got {self.n_key_value_heads} for"
                    f" n_heads={self.n_heads}. Choose a divisor, or leave it out."
                )
        if self.parallel_sublayers and self.normalization_place == "post":
            raise ValueError(
                "parallel_sublayers needs normalization_place = 'pre', got 'post'. Set it to 'pre', or leave"
                " parallel_sublayers out."
            )
        windows = ("local", "strided")
        patterns = {
            "attention_window": windows,
            "windowed_layers": windows,
            "stride": ("strided",),
            "top_k": ("top_k",),
        }
        for field, needed in patterns.items():
            value = getattr(self, field)
            if value is not None and self.attention not in needed:
                raise ValueError(
                    f"{field} needs attention = {' or '.join(map(repr, needed))}, got {field}={value} with"
                    f" attention={self.attention!r}. Set attention, or leave {field} out."
                )
        if self.top_k is not None and self.top_k > self.n_ctx:
            raise ValueError(f"top_k must be at most n_ctx={self.n_ctx}, got {self.top_k}. Choose fewer keys.")
        layers = self.windowed_layers
        if layers is not None and (layers != tuple(sorted({*layers})) or layers[-1] >= self.n_layers):
            raise ValueError(
                f"windowed_layers must be different layers of n_layers={self.n_layers} in ascending order, counted from"
                f" 0, got {list(layers)}. Correct the list."
            )
        if self.windowed_rotary_base is not None and layers is None:
            raise ValueError(
                f"windowed_rotary_base needs windowed_layers, got windowed_rotary_base={self.windowed_rotary_base:g}"
                " without them. Set windowed_layers, or leave it out."
            )
        wavelengths = self.rotary_stretched_wavelengths
        if wavelengths is not None and not 0 < wavelengths[0] < wavelengths[1] < float("inf"):
            raise ValueError(
                f"rotary_stretched_wavelengths must be two ascending numbers above 0, got {list(wavelengths)}. Correct"
                " them."
            )
        return self
