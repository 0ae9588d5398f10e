"""Reports as Prefect artifacts, and which runs of a study request one."""

import base64
import json
import re
from types import SimpleNamespace

import pytest
from markdown_it import MarkdownIt
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.states import Completed, Failed
from small_study import BEHAVIOUR, small_study
from tiny import tiny_text

from headstream.flows import deployments
from headstream.flows.deployments import nightly_study, publish_results, request_report
from headstream.flows.study import run_study
from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.report.comparison import summarise
from headstream.tasks.results.study_results import open_results
from headstream.tasks.study.schema import parse_study

pytestmark = pytest.mark.usefixtures("prefect_server", "home")


def small(**changes):
    return small_study(**{"name": "a_study", "grid": {"n_layers": [1]}, "analysis": BEHAVIOUR} | changes)


def prefect_artifact(key: str):
    """What the newest artifact of a key holds; None if there is none."""
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])))
    return max(found, key=lambda artifact: artifact.created).data if found else None


def test_a_run_is_published_as_one_page():
    run_study(small())
    publish_results("a_study")
    page = prefect_artifact("report--1--a-study")
    opening, *rest = page.split("\n\n")
    assert opening == "# a_study"
    assert rest[0] == "> Does it run?"
    assert rest[1].startswith("- ")
    images = [part for part in rest if part.startswith("![")]
    assert [image.partition("]")[0] for image in images] == ["![context over training", "![learning curves"]
    drawn = base64.b64decode(images[0].partition("base64,")[2].removesuffix(")"))
    assert drawn == (places.report_folder("a_study") / "figures" / "context_over_training.svg").read_bytes()
    assert len(page) < 300_000
    assert "No earlier run had other results." in page
    assert page.endswith(f"[The whole report]({places.report_folder('a_study').as_uri()}/report.md)")


def test_the_next_page_says_which_claims_have_changed(monkeypatch):
    monkeypatch.setenv("HEADSTREAM_REPORTS_URL", "https://reports.example/")
    run_study(small(model={"d_model": 24, "n_heads": 2, "n_ctx": 16}))
    publish_results("a_study")
    page = prefect_artifact("report--1--a-study")
    assert page.endswith("[The whole report](https://reports.example/a_study/report.md)")
    assert re.search(r"since the run of \S+ UTC[.:] \d+ settings or metrics differ, too: see the report", page)
    with open_results(places.warehouse_file(), "a_study") as results:
        before = json.loads(json.dumps(vars(summarise(results))))
    before["verdicts"]["heads-prunable"] = "holds"
    monkeypatch.setattr(deployments, "previous_summary", lambda *_: before)
    publish_results("a_study")
    assert "| claim | then | now |\n| --- | --- | --- |\n| heads-prunable | holds | not tested |" in prefect_artifact(
        "report--1--a-study"
    )


def test_a_failed_run_is_published_as_what_failed():
    publish_results("a_study", failure="the disk is *full*")
    after = prefect_artifact("report--1--a-study").split("\n\n")
    assert after[1] == r"**The last run failed:** the disk is \*full\*"
    assert after[2].startswith("What follows is of the run that ended at 20")
    assert any(part.startswith("![") for part in after)
    publish_results("never", failure="no text")
    assert prefect_artifact("report-never").split("\n\n") == [
        "# never",
        "**The last run failed:** no text",
        "No run of this study has results yet.",
    ]
    with pytest.raises(UserError, match="needs a study that has run"):
        publish_results("never")


def test_a_deployed_run_of_a_name_that_is_typed_is_that_of_a_study_that_has_run(monkeypatch):
    monkeypatch.setenv("HEADSTREAM_CORPUS_ROOTS", str(tiny_text()))
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "nightly")
    assert run_study("a_study") == places.report_folder("a_study") / "report.md"
    assert run_study("no_study", return_state=True).is_failed()


def test_a_cell_is_text_whatever_it_holds():
    (row,) = deployments._cells([{"what": "<b>`x`</b> ![a](b) [c](javascript:d) | *e*", "before": None}])
    tokens = MarkdownIt("commonmark").parseInline(row["what"])[0].children
    assert {token.type for token in tokens} == {"text"}
    assert row["before"] == "missing"


@pytest.mark.parametrize("parameter", ["quick", {"name": "quick", "grid": {}}, parse_study("s", {"name": "quick"})])
@pytest.mark.parametrize(("state", "failure"), [(Completed(), ""), (Failed(message="no text"), "no text")])
def test_an_ended_study_asks_for_its_page(parameter, state, failure, monkeypatch):
    asked = []
    monkeypatch.setattr(deployments, "run_deployment", lambda name, parameters, **_: asked.append((name, parameters)))
    request_report(None, SimpleNamespace(parameters={"study": parameter}), state)
    assert asked == [("report/on-study", {"study": "quick", "failure": failure})]
    assert nightly_study.on_completion_hooks == [request_report]
    assert request_report in nightly_study.on_failure_hooks
    assert not run_study.on_completion_hooks


@pytest.mark.parametrize("parameter", [{}, "../quick", {"name": 7}, None])
def test_what_can_be_no_study_asks_for_none(parameter, monkeypatch):
    monkeypatch.setattr(deployments, "run_deployment", None)
    request_report(None, SimpleNamespace(parameters={"study": parameter}), Failed(message="no study"))
