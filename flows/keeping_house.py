"""Showing what is wrong and what is unneeded in the store."""

from rich.console import Console
from rich.table import Table

from tasks import places
from tasks.housekeeping import check_all, require_sound, stored_bytes, unneeded
from tasks.store import Store


def print_check() -> None:
    """Print every finding.

    Raises:
        WorkError: something does not hold.
    """
    table = Table("checked", "", "seen", box=None, header_style="bold")
    findings = list(check_all(Store(places.store_folder()), places.warehouse_file()))
    for finding in findings:
        table.add_row(finding.what, "[green]ok[/]" if finding.holds else "[red]wrong[/]", finding.seen)
    Console().print(table)
    require_sound(findings)


def remove_unneeded(days: float, dry_run: bool) -> None:
    """Remove what no study needs, and say what went."""
    store = Store(places.store_folder())
    removed = []
    for artifact in unneeded(store, days):
        if not dry_run and store.days_unused(artifact) >= days:  # a run may have begun to use it meanwhile
            store.remove(artifact)
        removed.append(artifact)
    for artifact in removed:
        manifest = artifact.manifest
        print(f"{manifest.stage}/{manifest.key} of {manifest.created[:16]}, {stored_bytes(artifact) / 1e6:,.1f} MB")
    size = sum(map(stored_bytes, removed)) / 1e6
    print(f"{len(removed)} artifacts, {size:,.0f} MB, {'would be' if dry_run else 'were'} removed.")
