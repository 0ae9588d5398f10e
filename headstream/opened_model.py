"""A model of a study at one of its checkpoints."""

import math
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from headstream.model_on_text import Model
from headstream.tasks.errors import UserError
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import checkpoint_steps, load_model, tokens_at
from headstream.tasks.words.markdown import short_count

if TYPE_CHECKING:
    from headstream.opened_explorer import ExplorerPage


class StudyModel(Model):
    """A model of a study as it was after a training step: everything that a `Model` computes, over its training.

    >>> model = hs.open("quick").model("2L4H", seed=0)
    >>> model.at(step=0).loss("return self"), model.loss("return self")

    Raises:
        UserError: a text isn't one, or is longer than the model's context; or there is no such head or replacement.
    """

    def __init__(
        self, label: str, model_id: str, study: str, training: Path, tokens: Path, step: int | None = None
    ) -> None:
        self.model_id, self.study = model_id, study
        self._training, self._folder = training, tokens
        self.steps = checkpoint_steps(training)
        self.step = self.steps[-1] if step is None else step
        super().__init__(label, load_model(training, self.step), Tokens.open(tokens))

    def at(self, step: int | None = None, tokens: float | None = None) -> "StudyModel":
        """The same model after a training step, or at the checkpoint nearest to a number of tokens.

        >>> model.at(step=0).loss("return self.colour"), model.at(tokens=1_000_000).step

        Raises:
            UserError: no weights were kept at that step, or not exactly one of both is given.
        """
        if (step is None) == (tokens is None):
            raise UserError(f"give either a step or tokens, got step={step!r} and tokens={tokens!r}. Leave one out.")
        if tokens is not None:
            if isinstance(tokens, bool) or not isinstance(tokens, Real) or not -math.inf < tokens < math.inf:
                raise UserError(f"tokens must be a finite number, got {tokens!r:.100}. Give a number, like 5e6.")
            known = {kept: seen for kept, seen in tokens_at(self._training).items() if seen is not None}
            if not known:
                raise UserError(f"the training tokens of {self.label} are not known. Choose a step: {self.steps}.")
            step = min(known, key=lambda kept: abs(known[kept] - tokens))
        if isinstance(step, bool) or not isinstance(step, Real) or step not in self.steps:
            kept = ", ".join(map(str, self.steps))
            raise UserError(f"no weights were kept at step {step!r:.100}. Choose one of {kept}.")
        return StudyModel(self.label, self.model_id, self.study, self._training, self._folder, int(step))

    @property
    def tokens_seen(self) -> int | None:
        """Number of tokens that it was trained on up to here; None if that isn't known.

        >>> model.tokens_seen
        """
        return tokens_at(self._training)[self.step]

    def explore(self, show: bool = True) -> "ExplorerPage":
        """Open the study's explorer at this model, in a browser; with `show=False`, only say where it is.

        >>> model.explore(show=False)

        Raises:
            WorkError: the page can't be written.
        """
        from headstream.opened_explorer import opened_page

        return opened_page(self.study, self.model_id, show)

    def _which(self) -> str:
        after = "" if self.tokens_seen is None else f" after {short_count(self.tokens_seen)} tokens"
        return f" ({self.model_id}){after}, step {self.step} of {self.steps[-1]}"
