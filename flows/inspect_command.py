"""The command `headstream inspect`: describes a model from elsewhere, or says why it can't be read."""

from pathlib import Path

from headstream.tasks.importing.description import described_model
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.words.plain_text import terminal_safe


def print_description(path: Path) -> None:
    """Print a description of a model, if a study could import it: each of its weights is read, and none is kept.

    Raises:
        UserError: there is no model, one that Headstream can't represent, or one whose weights contradict its config.
    """
    model = open_foreign(path)
    model.check_weights()
    lines = list(described_model(model))
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        print(f"{name:<{width}}  {terminal_safe(text)}")
