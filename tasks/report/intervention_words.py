"""What is said in a report's answer of interventions in training: with which ones an induction head fails to form."""

from typing import Any

from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.markdown import short_count

InterventionRow = dict[str, Any]  # of the query `interventions`


def intervention_lines(results: StudyResults) -> list[str]:
    """One line on what kept induction heads from forming, sped it up or made another model do it; none without any."""
    rows = results.rows("interventions")
    told = [*_kept_from_forming(rows), *_later_or_sooner(rows), *_made_to_do_it(rows)]
    if told:
        return [f"Interventions in training, each beside the same seeds without: {'; '.join(told)}."]
    return ["No intervention in training can be told to have mattered, over these seeds."] if rows else []


def in_short_counts(what: str) -> str:
    """An intervention with its numbers of tokens as people say them, like `until 2.5 M`."""
    words = what.split()
    return " ".join(short_count(float(word)) if word.isdecimal() else word for word in words)


def delay_with_interval(row: InterventionRow) -> str:
    """The tokens to form as a multiple of the base's, with its interval over seeds: `0.37 (0.098 to 1.4)`."""
    within = ""
    if row["delay_ci95"] is not None:
        low, high = (2 ** (row["delay"] + sign * row["delay_ci95"]) for sign in (-1, 1))
        within = f" ({low:.2g} to {high:.2g})"
    return f"{2 ** row['delay']:.2g}{within}"


def all_formed(row: InterventionRow) -> bool:
    """Whether each model whose base has formed an induction head after the intervention began has one, too."""
    n_formed, _, n_models = row["formed"].partition(" of ")
    return n_formed == n_models


def _kept_from_forming(rows: list[InterventionRow]) -> list[str]:
    fewer = [row for row in rows if row["formed"] is not None and not all_formed(row)]
    none = [_counted(row) for row in fewer if row["formed"].startswith("0 of ")]
    some = [_counted(row) for row in fewer if not row["formed"].startswith("0 of ")]
    told = [f"no induction head formed with {', '.join(none)}"] if none else []
    return [*told, f"only in some models with {', '.join(some)}"] if some else told


def _counted(row: InterventionRow) -> str:
    return f"{in_short_counts(row['what'])} ({row['formed']})"


def _later_or_sooner(rows: list[InterventionRow]) -> list[str]:
    """Those with which all form, in a number of tokens that the interval tells from the base's."""
    told = [
        row
        for row in rows
        if row["delay_ci95"] is not None and all_formed(row) and abs(row["delay"]) > row["delay_ci95"]
    ]
    return [f"{in_short_counts(row['what'])} took {delay_with_interval(row)} times the tokens" for row in told]


def _made_to_do_it(rows: list[InterventionRow]) -> list[str]:
    """Those whose base has no induction head, where the interval tells their best score from the base's."""
    told = [
        row
        for row in rows
        if row["formed"] is None
        and row["induction_difference_ci95"] is not None
        and row["induction_difference"] > row["induction_difference_ci95"]
    ]
    return [
        f"with {in_short_counts(row['what'])} the best head of {row['of']} has an induction_random_period of"
        f" {row['induction']:.2f} instead of {row['induction'] - row['induction_difference']:.2f}"
        for row in told
    ]
