"""Every setting of every family that can be imported, changed in the file: what changes in transformers changes here.

A folder's weights stay as they are, its config gets one change of changed_settings.py at a time. What counts must move
the logits of transformers and of both readings alike, and what doesn't must move none.

python -m benchmarks.peers_settings [FAMILY ...]
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from huggingface_hub.errors import StrictDataclassClassValidationError
from torch import Tensor
from transformers import AutoConfig

from benchmarks.changed_settings import CHANGES
from benchmarks.peers_families import PEER_BAR, apart, eager, quiet, random_peer
from benchmarks.setting_changes import Changes, Settings, changed, names_in
from headstream.models.transformer import Transformer
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.reference.forward import reference_logits

COUNTS = 1e-4  # of the logits' standard deviation: a setting that changes them changes them by more


class Logits(NamedTuple):
    """Of one folder: those of transformers, and those of both readings here."""

    theirs: Tensor
    first: Tensor
    second: Tensor


def main(families: Sequence[str]) -> None:
    """Compare some families, by default all, and print a table."""
    quiet()
    print("one setting changed in the file: how far logits then are, over their standard deviation, from those of")
    print("transformers, here and in the second reading, and how far what counts least moves those of transformers")
    with torch.inference_mode():
        for kind in families or CHANGES:
            compare_changes(CHANGES[kind])


def compare_changes(changes: Changes) -> None:
    """Change every setting of a family, and print a row; one that counts otherwise in transformers is an error."""
    kind, base = changes.base["model_type"], changes.base
    tokens = torch.randint(base["vocab_size"], (3, 13), generator=torch.Generator().manual_seed(1))
    idle = (changes.idle, *changes.idle_besides)
    to_first, to_second, least, n_refused = 0.0, 0.0, float("inf"), 0
    with TemporaryDirectory() as folder:
        peer = random_peer(AutoConfig.for_model(**base))
        peer.save_pretrained(folder)
        require_all(changes, peer.config.to_dict().keys())
        before = logits_of(Path(folder), base, tokens)
        for change in (*changes.counted, *idle):
            try:
                found = logits_of(Path(folder), changed(base, change), tokens)
            except StrictDataclassClassValidationError as error:
                print(f"  {kind:12} {change}: the library says {str(error).splitlines()[-1].strip()}")
                n_refused += 1
                continue
            moved = require_alike(f"{kind} with {change}", found, before, counts=change not in idle)
            to_first = max(to_first, apart(found.theirs, found.first))
            to_second = max(to_second, apart(found.theirs, found.second))
            least = min(least, moved) if change not in idle else least
    tried = (
        f"{len(changes.counted) - n_refused} that count, {len(changes.idle)} + {len(changes.idle_besides)} that don't"
    )
    print(f"  {kind:12} {tried:30} {to_first:.1e}  {to_second:.1e}  {least:.1e}", flush=True)


def require_all(changes: Changes, settings: Any) -> None:
    """Raise SystemExit if a setting of transformers' config isn't among a family's changes."""
    refused = (change for change, _ in changes.refused)
    tried = (changes.base, *changes.counted, changes.idle, *changes.idle_besides, *refused)
    left_out = settings - set().union(*map(names_in, tried))
    if left_out:
        raise SystemExit(f"the changes must have every setting of {changes.base['model_type']}, and lack {left_out}.")


def require_alike(what: str, found: Logits, before: Logits, *, counts: bool) -> float:
    """By how much logits of transformers moved; raises SystemExit if those here moved elsewhere, or if it shouldn't."""
    moved = apart(found.theirs, before.theirs)
    differences = [apart(found.theirs, other) for other in (found.first, found.second)]
    if max(differences) > PEER_BAR or (moved > COUNTS) != counts:
        raise SystemExit(
            f"{what} must be as transformers reads it, got differences of {differences[0]:.1e} and"
            f" {differences[1]:.1e} where it moves logits by {moved:.1e}."
        )
    return moved


def logits_of(folder: Path, config: Settings, tokens: Tensor) -> Logits:
    """Logits of the model in a folder by another config."""
    (folder / "config.json").write_text(json.dumps(config))
    peer = eager(folder)
    foreign = open_foreign(folder)
    model = Transformer(foreign.architecture, foreign.d_vocab).eval()
    model.load_state_dict(foreign.read_weights(), assign=True)
    return Logits(peer(tokens).logits, model(tokens), reference_logits(foreign, tokens))


if __name__ == "__main__":
    main(sys.argv[1:])
