"""The commands `headstream check` and `headstream gc`: find faults in the store, and remove what no study needs."""

from contextlib import nullcontext

from rich.console import Console
from rich.table import Table

from headstream.tasks import places
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.studies.housekeeping import check_all, find_unneeded, require_all_passed


def print_check() -> None:
    """Check everything stored, and print each finding.

    Raises:
        WorkError: something is wrong.
    """
    table = Table("checked", "", "found", box=None, header_style="bold")
    checks = list(check_all(open_store(), places.warehouse_file()))
    for check in checks:
        table.add_row(check.subject, "[green]ok[/]" if check.passed else "[red]wrong[/]", check.finding)
    Console().print(table)
    require_all_passed(checks)


def remove_unneeded(days: float, dry_run: bool) -> None:
    """Remove artifacts that no study needs, and print each.

    Raises:
        WorkError: a run is in progress, and might need any of them.
    """
    store = open_store()
    with nullcontext() if dry_run else store.exclusive_lock():
        found = find_unneeded(store, days)
        for what, folder, size in found:
            print(f"{what}, {size / 1e6:,.1f} MB")
            if not dry_run:
                store.remove(folder)
    megabytes = sum(size for *_, size in found) / 1e6
    print(f"{len(found)} artifacts, {megabytes:,.0f} MB, {'would be' if dry_run else 'were'} removed.")
