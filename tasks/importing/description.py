"""Describes a model from elsewhere, line by line."""

import json
import math
from collections.abc import Iterator

from headstream.tasks.importing.foreign_model import ForeignModel, ForeignTokenizer
from headstream.tasks.importing.placements import parameters_of


def described_model(model: ForeignModel) -> Iterator[tuple[str, str]]:
    """Lines that describe a model, each a heading and a text; of several lines on one subject, the first has it."""
    yield "format", model.format
    size = sum(path.stat().st_size for path in model.files)
    yield "files", f"{', '.join(path.name for path in model.files)}; {size / 1e6:,.1f} MB"
    n_parameters = sum(math.prod(each.shape) for each in parameters_of(model.architecture, model.d_vocab).values())
    yield "parameters", f"{n_parameters:,}, stored as {model.dtype}; {4 * n_parameters / 1e6:,.1f} MB in float32"
    yield "context", f"{model.architecture.n_ctx:,} tokens"
    yield "vocabulary", f"{model.d_vocab:,} tokens"
    if model.step is not None:
        tokens = "" if model.tokens is None else f", {model.tokens:,} tokens"
        yield "trained for", f"{model.step:,} steps{tokens}"
    none = "none; a study must name the model's own: tokenizer = 'PATH'"
    yield "tokenizer", none if model.tokenizer is None else _described(model.tokenizer)
    yield "architecture", model.architecture.name
    for field, value in model.architecture.model_dump(mode="json", exclude_defaults=True).items():
        yield "", f"{field} = {json.dumps(value)}"
    for note in model.notes:
        yield "note", note


def _described(tokenizer: ForeignTokenizer) -> str:
    kind = json.loads(tokenizer.json).get("model", {}).get("type")
    bos = "no BOS"
    if tokenizer.bos is not None:
        bos = f"BOS {tokenizer.read().id_to_token(tokenizer.bos)!r} ({tokenizer.bos})"
    return f"{kind}, {tokenizer.entries:,} ids, {bos}"
