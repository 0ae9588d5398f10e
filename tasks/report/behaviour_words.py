"""What is said in a report's answer of behaviours that a study asked for by pairs of prompts."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstream.tasks.report.model_choice import labels_best_first
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed

MAX_BEHAVIOURS = 2  # in the answer


def behaviour_lines(results: StudyResults) -> list[str]:
    """A line for each of the prompt sets whose circuits are the closest, of the best kind of model that can do it.

    Where more sets were asked for, a line before says which can be done. If no model can do any, a line says so.
    """
    asked = results.rows("behaviours")
    rows = [row for row in asked if row["can_do_it"] == "yes"]
    if asked and not rows:
        return [_none_shown(asked)]
    order = labels_best_first(results, {row["model"] for row in rows})
    best = {row["prompts"]: row for row in sorted(rows, key=lambda row: -order.index(row["model"]))}
    told = sorted(best.values(), key=lambda row: (row["cmd"], row["prompts"]))
    how = [
        f"How {row['model']} does {row['prompts']} (right in {row['accuracy']:.2f} of {row['pairs']} pairs of prompts):"
        f" {row['edges_for_nine_tenths']} edges make {row['these_make']:.2f} of the difference, on pairs that they were"
        f" not found on; {row['edges_surely_in']} {'is' if row['edges_surely_in'] == 1 else 'are'} surely in."
        for row in told[:MAX_BEHAVIOURS]
    ]
    n_asked = len({row["prompts"] for row in asked})
    return [_all_shown(told, n_asked), *how] if n_asked > MAX_BEHAVIOURS else how


def _all_shown(told: Sequence[Mapping[str, Any]], n_asked: int) -> str:
    """Which prompt sets are done by some model, and how close circuits come, the closest first."""
    names = listed([row["prompts"] for row in told])
    cmd, random = ([row[name] for row in told if row[name] is not None] for name in ("cmd", "cmd_of_random"))
    words = f"Of {n_asked} behaviours that were asked for, {len(told)} can be done: {names}."
    if not cmd:
        return words
    beside = f", that of random ones {min(random):.3f} to {max(random):.3f}" if random else ""
    return f"{words} CMD of their circuits is {min(cmd):.3f} to {max(cmd):.3f}{beside}."


def _none_shown(asked: Sequence[Mapping[str, Any]]) -> str:
    """That no model is shown to do what a prompt set asks; how often each is right, of a few."""
    told = [
        f"{row['model']} is right in {row['accuracy']:.2f} of {row['pairs']} pairs of {row['prompts']}"
        if row["accuracy"] is not None
        else f"{row['prompts']} was not measured on {row['model']}"
        for row in asked[:MAX_BEHAVIOURS]
    ]
    more = f", and {len(asked) - MAX_BEHAVIOURS} more like these" if len(asked) > MAX_BEHAVIOURS else ""
    return (
        f"No behaviour that was asked for is shown, so that no circuit was looked for: {', '.join(told)}{more}. It is"
        " shown if, by 95 % intervals, more than half of the pairs are right and answers are preferred more at their"
        " own prompt than at the other. More pairs, or more templates, narrow the intervals."
    )
