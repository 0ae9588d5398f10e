"""The command `headstream diff`: what differs between two studies."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tasks import places
from tasks.plain_text import terminal_safe
from tasks.report.comparison import by_chance, claim_changes, config_changes, metric_changes, summarise
from tasks.results.study_results import open_results


def print_changes(first: str, second: str) -> None:
    """Print what differs between two studies in the warehouse.

    Raises:
        UserError: one of them has not run.
    """
    with open_results(places.warehouse_file(), first) as results:
        before = summarise(results)
    with open_results(places.warehouse_file(), second) as results:
        after = summarise(results)
    console = Console()
    for title, changes in (
        ("settings and text", config_changes(before, after)),
        ("claims", claim_changes(before, after)),
        ("metrics of the same kinds of models", metric_changes(before, after)),
    ):
        if not changes:
            console.print(f"{title}: nothing differs.")
            continue
        table = Table(title, first, second, "", box=None, header_style="bold")
        for change in changes:
            table.add_row(change.what, _cell(change.before), _cell(change.after), change.note)
        console.print(table)
    console.print(by_chance(before, after))


def _cell(value: object) -> Text:
    return Text("-" if value is None else terminal_safe(str(value)))  # a path may hold what rich would take for markup
