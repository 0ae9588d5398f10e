"""The command `headstream diff`: prints the differences between two studies."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstream.tasks import places
from headstream.tasks.report.comparison import (
    by_chance,
    claim_changes,
    config_changes,
    metric_changes,
    n_compared,
    not_compared,
    summarise,
)
from headstream.tasks.results.study_results import open_results
from headstream.tasks.words.plain_text import terminal_safe


def print_changes(first: str, second: str) -> None:
    """Print the differences between two studies in the warehouse, and what can't be compared.

    Raises:
        UserError: one of them has not run.
    """
    with open_results(places.warehouse_file(), first) as results:
        before = summarise(results)
    with open_results(places.warehouse_file(), second) as results:
        after = summarise(results)
    console = Console()
    n_metrics = n_compared(before, after)
    for title, changes, nothing in (
        ("settings and text", config_changes(before, after), "nothing differs"),
        ("claims", claim_changes(before, after), "nothing differs"),
        (
            "metrics of the same kinds of models",
            metric_changes(before, after),
            f"nothing differs in {n_metrics} compared" if n_metrics else "none can be compared",
        ),
    ):
        if not changes:
            console.print(f"{title}: {nothing}.", highlight=False)
            continue
        table = Table(title, first, second, "", box=None, header_style="bold")
        for change in changes:
            table.add_row(change.what, _cell(change.before), _cell(change.after), change.note)
        console.print(table)
    for line in filter(None, (*not_compared(before, after, first, second), by_chance(before, after))):
        console.print(Text(line))


def _cell(value: object) -> Text:
    return Text("-" if value is None else terminal_safe(str(value)))  # Text, since rich could take a path for markup
