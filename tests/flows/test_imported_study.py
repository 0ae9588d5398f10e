"""Models from elsewhere go through a whole study, and give the numbers that they had where they were trained."""

import duckdb
import pytest
from small_study import ANALYSIS, BEHAVIOUR, small_study

from headstream.flows.plan_command import print_plan
from headstream.flows.study import run_study
from headstream.tasks import places
from headstream.tasks.errors import WorkError
from headstream.tasks.graph.finished_study import finished_report
from headstream.tasks.graph.planning import plan_artifacts
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.study.schema import parse_study
from headstream.tasks.study.sources import StudyFile

pytestmark = pytest.mark.usefixtures("prefect_server", "home")

TABLES = (
    "evaluations",
    "position_losses",
    "repeat_losses",
    "heads",
    "compositions",
    "eigenvalues",
    "importance",
    "probes",
)
STAGES = ["behaviour", "weight-circuits", "importance", "probes"]


@pytest.fixture(scope="module")
def trained(prefect_server, home):
    """The study of one model, and where its checkpoints and its tokenizer are."""
    model = {"n_layers": 2, "n_heads": 2, "d_model": 16, "n_ctx": 16}
    whole = small_study(grid={}, model=model, analysis=ANALYSIS | {"stages": STAGES})
    run_study(whole)
    (training,), (tokens,) = (list(open_store().artifacts(stage)) for stage in ("training", "tokens"))
    return whole, training.folder, tokens.folder


def rows(query: str) -> list[tuple]:
    with duckdb.connect(str(places.warehouse_file()), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_a_history_has_the_numbers_of_its_training(trained, capsys):
    whole, training, tokens = trained
    section = {
        "name": "again",
        "path": str(training / "checkpoints" / "*.safetensors"),
        "tokenizer": str(tokens / "tokenizer.json"),
        "bos": "<|bos|>",
        "untrained": True,  # 31 steps don't get it below the loss of token counts
    }
    content = whole.model_dump(exclude_unset=True, exclude={"grid", "model", "training", "tokenizer"})
    imported = parse_study("again.toml", content | {"name": "again", "models": [section]})
    report = run_study(imported)
    ids = dict(rows("SELECT coalesce(imported_as, 'trained'), model_id FROM models"))
    assert {*ids} == {"again", "trained"}
    for table in TABLES:
        there, here = (
            rows(f"SELECT * EXCLUDE (model_id) FROM {table} WHERE model_id = '{own}' ORDER BY ALL")
            for own in ids.values()
        )
        assert there == here != [], table
    certified = rows("SELECT step, checked, passed FROM certificates WHERE passed IS NOT NULL ORDER BY ALL")
    assert {passed for *_, passed in certified} == {True}
    assert {step for step, *_ in certified} == {0, 31}
    assert rows("SELECT detail FROM certificates WHERE checked = 'notes'") == [
        ("there is no tokenizer beside the weights",)
    ]
    assert "again" in report.read_text()
    assert finished_report(imported) is not None
    assert all(each.done for each in plan_artifacts(imported))
    capsys.readouterr()
    print_plan(imported, StudyFile("again.toml", ""), every_line=False)
    planned = " ".join(capsys.readouterr().out.split())
    assert "claims: " in planned
    assert planned.endswith("models that differ in seed or shape, which training makes.")


def test_a_model_that_predicts_nothing_is_not_measured(trained):
    whole, training, tokens = trained
    section = {
        "name": "untrained",
        "path": str(training / "checkpoints" / "0000000.safetensors"),
        "tokenizer": str(tokens / "tokenizer.json"),
        "bos": "<|bos|>",
    }
    content = whole.model_dump(exclude_unset=True, exclude={"grid", "model", "training", "tokenizer"})
    content |= {"name": "untrained", "analysis": BEHAVIOUR}
    with pytest.raises(WorkError, match=r"untrained: certificate: the loss on the corpus is .* no better"):
        run_study(parse_study("untrained.toml", content | {"models": [section]}))
    run_study(parse_study("untrained.toml", content | {"models": [section | {"untrained": True}]}))
    assert rows("SELECT count(*) > 0 FROM heads JOIN models USING (model_id) WHERE imported_as = 'untrained'") == [
        (True,)
    ]
