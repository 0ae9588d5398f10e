"""Writes the prompt sets of a study, as text, for the models that are measured on them."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headstream.tasks.errors import UserError
from headstream.tasks.prompts.prompt_files import read_prompts
from headstream.tasks.prompts.prompt_pair import PromptPair
from headstream.tasks.prompts.shipped_prompts import SHIPPED, drawn_pairs
from headstream.tasks.prompts.written_prompts import PROMPTS
from headstream.tasks.study.analyses.prompts_config import PromptsConfig, PromptSetConfig


def prompts_fingerprint(config: PromptsConfig) -> dict[str, str]:
    """A hash of each file of prompts, by the name of its set.

    Raises:
        UserError: a file can't be read.
    """
    return {own.name: _sha256(own) for own in config.sets if own.path}


def write_prompts(config: PromptsConfig, folder: Path, on_progress: Callable[[float], None]) -> dict[str, Any]:
    """Write the candidates for the pairs of every set: all of a file, or those that are drawn from templates.

    Raises:
        UserError: a file isn't as it must be.
    """
    sets = {own.name: candidates(own, config.seed) for own in config.sets}
    (folder / PROMPTS).write_text(json.dumps(sets, ensure_ascii=False), encoding="utf-8")
    on_progress(1.0)
    return {"sets": list(sets)}


def candidates(own: PromptSetConfig, seed: int) -> list[PromptPair]:
    """The pairs of a set, of which a model is measured on the first that its tokenizer reads as they must be.

    Those of a file come in an order by hash, so that any number of them is a sample of all.

    Raises:
        UserError: the file isn't as it must be.
    """
    if own.path is None:
        return drawn_pairs(own.name, seed)
    pairs = read_prompts(Path(own.path).expanduser())
    return sorted(pairs, key=lambda pair: hashlib.sha256(repr(pair[:4]).encode()).digest())


def _sha256(own: PromptSetConfig) -> str:
    path = Path(own.path or "").expanduser()
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        known = ", ".join(SHIPPED)
        raise UserError(
            f"{path} can't be read: {error.strerror}. Correct the path of {own.name!r}; sets that ship are {known}."
        ) from error
