"""What is said in a report's answer of behaviours that a study asked for by pairs of prompts."""

from headstream.tasks.report.model_choice import labels_best_first
from headstream.tasks.results.study_results import StudyResults

MAX_BEHAVIOURS = 2  # in the answer


def behaviour_lines(results: StudyResults) -> list[str]:
    """A line for each of the prompt sets whose circuits are the smallest, of the best kind of model that can do it."""
    rows = [row for row in results.rows("behaviours") if row["can_do_it"] == "yes"]
    order = labels_best_first(results, {row["model"] for row in rows})
    best = {row["prompts"]: row for row in sorted(rows, key=lambda row: -order.index(row["model"]))}
    told = sorted(best.values(), key=lambda row: (row["cmd"], row["prompts"]))[:MAX_BEHAVIOURS]
    return [
        f"How {row['model']} does {row['prompts']} (right in {row['accuracy']:.2f} of {row['pairs']} pairs of prompts):"
        f" {row['edges_for_nine_tenths']} edges make {row['these_make']:.2f} of the difference, on pairs that they were"
        f" not found on; {row['edges_surely_in']} are surely in."
        for row in told
    ]
