"""A study from corpus to report: the table of contents of Headstream."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import flow

from flows.study_schema import Study
from tasks import steps
from tasks.cell import Cell


@flow(name="study", flow_run_name="{study.name}")
def run_study(study: Study) -> Path:
    """Make whatever the study still lacks, and return where its report is.

    Raises:
        WorkError: a model failed; the others, and the report, are there all the same.
    """
    started_at = datetime.now(UTC)
    steps.prepare()
    text = steps.read_corpus(study.corpus)
    tokens = steps.tokenise(study.tokenizer, text)

    cells = sorted(study.cells, key=steps.training_work, reverse=True)  # the longest first: none is left to the end
    models: dict[Cell, Any] = {cell: steps.train.submit(cell, tokens) for cell in cells}
    analyses = {
        cell: [steps.analyse.submit(stage, study.analysis, models[cell], tokens) for stage in steps.ANALYSES]
        for cell in cells
    }

    outcomes = [steps.outcome(cell, tokens, models[cell], analyses[cell]) for cell in study.cells]
    config = study.model_dump(mode="json", exclude_none=True)
    record = steps.record_study(study.name, study.question, config, outcomes, [text, tokens], started_at)
    steps.index_results()
    report = steps.write_report(record)
    steps.require_success(outcomes, report)
    return report
