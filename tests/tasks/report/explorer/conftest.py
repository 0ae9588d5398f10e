"""An invented study whose models have weights, its explorer, and a browser to open it in."""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from explorer_figures import DESK
from invented_study import STEPS, TOKENS_PER_STEP, Model, write_warehouse
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.report.explorer.explorer_contents import write_explorer
from headstream.tasks.report.explorer.model_files import ModelFiles
from headstream.tasks.results.study_results import open_results
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\u202e"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


class Explored(NamedTuple):
    """A study's explorer, and what it was made of."""

    page: Path
    warehouse: Path
    files: dict[str, ModelFiles]
    tokens: Tokens


def invented_weights(folder: Path, model: Model) -> ModelFiles:
    """Random weights of an invented model at its first steps and the last."""
    tokens = tiny_tokens()
    sizes = {"n_layers": model.n_layers, "n_heads": model.n_heads, "d_model": 20, "d_head": 5, "n_ctx": 64}
    network = Transformer(Architecture(**sizes), Tokens.open(tokens).vocabulary)
    write_model_card(folder, network, TOKENS_PER_STEP)
    for step in (0, 420, 760, STEPS[-1]):
        generator = torch.Generator().manual_seed(step)
        for parameter in network.parameters():
            parameter.data.normal_(0, 0.3, generator=generator)
        save_checkpoint(folder, network, step)
    return ModelFiles(folder, tokens)


@pytest.fixture(scope="module")
def explored(tmp_path_factory) -> Explored:
    folder = tmp_path_factory.mktemp("explored")
    models = (Model(), Model(n_layers=1, induction=0.02, repeat_gain=0.1, loss=2.8))
    warehouse = write_warehouse(folder / "w.duckdb", *models, question=HOSTILE)
    files = {}
    for model in models:
        (folder / model.model_id).mkdir()
        files[model.model_id] = invented_weights(folder / model.model_id, model)
    with open_results(warehouse, "invented") as results:
        write_explorer(results, files, folder / "explorer.html", [HOSTILE])
    return Explored(folder / "explorer.html", warehouse, files, Tokens.open(tiny_tokens()))


@pytest.fixture(scope="session")
def browser() -> Iterator:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.skip(f"needs a browser: one of {', '.join(CHROMIUM)} on the path")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def tabs(browser):
    """Empty tabs of the browser, and what goes wrong in them, by the options of their context.

    Tests take them in turn: each loads the page anew, but to start a process for each would take as long again.
    """
    contexts, empty, wrong = {}, defaultdict(list), []

    def take(**options):
        key = repr(options)
        if empty[key]:
            return key, empty[key].pop()
        if key not in contexts:
            contexts[key] = browser.new_context(accept_downloads=True, reduced_motion="reduce", **options)
        tab = contexts[key].new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
        tab.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:", "blob:", "about:")) or wrong.append(request.url),
        )
        return key, tab

    yield take, empty, wrong
    for context in contexts.values():
        context.close()


@pytest.fixture
def visit(tabs, explored: Explored):
    """Opens the page at an address; nothing may fail in it, nor be asked of any network."""
    (take, empty, wrong), taken = tabs, []

    def open_at(hash_: str = "", page: Path = explored.page, viewport: dict = DESK, **options):
        key, tab = take(viewport=viewport, **options)
        taken.append((key, tab))
        tab.goto(f"{page.as_uri()}#{hash_}")
        tab.wait_for_selector("nav a")
        return tab

    yield open_at
    for key, tab in taken:
        tab.goto("about:blank")
        empty[key].append(tab)
    found = [*wrong]
    wrong.clear()
    assert found == []
