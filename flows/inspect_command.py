"""The command `headstream inspect`: what a model from elsewhere is, or why it can't be read."""

from pathlib import Path

from headstream.tasks.importing.description import described_model
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.words.plain_text import terminal_safe


def print_description(path: Path) -> None:
    """Print what a model is, by its header; its weights are not read.

    Raises:
        UserError: there is none, or one that Headstream can't hold.
    """
    lines = list(described_model(open_foreign(path)))
    width = max(len(name) for name, _ in lines)
    for name, said in lines:
        print(f"{name:<{width}}  {terminal_safe(said)}")
