"""A study from corpus to report: the table of contents of Headstream."""

from datetime import UTC, datetime
from pathlib import Path

from prefect import flow

from flows.study_schema import Study
from tasks import steps


@flow(name="study", flow_run_name="{study.name}")
def run_study(study: Study) -> Path:
    """Make whatever the study still lacks, and return where its report is.

    Raises:
        WorkError: a model failed; the others, and the report, are there all the same.
    """
    started_at = datetime.now(UTC)
    text = steps.read_corpus(study.corpus)
    tokens = steps.tokenise(study.tokenizer, text)

    cells = sorted(study.cells, key=steps.training_work, reverse=True)  # the longest first, so that none is left alone
    models = {cell.label: steps.train.submit(cell, tokens) for cell in cells}
    behaviours = {label: steps.measure_behaviour.submit(study.analysis, model, tokens) for label, model in models.items()}

    outcomes = [
        steps.outcome(cell, tokens, training=models[cell.label], behaviour=behaviours[cell.label]) for cell in study.cells
    ]
    record = steps.record_study(study.name, study.question, study.model_dump(mode="json"), outcomes, [text, tokens], started_at)
    steps.index_results()
    report = steps.write_report(record)
    steps.require_success(outcomes, report)
    return report
