"""A GGUF file as its own library reads it: metadata and decoded tensors."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from headstream.tasks.importing.reference.file_tensors import FileTensors


def read_gguf(path: Path) -> tuple[dict[str, Any], FileTensors]:
    """The metadata (without the tokenizer's) and the tensors of a file that is known to be whole."""
    from gguf import GGUFReader, dequantize

    reader = GGUFReader(path)
    said = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("tokenizer.")}
    found = {tensor.name: tensor for tensor in reader.tensors}

    def as_stored(name: str) -> torch.Tensor:
        tensor = found[name]
        return torch.from_numpy(np.array(dequantize(tensor.data, tensor.tensor_type)))

    return said, FileTensors(frozenset(found), as_stored)
