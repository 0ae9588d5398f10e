"""Reports as Prefect artifacts, and which runs of a study request one."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from markdown_it import MarkdownIt
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from test_study import study

from flows import deployments
from flows.deployments import nightly_study, publish_results, request_report
from flows.study import run_study
from tasks import places

pytestmark = pytest.mark.usefixtures("prefect_server", "home")


def small(**changes):
    return study(**{"name": "a_study", "grid": {"n_layers": [1]}, "analysis": {"stages": ["behaviour"]}} | changes)


def artifact(key: str):
    """What the newest artifact of a key holds; None if there is none."""
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])))
    return max(found, key=lambda artifact: artifact.created).data if found else None


def test_the_first_report_has_an_answer_claims_and_a_link():
    run_study(small())
    publish_results("a_study")
    assert artifact("report--1--a-study").startswith("# a_study\n\n- ")
    assert artifact("link--1--a-study") == f"[report of a_study]({places.report_folder('a_study').as_uri()}/report.md)"
    claims = {row["claim"]: row for row in json.loads(artifact("claims--1--a-study"))}
    assert claims["heads-prunable"] == {
        "verdict": "not tested",
        "claim": "heads-prunable",
        "finding": claims["heads-prunable"]["finding"],
    }
    assert artifact("changes--1--a-study") is None


def test_the_next_report_says_what_changed_too(monkeypatch):
    monkeypatch.setenv("HEADSTREAM_REPORTS_URL", "https://reports.example/")
    run_study(small(model={"d_model": 24, "n_heads": 2, "n_ctx": 16}))
    publish_results("a_study")
    assert artifact("link--1--a-study") == "[report of a_study](https://reports.example/a_study/report.md)"
    changes = {row["what"]: row for row in json.loads(artifact("changes--1--a-study"))}
    assert changes["model.d_model"] == {"what": "model.d_model", "before": "16", "after": "24", "note": ""}
    assert any(row["note"].startswith("under three seeds: no interval") for row in changes.values())


def test_a_cell_is_text_whatever_it_holds():
    (row,) = deployments._cells([{"what": "<b>`x`</b> ![a](b) [c](javascript:d) | *e*", "before": None}])
    tokens = MarkdownIt("commonmark").parseInline(row["what"])[0].children
    assert {token.type for token in tokens} == {"text"}
    assert row["before"] == "missing"


@pytest.mark.parametrize("parameter", ["quick", {"name": "quick", "grid": {}}])
def test_a_completed_study_asks_for_its_report(parameter, monkeypatch):
    asked = []
    monkeypatch.setattr(deployments, "run_deployment", lambda name, parameters, **_: asked.append((name, parameters)))
    request_report(None, SimpleNamespace(parameters={"study": parameter}), None)
    assert asked == [("report/on-study", {"study": "quick"})]
    assert nightly_study.on_completion_hooks == [request_report]
    assert not run_study.on_completion_hooks


@pytest.mark.parametrize(("minutes_ago", "published"), [(60, True), (-60, False)])
def test_a_study_that_failed_in_part_asks_for_its_report_too(minutes_ago, published, monkeypatch):
    run_study(small())
    asked = []
    monkeypatch.setattr(deployments, "run_deployment", lambda name, parameters, **_: asked.append(parameters))
    hook = nightly_study.on_failure_hooks[-1]
    for named in ("a_study", {"name": "a_study"}, "another", {}):
        began = datetime.now(UTC) - timedelta(minutes=minutes_ago)
        hook(None, SimpleNamespace(parameters={"study": named}, start_time=began), None)
    assert asked == [{"study": "a_study"}] * (2 * published)
