"""The codings of numbers in a GGUF file: mostly blocks of a few bits per number that share a scale."""

from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from headstream.tasks.errors import UserError
from headstream.tasks.importing.gguf_header import GgufHeader, GgufTensor


def coding_name(number: int) -> str:
    """A coding's name, such as Q4_1.

    Raises:
        ValueError: the coding is unknown or can't be decoded.
        UserError: the library that decodes it isn't installed.
    """
    coding = _coding(number)
    one_block = np.zeros((1, _library().GGML_QUANT_SIZES[coding][1]), np.uint8)
    try:
        _library().dequantize(one_block, coding)
    except NotImplementedError:
        raise ValueError(f"it has numbers coded as {coding.name}, which the library gguf can't decode") from None
    return coding.name


def require_whole(header: GgufHeader, file_bytes: int) -> None:
    """Refuse a file that ends before its tensors do.

    Raises:
        ValueError: it does, or a tensor's rows aren't a whole number of blocks.
    """
    for name, tensor in header.tensors.items():
        if tensor.start + _n_bytes(tensor) > file_bytes:
            raise ValueError(f"it ends before its tensor {name} does")


def decoded(content: UInt8[np.ndarray, "n"], tensor: GgufTensor) -> Float32[np.ndarray, "..."]:
    """The decoded numbers of a tensor in a file with this content."""
    raw = content[tensor.start : tensor.start + _n_bytes(tensor)].reshape(*tensor.shape[:-1], -1)
    return np.array(_library().dequantize(raw, _coding(tensor.coding)), np.float32)


def _n_bytes(tensor: GgufTensor) -> int:
    coding = _coding(tensor.coding)
    in_block, block_bytes = _library().GGML_QUANT_SIZES[coding]
    if tensor.shape[-1] % in_block:
        raise ValueError(f"it has rows of {tensor.shape[-1]} numbers in {coding.name} blocks of {in_block}")
    return prod(tensor.shape) // in_block * block_bytes


def _coding(number: int) -> Any:
    try:
        return _library().GGMLQuantizationType(number)
    except ValueError:
        raise ValueError(f"it has numbers in the unknown coding {number}") from None


def _library() -> ModuleType:
    try:
        import gguf
    except ImportError:
        raise UserError(
            "reading a GGUF file needs the library gguf, which is not installed. Run `pip install -c constraints.txt -e"
            " '.[models]'` in Headstream's folder."
        ) from None
    return gguf
