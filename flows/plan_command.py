"""The commands `headstream plan` and `headstream studies`: what a study would run and could decide."""

import os
from collections import defaultdict
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tasks.planning import PlannedArtifact, plan_artifacts, plan_claims, seconds_left, training_warning
from tasks.study.schema import Study, parse_study
from tasks.study.sources import read_study_file, shipped_studies


def print_plan(study: Study) -> None:
    """Print the state of each artifact and why, the time and disk still needed, and the claims that can be decided."""
    planned, lacking = plan_artifacts(study), plan_claims(study)
    table = Table("stage", "of", "state", "why", box=None, header_style="bold")
    for each in planned:
        state = "[green]done[/]" if each.done else "[yellow]to run[/]"
        table.add_row(each.stage, each.subject, state, each.why)
    console = Console()
    console.print(table)
    for cell in study.cells:
        if len(cell.places) > 1:
            same = f"{len(cell.places)} places of the grid are one model, {cell.label}, and count once: "
            console.print(Text(same + "; ".join(cell.places) + "."))
    console.print(_what_is_left(planned))
    console.print()
    _print_claims(console, lacking)
    if warning := training_warning(study):
        console.print(f"[yellow]{warning}[/]")


def _print_claims(console: Console, lacking: Mapping[str, str | None]) -> None:
    decided = [claim for claim, lacks in lacking.items() if lacks is None]
    console.print(f"It can decide {len(decided)} of {len(lacking)} claims: {', '.join(decided) or 'none'}.")
    by_lack: dict[str, list[str]] = defaultdict(list)
    for claim, lacks in lacking.items():
        if lacks:
            by_lack[lacks].append(claim)
    if by_lack:
        table = Table("it lacks", "for", box=None, header_style="bold")
        for lacks, claims in by_lack.items():
            table.add_row(Text(lacks), ", ".join(claims))
        console.print(table)


def _what_is_left(planned: list[PlannedArtifact]) -> str:
    left = [each for each in planned if not each.done]
    if not left:
        return "Nothing to run: only the report is written, which takes seconds."
    cores = os.cpu_count() or 1
    minutes = seconds_left(left, cores) / 60
    megabytes = sum(each.bytes for each in left) / 1e6
    what = f"{len(left)} of {len(planned)} to run"
    return f"{what}: about {minutes:.1f} min on {cores} cores, {megabytes:.0f} MB of disk."


def print_studies() -> None:
    """Print the studies that ship, each with its size, state and question."""
    table = Table("study", "models", "state", "asks", box=None, header_style="bold")
    for name in shipped_studies():
        study = parse_study(*read_study_file(name))
        models = [each for each in plan_artifacts(study) if each.stage == "training"]
        done = sum(each.done for each in models)
        state = "done" if done == len(models) else f"{done} of {len(models)} trained" if done else "not run"
        table.add_row(name, str(len(models)), state, study.question)
    Console().print(table)
