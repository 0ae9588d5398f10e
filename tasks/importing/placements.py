"""Places the tensors of a file in a model's parameters, once the file's header agrees with the architecture."""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.parameters import declared_parameters
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import require_memory
from headstream.tasks.importing.foreign_model import ForeignModel, ForeignTokenizer
from headstream.tasks.importing.foreign_tokenizer import tokenizer_notes
from headstream.tasks.importing.layouts import Layout
from headstream.tasks.importing.stored_tensors import FLOATS, StoredTensors, finite_float32
from headstream.tasks.importing.unknown_parts import named_part


@dataclass(frozen=True)
class Placement:
    """A tensor of a file, and the parameters that it holds."""

    tensor: str
    layout: Layout
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Declared:
    """A parameter of an architecture, without its numbers."""

    shape: tuple[int, ...]
    start: float | None  # value of every entry if a format has no tensor for it: 0 for a bias, 1 for a norm's weight


def parameters_of(architecture: Architecture, d_vocab: int) -> dict[str, Declared]:
    """Every parameter of a model, by name."""
    with torch.device("meta"):
        model = Transformer(architecture, d_vocab)
    return {name: Declared(tuple(p.shape), declaration.start) for name, p, declaration in declared_parameters(model)}


@dataclass(frozen=True)
class PlacedTensors:
    """The tensors of a model's files, and the place of each."""

    path: Path  # for errors
    stored: StoredTensors
    placements: Sequence[Placement]
    buffers: re.Pattern[str] = re.compile("(?!)")  # names of tensors that hold no weights
    copies: Mapping[str, str] = field(default_factory=dict)  # optional tensors, and the one that each must equal

    @property
    def dtype(self) -> str:
        """The types that the weights are stored in."""
        return " and ".join(sorted({self.stored.header[place.tensor].dtype for place in self.placements}))

    def require(self, declared: Mapping[str, Declared]) -> None:
        """Refuse files whose headers don't agree with the architecture's parameters.

        Raises:
            UserError: a tensor is missing, unknown, of another shape or not of floats, or they don't fit in memory.
        """
        require_memory(self.path, sum(torch.Size(each.shape).numel() for each in declared.values()))
        self._require_names({place.tensor for place in self.placements})
        for place in self.placements:
            parameters = [torch.empty(declared[name].shape, device="meta") for name in place.parameters]
            wanted, found = list(place.layout.write(*parameters).shape), self.stored.header[place.tensor]
            if list(found.shape) != wanted:
                raise UserError(
                    f"{place.tensor} has shape {list(found.shape)} in {self.path}, and {wanted} by the config."
                    " Give the config that belongs to these weights."
                )
            if found.dtype not in FLOATS.values():
                raise UserError(
                    f"{place.tensor} in {self.path} is {found.dtype}, and weights must be {', '.join(FLOATS.values())}."
                    " Give the model as it was before it was quantised."
                )

    def _require_names(self, placed: set[str]) -> None:
        there = self.stored.header
        strange = [name for name in there if name not in placed | {*self.copies} and not self.buffers.search(name)]
        if strange:
            strange.sort(key=lambda name: named_part(name) == name)  # tensors of a known part first
            raise UserError(
                f"{self.path} holds {named_part(strange[0])}{_more(strange)}, which the architecture doesn't have and"
                " Headstream can't represent. Choose another model, or remove them."
            )
        missing = [place.tensor for place in self.placements if place.tensor not in there]
        if missing:
            raise UserError(
                f"{self.path} has no tensor {missing[0]}{_more(missing)}. Download the whole model, or correct its"
                " config."
            )

    def read(self, declared: Mapping[str, Declared]) -> dict[str, Tensor]:
        """All parameters in float32; those that the files have no tensor for get their initial values."""
        weights = dict(self.each(declared))
        return {name: weights[name] if name in weights else _start(name, each) for name, each in declared.items()}

    def each(self, declared: Mapping[str, Declared]) -> Iterator[tuple[str, Tensor]]:
        """The parameters that the files hold, in float32, one tensor in memory at a time.

        Raises:
            UserError: a tensor can't be read, isn't finite, or differs from the one that it must equal.
        """
        for copy, original in self.copies.items():
            if copy in self.stored.header and not torch.equal(self.stored.read(copy), self.stored.read(original)):
                raise UserError(
                    f"{copy} differs from {original} in {self.path}, though the config ties embeddings. Give the config"
                    " that belongs to these weights."
                )
        for place in self.placements:
            shapes = [declared[name].shape for name in place.parameters]
            parts = place.layout.read(finite_float32(self.stored, place.tensor), shapes)
            own = parts if len(parts) == 1 else [part.clone() for part in parts]  # views would keep the whole in memory
            for name, part in zip(place.parameters, own, strict=True):
                yield name, part.contiguous()


class Origin(NamedTuple):
    """What a model was read from, beside its tensors."""

    format: str
    files: Sequence[Path]
    tokenizer: ForeignTokenizer | None
    notes: Sequence[str]


def checked_model(origin: Origin, tensors: PlacedTensors, architecture: Architecture, d_vocab: int) -> ForeignModel:
    """The model, once its header agrees with its architecture and its tokenizer.

    Raises:
        UserError: they don't agree, or it is too large.
    """
    declared = parameters_of(architecture, d_vocab)
    tensors.require(declared)
    return ForeignModel(
        format=origin.format,
        files=tuple(origin.files),
        architecture=architecture,
        d_vocab=d_vocab,
        tokenizer=origin.tokenizer,
        dtype=tensors.dtype,
        notes=(*_dtype_notes(tensors.dtype), *origin.notes, *tokenizer_notes(tensors.path, origin.tokenizer, d_vocab)),
        read_weights=lambda: tensors.read(declared),
        check_weights=lambda: deque(tensors.each(declared), maxlen=0),
        step=_whole(tensors.stored.metadata.get("step")),
        tokens=_whole(tensors.stored.metadata.get("tokens")),
    )


def _dtype_notes(dtype: str) -> list[str]:
    if dtype == "float32":
        return []
    return [f"{dtype} weights are {'rounded' if 'float64' in dtype else 'widened'} to float32"]


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None


def _start(name: str, declared: Declared) -> Tensor:
    assert declared.start is not None, name
    return torch.full(declared.shape, declared.start, dtype=torch.float32)


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
