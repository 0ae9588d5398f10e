"""A checkpoint's weights as circuits are made of them."""

from headstream.models.circuits.head_weights import CircuitWeights, circuit_weights
from headstream.models.transformer import Transformer
from headstream.tasks.errors import WorkError


def checkpoint_weights(model: Transformer, step: int) -> CircuitWeights:
    """The weights of a checkpoint, its norms folded in.

    Raises:
        WorkError: they are not finite, or norms lie between the layers.
    """
    try:
        return circuit_weights(model)
    except ValueError as error:
        raise WorkError(f"the checkpoint of step {step} can't be taken apart: {error}") from error
