"""A trained model as the stages that measure it are given it, and where what they find goes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from headstream.models.heads.head import HeadSet, removed_heads
from headstream.models.stimuli import RunningText
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.head_rows import without_rows_on
from headstream.tasks.results.tables import table_named, write_table
from headstream.tasks.text.token_reading import Tokens, require_context
from headstream.tasks.text.windows import evaluation_text, reference_text
from headstream.tasks.training.checkpoints import checkpoint_sha256, checkpoint_steps, load_model

Rows = Sequence[Mapping[str, Any]] | Mapping[str, Any]  # of a table: one mapping a row, or one sequence a column


@dataclass(frozen=True)
class TrainedModel:
    """A model's name in tables, its checkpoints and tokens, and the folder that tables about it are written to."""

    model_id: str
    training_folder: Path
    tokens_folder: Path
    folder: Path
    on_progress: Callable[[float], None] = lambda fraction: None  # is told the fraction done
    device: str = "cpu"
    others: Mapping[str, Path] = field(default_factory=dict)
    """Folders of what else the stage reads, by role."""
    threads: int = 1  # that may compute side by side, each on its own batch

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens that it was trained on.

        Raises:
            UserError: a split is too short for one sequence.
        """
        tokens = Tokens.open(self.tokens_folder)
        require_context(tokens, self.model.architecture.n_ctx)
        return tokens

    @cached_property
    def model(self) -> Transformer:
        """The model at its last checkpoint."""
        return self.at(self.steps[-1])

    @property
    def steps(self) -> list[int]:
        """The training steps of its checkpoints, ascending."""
        return checkpoint_steps(self.training_folder)

    @property
    def weights_sha256(self) -> str:
        """A hash of its last checkpoint, which is the same whatever the model is called."""
        return checkpoint_sha256(self.training_folder, self.steps[-1])

    def at(self, step: int, set_free: bool = False) -> Transformer:
        """The model at one of its checkpoints, where it is measured: as it was trained, or set free."""
        return load_model(self.training_folder, step, set_free).to(self.device)

    def evaluation_text(self, n_windows: int) -> RunningText:
        """At most `n_windows` full sequences of the text that models are measured on."""
        return evaluation_text(self.tokens, self.model.architecture.n_ctx, n_windows)

    def reference_text(self, n_windows: int) -> RunningText:
        """At most `n_windows` full sequences of the text that means of ablated outputs are taken on."""
        return reference_text(self.tokens, self.model.architecture.n_ctx, n_windows)

    def removed_at(self, step: int | None) -> HeadSet:
        """Heads that training had removed at a step, by default the last one, and that stayed so."""
        removed = removed_heads(self.model)
        return removed & removed_heads(self.at(step)) if removed and step is not None else removed

    def write(self, table: str, rows: Rows) -> None:
        """Write a table about this model: rows, or columns, without its name.

        Rows about a head that training removed are left out: what is not there has no scores.
        """
        frame = without_rows_on(pd.DataFrame(rows), table_named(table), self.removed_at)
        if len(frame.columns):
            frame.insert(0, "model_id", self.model_id)
        write_table(self.folder, table, frame)
