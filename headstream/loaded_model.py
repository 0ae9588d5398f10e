"""A model from elsewhere, opened at once: without a study, and without a text to measure it on."""

import os

from headstream.arguments import text_of, whole_number
from headstream.model_on_text import Model
from headstream.tasks.errors import UserError
from headstream.tasks.importing.loading import load_foreign, model_path


def load(
    source: str | os.PathLike[str],
    *,
    n_ctx: int | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    bos: str | None = None,
) -> Model:
    """Open a model from elsewhere: a file or folder in any format that `headstream inspect` reads, or a package.

    `n_ctx` is the most tokens that it will read (default: all that it can, up to 2048); `tokenizer` and `bos` are for
    models whose files don't say them, as in a study's [[models]]. To have it measured, name it in a study.

    >>> model = hs.load("exported/2L4H")
    >>> model.attention("def colour(self): return self.colour")

    Raises:
        UserError: there is no such model, it has no tokenizer, or it can't be read.
    """
    name = text_of(source, "a model")
    path = model_path(name)
    if path is None:
        raise UserError(f"a model must be a file, a folder or an installed package, got {name!r:.200}. Correct it.")
    n_ctx = None if n_ctx is None else whole_number(n_ctx, "n_ctx", 2)
    own_tokenizer = None if tokenizer is None else text_of(tokenizer, "a tokenizer")
    return Model(path.name, *load_foreign(path, n_ctx, own_tokenizer, None if bos is None else text_of(bos, "bos")))
