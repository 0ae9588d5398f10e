"""Which tensor of a file holds which parameters of a model, and what a header must show for that to be so."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
    start: float | None  # what every entry is where a format has no tensor for it: no bias, a norm's weight of 1


def parameters_of(architecture: Architecture, d_vocab: int) -> dict[str, Declared]:
    """Every parameter that a model has, by name."""
    with torch.device("meta"):
        model = Transformer(architecture, d_vocab)
    return {name: Declared(tuple(p.shape), declaration.start) for name, p, declaration in declared_parameters(model)}


@dataclass(frozen=True)
class PlacedTensors:
    """The tensors of a model's files, and where each belongs."""

    path: Path  # what errors name
    stored: StoredTensors
    placements: Sequence[Placement]
    buffers: re.Pattern[str] = re.compile("(?!)")  # names of tensors that hold no weights
    copies: Mapping[str, str] = field(default_factory=dict)  # tensors that may be there, and what each must equal

    @property
    def dtype(self) -> str:
        """The types that the weights are stored in."""
        return " and ".join(sorted({self.stored.header[place.tensor].dtype for place in self.placements}))

    def require(self, declared: Mapping[str, Declared]) -> None:
        """Refuses files whose headers show other tensors than an architecture has.

        Raises:
            UserError: a tensor is missing, unknown, of another shape or no floats, or all don't fit memory.
        """
        require_memory(self.path, sum(torch.Size(each.shape).numel() for each in declared.values()))
        self._require_names({place.tensor for place in self.placements})
        for place in self.placements:
            parameters = [torch.empty(declared[name].shape, device="meta") for name in place.parameters]
            wanted, found = list(place.layout.write(*parameters).shape), self.stored.header[place.tensor]
            if list(found.shape) != wanted:
                raise UserError(
                    f"{place.tensor} must be {wanted} by the config, got {list(found.shape)} in {self.path}."
                    " Give the config that belongs to these weights."
                )
            if found.dtype not in FLOATS.values():
                raise UserError(
                    f"weights must be {', '.join(FLOATS.values())}, got {place.tensor} as {found.dtype} in {self.path}."
                    " Give the model as it was before it was quantised."
                )

    def _require_names(self, placed: set[str]) -> None:
        there = self.stored.header
        strange = [name for name in there if name not in placed | {*self.copies} and not self.buffers.search(name)]
        if strange:
            strange.sort(key=lambda name: named_part(name) == name)  # those first whose part has a name
            raise UserError(
                f"{self.path} must hold what its architecture has and no more, got {named_part(strange[0])}"
                f"{_more(strange)}, which Headstream has no place for. Choose another model, or take that out."
            )
        if missing := [place.tensor for place in self.placements if place.tensor not in there]:
            raise UserError(
                f"{self.path} must hold {missing[0]}{_more(missing)}, got no such tensor. Fetch the whole model, or"
                " correct its config."
            )

    def read(self, declared: Mapping[str, Declared]) -> dict[str, Tensor]:
        """All parameters in float32; those that the files have no tensor for are what they start as.

        Raises:
            UserError: a tensor can't be read, isn't finite, or isn't what it must be a copy of.
        """
        for copy, original in self.copies.items():
            if copy in self.stored.header and not torch.equal(self.stored.read(copy), self.stored.read(original)):
                raise UserError(
                    f"{copy} must equal {original}, as embeddings are tied by the config, but differs in {self.path}."
                    " Give the config that belongs to these weights."
                )
        weights: dict[str, Tensor] = {}
        for place in self.placements:
            shapes = [declared[name].shape for name in place.parameters]
            parts = place.layout.read(finite_float32(self.stored, place.tensor), shapes)
            own = parts if len(parts) == 1 else [part.clone() for part in parts]  # so that none keeps all of them
            weights |= {name: part.contiguous() for name, part in zip(place.parameters, own, strict=True)}
        return {name: weights[name] if name in weights else _start(name, each) for name, each in declared.items()}


def checked_model(
    format: str,
    files: Sequence[Path],
    tensors: PlacedTensors,
    architecture: Architecture,
    d_vocab: int,
    tokenizer: ForeignTokenizer | None,
    notes: Sequence[str],
) -> ForeignModel:
    """A model whose header agrees with its architecture and its tokenizer, and what must be told of it.

    Raises:
        UserError: they don't agree, or it is too large.
    """
    declared = parameters_of(architecture, d_vocab)
    tensors.require(declared)
    return ForeignModel(
        format=format,
        files=tuple(files),
        architecture=architecture,
        d_vocab=d_vocab,
        tokenizer=tokenizer,
        dtype=tensors.dtype,
        notes=(*_dtype_notes(tensors.dtype), *notes, *tokenizer_notes(tensors.path, tokenizer, d_vocab)),
        read_weights=lambda: tensors.read(declared),
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
