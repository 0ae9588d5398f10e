"""Induction by two heads in a row: the later one moves what the earlier one wrote where it looks.

Neither head may be an induction head by itself: a later head that looks two past an earlier copy of the current token
finds, in what a previous-token head wrote there, the token that followed.
"""

from collections import defaultdict
from collections.abc import Collection

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.induction_without import Induction, SeenOnRepeats
from headstream.models.circuits.paths import HeadPath
from headstream.models.frozen import freeze_run
from headstream.models.heads.attended_keys import induction_keys
from headstream.models.repeats import Repeats
from headstream.models.transformer import Transformer


@torch.inference_mode()
def virtual_induction(
    model: Transformer, repeats: Repeats | None, bos: int, wanted: Collection[HeadPath]
) -> dict[HeadPath, Induction]:
    """The induction of virtual heads: of the product of their patterns, and of what goes through both.

    Nothing where nothing repeats.
    """
    seen: dict[HeadPath, SeenOnRepeats] = defaultdict(SeenOnRepeats)
    for batch in batches(model, repeats.tokens) if repeats is not None else ():
        _add_batch(seen, model, batch, bos, wanted)
    return {path: own.induction() for path, own in seen.items()}


def _add_batch(
    seen: dict[HeadPath, SeenOnRepeats],
    model: Transformer,
    batch: Int[Tensor, "batch pos"],
    bos: int,
    wanted: Collection[HeadPath],
) -> None:
    tokens, targets = batch[:, :-1], batch[:, 1:]
    run, keys = freeze_run(model, tokens), induction_keys(tokens, bos)
    reads = run.reads_of_z(targets)
    for i, layer in enumerate(run.layers):
        outputs = layer.written()
        for j in range(i + 1, len(run.layers)):
            later = run.layers[j]
            for first, second in wanted:
                if (first.layer, second.layer) == (i, j):
                    pattern = later.trace.pattern[:, second.head]
                    z = pattern @ (later.norm_before(outputs[first.head]) @ later.attention.W_V[second.head])
                    if later.trace.gates is not None:
                        z = z * later.trace.gates[:, second.head, :, None]
                    through = pattern @ layer.trace.pattern[:, first.head]
                    seen[first, second].add(through, keys, (z * reads[j][:, second.head]).sum(-1))
            outputs = later.carry(outputs)
