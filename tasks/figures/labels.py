"""Which kinds of model a figure shows, and in which order."""

from pandas import DataFrame

from tasks.study_results import StudyResults


def labels_with_rows(results: StudyResults, rows: DataFrame) -> list[str]:
    """The kinds of model that have rows here, the best induction first."""
    present = set(rows.label)
    return [row["label"] for row in results.rows("answer") if row["label"] in present]
