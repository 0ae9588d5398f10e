"""The command `headstream plan`: what a study would run and could decide."""

import os
from collections import defaultdict
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstream.models.architecture import Architecture
from headstream.tasks.graph.looks import at_its_look, at_the_last_look
from headstream.tasks.graph.planned_claims import plan_claims, training_warnings
from headstream.tasks.graph.planning import PlannedArtifact, plan_artifacts, seconds_left
from headstream.tasks.studies.own_names import conflicting_study
from headstream.tasks.study.schema import Study
from headstream.tasks.study.sources import StudyFile

MAX_MINUTES = 120  # longer times are told in hours


def print_plan(study: Study, file: StudyFile, every_line: bool) -> None:
    """Print the state of each artifact and why, the time and disk still needed, and the claims that can be decided.

    Artifacts of a stage that are in one state share a line, and of claims that can't be decided there is the number,
    unless every line is asked for.
    """
    study = at_its_look(study)
    planned, lacking = plan_artifacts(study), plan_claims(at_the_last_look(study))
    console = Console()
    if all(each.done for each in planned):
        console.print("Nothing to run: only the report is written, which takes seconds.\n")
    repeated = [cell for cell in study.cells if len(cell.places) > 1]
    console.print(_line_by_line(planned) if every_line else _summed_up(planned))
    for cell in repeated if every_line else repeated[:1]:
        same = f"{len(cell.places)} places of the grid are one model, {cell.label}, and count once: "
        console.print(Text(same + "; ".join(cell.places) + "."))
    if repeated[1:] and not every_line:
        console.print(f"So are {len(repeated) - 1} more: `--all` lists them.")
    if left := [each for each in planned if not each.done]:
        console.print(_what_is_left(left, len(planned)))
    if study.until_decided:
        console.print(_what_more_seeds_take(study))
    if where := conflicting_study(study, file):
        console.print(f"[yellow]`run` needs `--replace`: another study named {study.name}[/]", Text(f"{where}."))
    console.print()
    _print_claims(console, lacking, trains=bool(study.cells), every_line=every_line)
    for warning in training_warnings(study):
        console.print(f"[yellow]{warning}[/]")


def print_export_formats(study: Study) -> None:
    """Print which formats each kind of model fits as it will be trained; models that fit alike share a line."""
    from headstream.tasks.importing.export_formats import fit_of
    from headstream.tasks.importing.model_export import FORMATS

    kinds: dict[Architecture, str] = {}
    for cell in study.cells:
        kinds.setdefault(cell.architecture, cell.label)
    console = Console(soft_wrap=True)
    console.print("\nIts models can be exported --to headstream, and from there opened by `headstream` alone; besides")
    for format in FORMATS:
        by_fit: dict[str, list[str]] = defaultdict(list)
        for architecture, label in kinds.items():
            by_fit[fit_of(format, architecture)].append(label)
        console.print(f"[bold]--to {format}[/]")
        for fit, labels in by_fit.items():
            more = f" and {len(labels) - 1} more like it" if len(labels) > 1 else ""
            console.print(Text(f"  {labels[0]}{more}: {fit}"))


def _line_by_line(planned: list[PlannedArtifact]) -> Table:
    table = Table("stage", "of", "state", "why", box=None, header_style="bold")
    for each in planned:
        table.add_row(each.stage, each.subject, _state(each.done), each.why)
    return table


def _summed_up(planned: list[PlannedArtifact]) -> Table:
    """How many artifacts of each stage are in which state and why; the name of a single one."""
    table = Table("stage", "of", "state", "why", box=None, header_style="bold")
    groups: dict[tuple[str, bool, str], list[PlannedArtifact]] = defaultdict(list)
    for each in planned:
        groups[each.stage, each.done, "" if each.done else each.why].append(each)
    for (stage, done, _), alike in groups.items():
        first, last = min(each.why for each in alike), max(each.why for each in alike)
        span = first if first == last else f"{first} to {last.removeprefix('made ')}"
        table.add_row(stage, alike[0].subject if len(alike) == 1 else f"{len(alike)} models", _state(done), span)
    return table


def _state(done: bool) -> str:
    return "[green]done[/]" if done else "[yellow]to run[/]"


def _print_claims(console: Console, lacking: Mapping[str, str | None], *, trains: bool, every_line: bool) -> None:
    """Say which claims can be decided and what the others lack; of imported models alone, all lack the same."""
    decided = [claim for claim, lacks in lacking.items() if lacks is None]
    what = f"{len(decided)} of {len(lacking)} claims: {', '.join(decided)}" if decided else "no claim"
    console.print(f"It can decide {what}.")
    if not trains:
        which = "The others" if decided else "They all"
        console.print(f"{which} need other stages, or models that differ in seed or shape, which training makes.")
        return
    by_lack: dict[str, list[str]] = defaultdict(list)
    for claim, lacks in lacking.items():
        if lacks:
            by_lack[lacks].append(claim)
    if by_lack and not every_line:
        n = len(lacking) - len(decided)
        console.print(f"What it lacks for the other {n}, and a line for each artifact: `--all`.")
    elif by_lack:
        table = Table("it lacks", "for", box=None, header_style="bold")
        for lacks, claims in by_lack.items():
            table.add_row(Text(lacks), ", ".join(claims))
        console.print(table)


def _what_more_seeds_take(study: Study) -> str:
    """What comes after this look, at most: how many models, and how long they take."""
    last, n = at_the_last_look(study), len(study.kinds)
    kinds = "1 kind" if n == 1 else f"{n} kinds"
    cores = os.cpu_count() or 1
    seconds = seconds_left([each for each in plan_artifacts(last) if not each.done], cores)
    most = last.until_decided.at_most if last.until_decided else 0
    return (
        f"Seeds are added until claims are decided: {len(study.cells)} models ({kinds}) at least,"
        f" {len(last.cells)} ({most} seeds of each kind) at most, which takes about {_time(seconds)}."
    )


def _what_is_left(left: list[PlannedArtifact], n: int) -> str:
    cores = os.cpu_count() or 1
    megabytes = sum(each.bytes for each in left) / 1e6
    what = f"{len(left)} of {n} to run"
    by_stage: dict[str, float] = defaultdict(float)
    for each in left:
        by_stage[each.stage] += each.seconds
    longest = max(by_stage, key=by_stage.__getitem__)
    most = f"\nMost of the time goes to {longest}." if 2 * by_stage[longest] > sum(by_stage.values()) else ""
    largest = max(left, key=lambda each: each.memory_bytes)
    if largest.memory_bytes:
        most += f"\n{largest.stage} of {largest.subject} takes about {largest.memory_bytes / 1e9:.1f} GB of memory."
    return f"{what}: about {_time(seconds_left(left, cores))} on {cores} cores, {megabytes:,.0f} MB of disk.{most}"


def _time(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < MAX_MINUTES else f"{minutes / 60:,.0f} h"
