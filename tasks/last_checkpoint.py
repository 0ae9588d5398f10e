"""What every stage that measures a trained model's end begins with."""

from pathlib import Path

import torch

from models.transformer import Transformer
from tasks.checkpoints import checkpoint_steps, load_model
from tasks.tokens import Tokens, require_context


def open_last_checkpoint(training_folder: Path, tokens_folder: Path, device: str) -> tuple[Tokens, Transformer]:
    """The tokens and the model at its last checkpoint, on one thread: models are measured side by side.

    Raises:
        RequestError: the text is too short for one sequence.
    """
    torch.set_num_threads(1)
    tokens = Tokens.open(tokens_folder)
    model = load_model(training_folder, checkpoint_steps(training_folder)[-1]).to(device)
    require_context(tokens, model.architecture.n_ctx)
    return tokens, model
