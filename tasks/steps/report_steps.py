"""The steps that follow all models: the record of a study, the warehouse, and the report."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.graph.artifact_specs import record_spec, report_spec
from headstream.tasks.graph.materialising import materialise
from headstream.tasks.graph.step import Step
from headstream.tasks.machines.child_process import run_side_by_side
from headstream.tasks.progress import Event, publish
from headstream.tasks.report.answer import answer_lines
from headstream.tasks.report.explorer.model_files import EXPLORER, ModelFiles, files_of_models
from headstream.tasks.report.publishing import previous_summary, publish_report
from headstream.tasks.results.study_record import ModelOutcome, RecordedStudy
from headstream.tasks.results.study_results import open_results
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.steps.prefect_step import prefect_step
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.study.schema import Study
from headstream.tasks.study.stages import RECORD, REPORT


@prefect_step("record the study")
def record_study(
    study: Study, outcomes: Sequence[ModelOutcome], shared: Sequence[Artifact], started: float
) -> Artifact:
    """The study's own artifact: its config, its models and everything they are made of.

    `started` is when its run began, by time.monotonic().
    """
    spec = record_spec(study.recorded, outcomes, shared, latest_record(open_store(), study.name))
    arguments = {
        "study": RecordedStudy(study.name, study.question, study.recorded, study.written),
        "outcomes": outcomes,
        "started": started,
    }
    return materialise(Step(RECORD, study.name, lambda _: spec, lambda *_: arguments), {})


@prefect_step("index results")
def index_results() -> Path:
    """The warehouse, rebuilt when the store holds anything new."""
    publish(Event("warehouse", "index", 0.0))
    build_warehouse(open_store(), places.warehouse_file())
    publish(Event("warehouse", "index", 1.0))
    return places.warehouse_file()


@prefect_step("write the report")
def write_report(record: Artifact) -> Path:
    """The study's report, its figures and its explorer, published below reports/generated."""
    name, previous = record.manifest.facts["study"], previous_summary(open_store(), record)
    spec = report_spec(record, previous)
    arguments = {
        "warehouse": places.warehouse_file(),
        "study": name,
        "previous": previous,
        "models": files_of_models(open_store(), record),
        "make_parts": run_side_by_side,
    }
    report = materialise(Step(REPORT, name, lambda _: spec, lambda *_: arguments), {})
    return publish_report(report, places.report_folder(name))


def report_again(study: str) -> Path:
    """The report of what the store holds now, published again.

    Raises:
        UserError: the study has not run yet.
    """
    record = latest_record(open_store(), study)
    if record is None:
        raise UserError(f"a report needs a study that has run, got {study!r}. Run `headstream run {study}` first.")
    build_warehouse(open_store(), places.warehouse_file())
    return write_report.fn(record)


def explorer_again(study: str, text: Path | None = None) -> Path:
    """The explorer of what the store holds now; with a text, a copy of its own that shows that, too.

    Raises:
        UserError: the study has not run yet, or the text can't be read.
    """
    from headstream.tasks.report.explorer.explorer_contents import PageOptions, write_explorer  # imports torch
    from headstream.tasks.report.explorer.passages import named_text

    shown = named_text(text) if text else None  # before anything is made
    explorer, store = report_again(study).parent / EXPLORER, open_store()
    record = latest_record(store, study)
    if shown is None or record is None:
        return explorer
    copy = explorer.with_stem(f"{explorer.stem}-{re.sub('[^A-Za-z0-9_-]+', '-', Path(shown.name).stem)}")
    with open_results(places.warehouse_file(), study) as results:
        write_explorer(results, files_of_models(store, record), copy, answer_lines(results), PageOptions(shown))
    return copy


def served_explorer(study: str, text: Path | None) -> tuple[bytes, Mapping[str, ModelFiles]]:
    """An explorer whose server runs the models that a page can't, and the files of all models.

    Raises:
        UserError: the study has not run yet, or the text can't be read.
    """
    from headstream.tasks.report.explorer.explorer_contents import PageOptions, write_explorer  # imports torch
    from headstream.tasks.report.explorer.passages import named_text

    shown, store = named_text(text) if text else None, open_store()
    record = latest_record(store, study)
    if record is None:
        raise UserError(f"an explorer needs a study that has run, got {study!r}. Run `headstream run {study}` first.")
    build_warehouse(store, places.warehouse_file())
    files = files_of_models(store, record)
    with open_results(places.warehouse_file(), study) as results, TemporaryDirectory() as folder:
        page = Path(folder) / EXPLORER
        write_explorer(results, files, page, answer_lines(results), PageOptions(shown, served=True))
        return page.read_bytes(), files


def answer_of(study: str) -> list[str]:
    """The answer that opens the study's report; empty while it has none."""
    store = open_store()
    record = latest_record(store, study)
    report = store.find(report_spec(record, previous_summary(store, record))) if record else None
    return report.manifest.facts["answer"] if report else []
