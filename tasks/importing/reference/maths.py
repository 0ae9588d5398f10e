"""The pieces of a forward pass in float64: norms, activations, rotary positions, unembedding."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

UNEMBEDDING_ROWS = 1 << 13  # of an unembedding, converted to float64 at a time


def layer_norm(
    x: Float64[Tensor, "*batch width"],
    epsilon: float,
    weight: Float64[Tensor, "width"] | None = None,
    bias: Float64[Tensor, "width"] | None = None,
) -> Float64[Tensor, "*batch width"]:
    """Layer normalisation. Source: Ba et al. 2016, Layer Normalization."""
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + epsilon)
    scaled = scaled if weight is None else scaled * weight
    return scaled if bias is None else scaled + bias


def rms_norm(
    x: Float64[Tensor, "*batch width"], epsilon: float, weight: Float64[Tensor, "width"] | None = None
) -> Float64[Tensor, "*batch width"]:
    """Root mean square normalisation. Source: Zhang & Sennrich 2019, Root Mean Square Layer Normalization."""
    scaled = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon)
    return scaled if weight is None else scaled * weight


def gelu(x: Tensor) -> Tensor:
    """GELU: x times the probability that a standard normal number is below x. Source: Hendrycks & Gimpel 2016."""
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: Tensor) -> Tensor:
    """The approximation of GELU by tanh. Source: Hendrycks & Gimpel 2016, section 2."""
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def silu(x: Tensor) -> Tensor:
    """SiLU: x times the logistic function of x."""
    return x / (1 + torch.exp(-x))


def relu(x: Tensor) -> Tensor:
    """ReLU: the positive part."""
    return x.clamp(min=0)


REFERENCE_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,  # with sqrt(2 / pi) to ten digits
    "silu": silu,
    "swish": silu,
    "relu": relu,
}


def rotated(
    x: Float64[Tensor, "batch pos head width"], base: float, n_turned: int, half_split: bool
) -> Float64[Tensor, "batch pos head width"]:
    """Multiply pair j of the first `n_turned` dimensions, a complex number, by exp(i position base^(-2 j / n_turned)).

    Pairs are (j, j + n_turned / 2) with `half_split`, else (2 j, 2 j + 1). Source: Su et al. 2021 (RoPE).
    """
    return turned(x, rates_of(base, n_turned), half_split)


def rates_of(base: float, n_turned: int) -> list[float]:
    """Radians a position by which each pair of dimensions is turned."""
    return [base ** (-2 * j / n_turned) for j in range(n_turned // 2)]


def stretched(rate: float, factor: float, wavelengths: Sequence[float] | None) -> float:
    """A rate whose wavelength is stretched by a factor: not up to the first of two, and fully from the second on.

    Source: https://github.com/meta-llama/llama-models/blob/main/models/llama3/model.py, `apply_scaling`.
    """
    if wavelengths is None:
        return rate / factor
    first, last = wavelengths
    wavelength = 2 * math.pi / rate
    if wavelength < first:
        return rate
    if wavelength > last:
        return rate / factor
    smooth = (1 / wavelength - 1 / last) / (1 / first - 1 / last)
    return (1 - smooth) * rate / factor + smooth * rate


def turned(
    x: Float64[Tensor, "batch pos head width"], rates: Sequence[float], half_split: bool
) -> Float64[Tensor, "batch pos head width"]:
    """Multiply each pair of dimensions, a complex number, by exp(i position rate)."""
    n_pairs = len(rates)
    n_turned = 2 * n_pairs
    places = torch.arange(n_turned).view(2, n_pairs).T if half_split else torch.arange(n_turned).view(n_pairs, 2)
    angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * torch.tensor(rates, dtype=torch.float64)
    pairs = torch.complex(x[..., places[:, 0]], x[..., places[:, 1]]) * torch.exp(1j * angles)[:, None]
    out = x.clone()
    out[..., places[:, 0]], out[..., places[:, 1]] = pairs.real, pairs.imag
    return out


def kept_below(x: Tensor, cap: float) -> Tensor:
    """Each x as cap tanh(x / cap). Source: Gemma Team 2024, Gemma 2, section 2, "Logit soft-capping"."""
    return cap * torch.tanh(x / cap)


def read_out(
    x: Float64[Tensor, "batch pos d_model"], rows: Tensor, bias: Tensor | None = None
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits by an unembedding with a row per token, in whatever precision, some rows at a time."""
    logits = torch.cat([x @ part.double().T for part in rows.split(UNEMBEDDING_ROWS)], dim=-1)
    return logits if bias is None else logits + bias
