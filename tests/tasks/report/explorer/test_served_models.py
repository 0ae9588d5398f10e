"""Models that are too large for a page, run by the program that serves it."""

import base64
import gzip
import json
from contextlib import closing
from http.client import HTTPConnection

import numpy as np
import pytest
import torch
from conftest import Explored
from explorer_files import contents_of, parts_of
from invented_study import Model

from headstream.tasks.errors import UserError
from headstream.tasks.report.explorer import explorer_contents
from headstream.tasks.report.explorer.explorer_contents import PageOptions, write_explorer
from headstream.tasks.results.study_results import open_results
from headstream.tasks.training.checkpoints import load_model
from headstream.tasks.watching.page_server import running
from headstream.tasks.watching.run_server import RunServer

MODEL = Model().model_id


@pytest.fixture(scope="module")
def page(explored: Explored, tmp_path_factory):
    """The page of models that it may not run itself."""
    path = tmp_path_factory.mktemp("served") / "explorer.html"
    with pytest.MonkeyPatch.context() as patch, open_results(explored.warehouse, "invented") as results:
        patch.setattr(explorer_contents, "MAX_PARAMETERS", 0)
        write_explorer(results, explored.files, path, [], PageOptions(served=True))
    return path


@pytest.fixture(scope="module")
def server(explored: Explored, page):
    with running(lambda port: RunServer(port, page.read_bytes(), explored.files), 0) as server:
        yield server


def answered(server: RunServer, place: str, body: str | None = None, **headers: str) -> tuple[int, str]:
    with closing(HTTPConnection(*server.server_address)) as connection:
        connection.request("GET" if body is None else "POST", place, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def asked(server: RunServer, **changes) -> tuple[int, str]:
    body = {"model": MODEL, "step": 420, "tokens": [0, 5, 9, 5, 9], "off": []} | changes
    return answered(server, f"/{server.secret}/run", json.dumps(body))


def test_the_page_holds_no_weights_but_the_tokenizer_and_steps(page):
    contents = contents_of(page)
    network = contents["networks"][MODEL]
    assert (network["weights"], network["kept"], network["served"]) == ({}, {}, [0, 420, 760, 1220])
    assert contents["texts"][0]["tokenizer"]
    assert "connect-src 'self'" in parts_of(page).policy


@pytest.mark.parametrize("off", [[], ["L0H1"]])
def test_a_run_is_the_models_own(server, explored, off):
    status, said = asked(server, off=off)
    assert status == 200
    answer = json.loads(said)
    model = load_model(explored.files[MODEL].checkpoints, 420)
    mask = [torch.ones(4), torch.ones(4)]
    for _ in off:
        mask[0][1] = 0
    with torch.no_grad():
        trace = model.trace(torch.tensor([[0, 5, 9, 5, 9]]), mask)
    losses = torch.nn.functional.cross_entropy(trace.logits[0, :-1], torch.tensor([5, 9, 5, 9]), reduction="none")
    assert answer["losses"] == pytest.approx(losses.tolist(), abs=1e-4)
    packed = np.frombuffer(gzip.decompress(base64.b64decode(answer["attention"])), np.uint8)
    last = trace.layers[1].pattern[0, 3]  # of 8 heads the last; a pattern has 15 weights up to each query
    assert packed[7 * 15 : 8 * 15] / 255 == pytest.approx(last[torch.tril(torch.ones(5, 5)).bool()].numpy(), abs=0.003)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model": "other"}, "there are no weights of 'other' at step 420"),
        ({"step": 7}, "at step 7"),
        ({"tokens": [10**9]}, "tokens must be 1 to 64"),
        ({"tokens": []}, "tokens must be 1 to 64"),
        ({"off": ["L9H9"]}, "there is no head 'L9H9'"),
        ({"off": 3}, "must be asked for by model, step, tokens and off"),
    ],
)
def test_what_can_not_be_run_is_refused(server, changes, why):
    with pytest.raises(UserError, match=why):
        server.run({"model": MODEL, "step": 420, "tokens": [0, 5], "off": []} | changes)
    status, said = asked(server, **changes)
    assert status == 400
    assert why in said


@pytest.mark.parametrize("place", ["/", "/run", "/guessed/", "/guessed/run", "/{secret}/other", "//"])
def test_who_does_not_know_the_address_gets_nothing(server, place):
    place = place.format(secret=server.secret)
    assert [answered(server, place, body)[0] for body in (None, "{}")] == [404, 404]
    assert answered(server, f"/{server.secret}/", Host="elsewhere.example")[0] == 403
    assert answered(server, f"/{server.secret}/")[0] == 200
    assert server.server_address[0] == "127.0.0.1"


def test_a_reader_types_a_text_and_switches_a_head_off(server, explored, page, browser):
    expect = pytest.importorskip("playwright.sync_api").expect
    with browser.new_context() as context:
        shown, wrong = context.new_page(), []
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.goto(f"{server.address}#2L4H/L1H3?view=text")
        expect(shown.locator(".passage")).to_be_visible()
        shown.get_by_role("button", name="Type a text of your own").click()
        ids = [explored.tokens.bos, *explored.tokens.tokenizer.encode("the river flows").ids]

        def is_of_it(answer):
            return answer.url.endswith("/run") and json.loads(answer.request.post_data)["tokens"] == ids

        with shown.expect_response(is_of_it) as response:
            shown.get_by_role("textbox", name="Your own text").fill("the river flows")
        assert response.value.ok
        with shown.expect_response("**/run") as response:
            shown.get_by_role("switch", name="L0H1").click()
        assert json.loads(response.value.request.post_data)["off"] == ["L0H1"]
    assert wrong == []
