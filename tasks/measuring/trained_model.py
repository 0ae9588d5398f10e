"""A trained model as the stages that measure it are given it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from models.transformer import Transformer
from tasks.results.tables import write_table
from tasks.text.tokens import Tokens, require_context
from tasks.training.checkpoints import checkpoint_steps, load_model


@dataclass(frozen=True)
class TrainedModel:
    """What tables call a model, where its checkpoints and tokens are, and the device that it is measured on."""

    model_id: str
    training_folder: Path
    tokens_folder: Path
    device: str = "cpu"

    def open(self) -> tuple[Tokens, Transformer]:
        """The tokens and the model at its last checkpoint, on one thread: models are measured side by side.

        Raises:
            UserError: the text is too short for one sequence.
        """
        torch.set_num_threads(1)
        tokens, model = Tokens.open(self.tokens_folder), self.at(self.steps[-1])
        require_context(tokens, model.architecture.n_ctx)
        return tokens, model

    @property
    def steps(self) -> list[int]:
        """The steps of its checkpoints, ascending."""
        return checkpoint_steps(self.training_folder)

    def at(self, step: int) -> Transformer:
        """The model at one of them."""
        return load_model(self.training_folder, step).to(self.device)

    def write(self, folder: Path, table: str, rows: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> None:
        """Write a table about this model: rows, or columns, without its name."""
        frame = pd.DataFrame(rows)
        if len(frame.columns):
            frame.insert(0, "model_id", self.model_id)
        write_table(folder, table, frame)
