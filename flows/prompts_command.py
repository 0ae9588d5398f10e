"""The command `headstream prompts`: the prompt sets that ship, and what a model makes of one."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstream.model_on_text import Model
from headstream.opened_model import StudyModel
from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.prompts.shipped_prompts import SHIPPED, drawn_pairs
from headstream.tasks.results.stored_models import named_model, stored_folders
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.words.plain_text import terminal_safe

SHOWN_PAIRS = 3


def print_prompt_sets() -> None:
    """Print the sets that ship, each with one of its pairs."""
    for name, own in SHIPPED.items():
        print(f"{name}: {own.about}")
        for pair in drawn_pairs(name, 0)[:1]:
            print(f"    {pair.prompt!r} -> {_shortened(pair.answers)}, not {_shortened(pair.wrong)}")
            print(f"    {pair.corrupt!r}, corrupt")


def print_asked(prompts: str, model: str, study: str | None, pairs: int) -> None:
    """Print what a model makes of a prompt set: pairs kept and dropped, accuracy, log-odds.

    Raises:
        UserError: there is no such set, file or model.
    """
    opened, title = _opened(model, study)
    asked = opened.prompts(prompts, pairs)
    for line in f"{title}\n{asked}".splitlines():
        print(terminal_safe(line))
    table = Table("prompt", "corrupt", "answer", "log-odds", "corrupt", box=None, header_style="bold")
    kept = asked.pairs[asked.pairs.clean_nats.notna()] if "clean_nats" in asked.pairs else asked.pairs[:0]
    for row in kept.head(SHOWN_PAIRS).itertuples():
        texts = (row.prompt, row.corrupt, _shortened(row.answers))
        table.add_row(*map(Text, map(terminal_safe, texts)), f"{row.clean_nats:.2f}", f"{row.corrupt_nats:.2f}")
    if len(kept):
        Console().print(table)
    if "why_dropped" in asked.pairs:
        for reason, n in asked.pairs.why_dropped.dropna().value_counts().items():
            print(terminal_safe(f"dropped {n}: {reason}"))


def _opened(model: str, study: str | None) -> tuple[Model, str]:
    """A model of a study or, by its path or its package, one from elsewhere; and what it is called."""
    from headstream.loaded_model import load, model_path

    store = open_store()
    build_warehouse(store, places.warehouse_file())
    try:
        named = named_model(places.warehouse_file(), model, study)
    except UserError:
        if study or model_path(model) is None:
            raise
        return load(model), model
    folders = stored_folders(store, named.model_id, named.study)
    return StudyModel(named.label, named.model_id, named.study, *folders), str(named)


def _shortened(answers: tuple[str, ...] | list[str]) -> str:
    """Answers as a reader needs them: the first few."""
    few = " or ".join(map(repr, answers[:3]))
    return few if len(answers) <= 3 else f"{few} or {len(answers) - 3} others"
