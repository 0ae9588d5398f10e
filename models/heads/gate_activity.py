"""The activity of heads' gates by class of token."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.transformer import Transformer


@torch.inference_mode()
def gate_activity(
    model: Transformer, sequences: Int[Tensor, "batch pos"], token_classes: Int[Tensor, "d_vocab"]
) -> list[Float[Tensor, "_ token_class"]]:
    """Fraction of the tokens of each class at which a head's gate is open, as a [head, class] tensor per layer.

    The model must have gates. NaN for a class that doesn't occur. The last token of a sequence is only predicted, not
    read.
    """
    n_classes = int(token_classes.max()) + 1
    n_open = [torch.zeros(n, n_classes, dtype=torch.float64) for n in model.architecture.heads_per_layer]
    n_tokens = torch.zeros(n_classes, dtype=torch.float64)
    for batch in batches(model, sequences):
        classes = token_classes.to(batch.device)[batch[:, :-1]].flatten()
        n_tokens += torch.bincount(classes, minlength=n_classes).cpu()
        for total, layer in zip(n_open, model.trace(batch[:, :-1]).layers, strict=True):
            assert layer.gates is not None
            is_open = (layer.gates > 0).double().transpose(0, 1).flatten(1)
            total += torch.zeros(len(total), n_classes, dtype=torch.float64).index_add_(1, classes.cpu(), is_open.cpu())
    return [total / n_tokens for total in n_open]
