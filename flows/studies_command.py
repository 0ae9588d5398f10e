"""The command `headstream studies`: what there is, and how far each is."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstream.tasks import places
from headstream.tasks.storage.store import Store
from headstream.tasks.studies.study_states import study_states
from headstream.tasks.words.plain_text import terminal_safe


def print_studies() -> None:
    """Print every study with its size, state, question and origin."""
    table = Table("study", "models", "state", "asks", "from", box=None, header_style="bold")
    for study in study_states(Store(places.store_folder())):
        n_models = "" if study.n_models is None else str(study.n_models)
        table.add_row(study.name, n_models, study.state, *(Text(terminal_safe(t)) for t in (study.asks, study.source)))
    Console().print(table)
