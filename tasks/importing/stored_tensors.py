"""Tensors in files: names, shapes and types from the headers alone, each tensor read on demand."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import require_file

FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}  # by safetensors' names


class Stored(NamedTuple):
    """A tensor's entry in a header."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class StoredTensors:
    """The tensors of one or more files."""

    header: Mapping[str, Stored]
    read: Callable[[str], Tensor]  # a tensor by its name, as it is stored
    metadata: Mapping[str, str]  # other entries of the header

    def renamed(self, rename: Callable[[str], str]) -> "StoredTensors":
        """The same tensors under other names."""
        names = {rename(name): name for name in self.header}
        header = {new: self.header[old] for new, old in names.items()}
        return replace(self, header=header, read=lambda name: self.read(names[name]))

    def without(self, names: Collection[str]) -> "StoredTensors":
        """All but some tensors."""
        return replace(self, header={name: each for name, each in self.header.items() if name not in names})


def open_safetensors(paths: tuple[Path, ...]) -> StoredTensors:
    """The tensors of safetensors files.

    Raises:
        UserError: one isn't such a file, is cut short, or holds a tensor that another one holds, too.
    """
    header: dict[str, Stored] = {}
    places: dict[str, Path] = {}
    metadata: dict[str, str] = {}
    for path in paths:
        try:
            with safe_open(require_file(path), framework="pt") as file:
                metadata |= file.metadata() or {}
                for name in file.keys():  # noqa: SIM118 (it isn't a dict)
                    if name in places:
                        raise UserError(
                            f"both {places[name]} and {path} hold the tensor {name}. Remove the file that doesn't"
                            " belong to the model."
                        )
                    kept = file.get_slice(name)
                    header[name] = Stored(tuple(kept.get_shape()), FLOATS.get(kept.get_dtype(), kept.get_dtype()))
                    places[name] = path
        except (SafetensorError, OSError, ValueError, RecursionError) as error:
            raise UserError(_unreadable(path, error)) from None

    def read(name: str) -> Tensor:
        try:
            with safe_open(places[name], framework="pt") as file:
                return file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise UserError(_unreadable(places[name], error)) from None

    return StoredTensors(header, read, metadata)


def held_tensors(path: Path, tensors: Any, metadata: Mapping[str, str] | None = None) -> StoredTensors:
    """The tensors of a state dict that is already open, mapped into memory.

    Raises:
        UserError: it isn't a state dict, or holds tensors that would expand when read.
    """
    if not isinstance(tensors, dict) or not tensors:
        raise UserError(
            f"{path} holds data of type {type(tensors).__name__}, not a state dict. Save model.state_dict()."
        )
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor) or not _dense(tensor):
            raise UserError(f"{name!r:.80} in the state dict of {path} isn't a whole tensor. Save it again.")
    header = {name: Stored(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for name, t in tensors.items()}
    return StoredTensors(header, lambda name: tensors[name].detach(), metadata or {})


def _dense(tensor: Tensor) -> bool:
    """True if a tensor is in CPU memory and stores a number for every entry."""
    here = tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_quantized
    return here and tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()


def finite_float32(stored: StoredTensors, name: str) -> Tensor:
    """A tensor in float32.

    Raises:
        UserError: it holds numbers that aren't finite.
    """
    tensor = stored.read(name).to(torch.float32, copy=True)  # files may be mapped into memory
    n_bad = int((~tensor.isfinite()).sum())
    if n_bad:
        raise UserError(
            f"{n_bad:,} of {tensor.numel():,} weights in {name} are not finite. Give another checkpoint, or the"
            " original file."
        )
    return tensor


def _unreadable(path: Path, error: Exception) -> str:
    return f"{path} is not a whole safetensors file: {error}. Download the file again."
