"""A study of which nothing is missing: found in the store by what it is made of, without Prefect."""

from collections.abc import Sequence
from pathlib import Path

from tasks import places
from tasks.artifact_specs import (
    analysis_spec,
    corpus_spec,
    costs_spec,
    record_spec,
    report_spec,
    tokens_spec,
    training_spec,
)
from tasks.making import open_store
from tasks.report.publishing import previous_summary, publish_report
from tasks.results.study_record import ModelOutcome
from tasks.results.warehouse import build_warehouse
from tasks.storage.artifact import Artifact
from tasks.storage.latest_records import latest_record
from tasks.storage.store import Store
from tasks.study.cells import Cell
from tasks.study.schema import Study


def found_finished(study: Study) -> list[str] | None:
    """What `told` says of a study of which nothing is missing, its report published again; None if something is."""
    with open_store().in_use():
        if (report := finished_report(study)) is None:
            return None
        build_warehouse(open_store(), places.warehouse_file())
        return told(report.manifest.facts["answer"], publish_report(report, places.report_folder(study.name)))


def told(answer: Sequence[str], report: Path) -> list[str]:
    """A study's answer and the path of its report, line by line."""
    return [*(f"- {line}" for line in answer), f"Report: {report}"]


def finished_report(study: Study) -> Artifact | None:
    """The report of a study's last run, if a run would make nothing; else None."""
    store = open_store()
    corpus = store.find(corpus_spec(study.corpus))
    tokens = store.find(tokens_spec(study.tokenizer, corpus)) if corpus else None
    costs = store.find(costs_spec(study.costs, study.name)) if study.measures_costs else None
    if corpus is None or tokens is None or (study.measures_costs and costs is None):
        return None
    outcomes = []
    for cell in study.cells:
        if (made := _made_of(cell, study, tokens, store)) is None:
            return None
        outcomes.append(ModelOutcome(cell.label, made[0].manifest.facts["model_id"], made))
    shared = [corpus, tokens, *([costs] if costs else [])]
    record = store.find(record_spec(study.recorded, outcomes, shared, latest_record(store, study.name)))
    return store.find(report_spec(record, previous_summary(store, record))) if record else None


def _made_of(cell: Cell, study: Study, tokens: Artifact, store: Store) -> list[Artifact] | None:
    """The artifacts of a cell's model, its training first; None if one is missing."""
    training = store.find(training_spec(cell, tokens))
    if training is None:
        return None
    stages = study.analysis.stages
    measured = [store.find(analysis_spec(stage, study.analysis, training, tokens)) for stage in stages]
    return None if None in measured else [training, *filter(None, measured)]
