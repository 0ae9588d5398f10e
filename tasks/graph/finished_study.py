"""A study of which nothing is missing: found in the store by what it is made of, without Prefect."""

from collections.abc import Sequence
from pathlib import Path

from headstream.tasks import places
from headstream.tasks.graph.artifact_specs import (
    analysis_spec,
    corpus_spec,
    costs_spec,
    given_tokens_spec,
    model_spec,
    record_spec,
    report_spec,
    tokens_spec,
)
from headstream.tasks.graph.making import open_store
from headstream.tasks.importing.imported_cell import ImportedCell, ModelCell, read_imported
from headstream.tasks.report.publishing import previous_summary, publish_report
from headstream.tasks.results.study_record import ModelOutcome
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.storage.store import Store
from headstream.tasks.study.schema import Study
from headstream.tasks.watching.run_snapshots import forget_run


def found_finished(study: Study) -> list[str] | None:
    """What `told` says of a study of which nothing is missing, its report published again; None if something is."""
    with open_store().shared_lock():
        if (report := finished_report(study)) is None:
            return None
        build_warehouse(open_store(), places.warehouse_file())
        forget_run(study.name)
        return told(report.manifest.facts["answer"], publish_report(report, places.report_folder(study.name)))


def told(answer: Sequence[str], report: Path) -> list[str]:
    """A study's answer and the path of its report, line by line."""
    return [*(f"- {line}" for line in answer), f"Report: {report}"]


def finished_report(study: Study) -> Artifact | None:
    """The report of a study's last run, if a run would make nothing; else None."""
    store = open_store()
    corpus = store.find(corpus_spec(study.corpus))
    if corpus is None:
        return None
    shared: list[Artifact | None] = [corpus]
    if study.trains:
        shared.append(store.find(tokens_spec(study.tokenizer, corpus)))
    if study.measures_costs:
        shared.append(store.find(costs_spec(study.costs, study.name)))
    found = [artifact for artifact in shared if artifact]
    if len(found) < len(shared):
        return None
    outcomes = []
    cells: list[ModelCell] = [*study.cells, *read_imported(study.models)]
    for cell in cells:
        own = store.find(given_tokens_spec(cell, corpus)) if isinstance(cell, ImportedCell) else None
        tokens = own if isinstance(cell, ImportedCell) else found[1]
        if tokens is None or (made := _made_of(cell, study, tokens, store)) is None:
            return None
        artifacts = [own, *made] if own else made
        outcomes.append(ModelOutcome(cell.label, made[0].manifest.facts["model_id"], artifacts))
    record = store.find(record_spec(study.recorded, outcomes, found, latest_record(store, study.name)))
    return store.find(report_spec(record, previous_summary(store, record))) if record else None


def _made_of(cell: ModelCell, study: Study, tokens: Artifact, store: Store) -> list[Artifact] | None:
    """The artifacts of a cell's model, what made it first; None if one is missing."""
    model = store.find(model_spec(cell, tokens))
    if model is None:
        return None
    stages = study.analysis.stages
    measured = [store.find(analysis_spec(stage, study.analysis, model, tokens)) for stage in stages]
    return None if None in measured else [model, *filter(None, measured)]
