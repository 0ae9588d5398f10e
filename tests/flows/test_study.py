"""A small study from end to end, and what running it again does."""

import re

import cloudpickle
import duckdb
import pytest
from small_study import BEHAVIOUR, small_study
from test_deployments import prefect_artifact

from headstream.flows.deployments import publish_results
from headstream.flows.study import run_study
from headstream.tasks import places
from headstream.tasks.errors import WorkError
from headstream.tasks.graph.finished_study import finished_report, finished_result_lines
from headstream.tasks.steps.report_steps import index_results
from headstream.tasks.storage import store
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.study.analyses import ANALYSES

pytestmark = pytest.mark.usefixtures("prefect_server", "home")


def made() -> dict[str, str]:
    """When each artifact of the store was made."""
    return {f"{a.manifest.stage}/{a.manifest.key}": a.manifest.created for a in open_store().artifacts()}


def rows(query: str) -> list[tuple]:
    with duckdb.connect(str(places.warehouse_file()), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_a_study_and_its_flow_can_be_sent_to_another_machine():
    sent, flow = cloudpickle.loads(cloudpickle.dumps((small_study(), run_study)))
    assert sent == small_study()
    assert flow.name == run_study.name


def test_a_study_makes_models_tables_and_a_report():
    report = run_study(small_study())
    assert report == places.report_folder("tiny") / "report.md"
    assert "Does it run?" in report.read_text()
    assert rows("select study, n_models, n_failed from studies") == [("tiny", 2, 0)]
    assert rows("select n_layers from models order by 1") == [(0,), (1,)]
    assert rows("select count(*) > 0 from heads where layer = 0") == [(True,)]
    assert rows("select count(distinct step) from evaluations") == [(3,)]


def test_a_second_run_makes_nothing():
    before = made()
    run_study(small_study())
    assert made() == before


def test_what_is_finished_is_known_without_a_run():
    published = places.report_folder("tiny") / "report.md"
    written = published.read_text()
    published.unlink()
    answer = finished_report(small_study()).manifest.facts["answer"]
    assert finished_result_lines(small_study()) == [*(f"- {line}" for line in answer), f"Report: {published}"]
    assert published.read_text() == written
    assert finished_report(small_study(question="Another?")) is None
    assert finished_report(small_study(grid={"n_layers": [0, 1, 2]})) is None
    assert finished_report(small_study(tokenizer={"vocabulary": 271})) is None


def test_another_cell_trains_alone():
    before = made()
    run_study(small_study(grid={"n_layers": [0, 1, 2]}))
    new = sorted(key.split("/")[0] for key in set(made()) - set(before))
    assert new == sorted(["training", *({*ANALYSES} - {"set-free"}), "study", "report"])
    assert rows("select n_models from studies") == [(3,)]


def test_a_corrupt_checkpoint_is_trained_again():
    record = latest_record(open_store(), "tiny")
    assert record is not None
    model = next(source for source in record.manifest.inputs.values() if source.stage == "training")
    artifact = open_store().open(model.stage, model.key)
    assert artifact is not None
    weights = artifact.folder / "checkpoints/0000000.safetensors"
    good = weights.read_bytes()
    weights.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    store._verified.cache_clear()  # a process checks an artifact once; the next run is another process
    run_study(small_study())
    assert weights.read_bytes() == good


def test_going_back_to_the_earlier_grid_shows_the_earlier_grid():
    assert rows("select n_models from studies") == [(2,)]
    assert rows("select count(*) from study_models") == [(2,)]


def test_the_index_built_again_has_the_same_rows():
    tables = [name for (name,) in rows("select table_name from duckdb_tables()")]
    before = {name: rows(f"select * from {name} order by all") for name in tables}
    places.warehouse_file().unlink()
    index_results.fn()
    assert {name: rows(f"select * from {name} order by all") for name in tables} == before


def test_a_failed_model_leaves_the_others_and_is_named_on_the_page():
    grid = {"n_layers": [1], "muon_learning_rate": [0.05, 1e6]}
    training = {"tokens": 40_000, "batch_size": 8, "learning_rate": 1e4}
    failing = small_study(name="failing", grid=grid, training=training, analysis=BEHAVIOUR)
    with pytest.raises(WorkError, match=r"2 of 2 models failed|1 of 2 models failed"):
        run_study(failing)
    assert rows("select n_failed > 0 from studies where study = 'failing'") == [(True,)]
    status = rows("select failure from study_models where study = 'failing' and status = 'failed'")
    assert "last good loss" in status[0][0]
    publish_results("failing", failure="models failed")
    assert re.search(r"\| n_layers=1 muon_learning_rate=\S+ \| .*last good loss", prefect_artifact("report-failing"))
