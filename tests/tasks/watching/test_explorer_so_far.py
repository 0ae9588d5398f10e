"""The explorer of a study whose models are in training."""

import shutil
from functools import partial

import pandas as pd
import pytest
import torch
from explorer_files import contents_of
from tiny import tiny_tokens

from headstream.models.parameters import count_parameters
from headstream.models.transformer import Transformer
from headstream.tasks.report.explorer.model_files import ModelFiles
from headstream.tasks.storage.artifact import Spec
from headstream.tasks.storage.store import Store
from headstream.tasks.study.schema import parse_study
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card
from headstream.tasks.watching.checkpoint_measuring import CheckpointMeasuring
from headstream.tasks.watching.explorer_so_far import write_explorer_so_far
from headstream.tasks.watching.models_so_far import WatchedModel

STEPS = (0, 5, 20)


@pytest.fixture(scope="module")
def study():
    content = {"name": "mine", "question": "Why?", "grid": {"n_layers": [0, 1], "seed": [3, 5]}}
    return parse_study("mine.toml", content | {"model": {"d_model": 20, "n_heads": 2, "n_ctx": 32}})


def copy_tokens(folder):
    shutil.copytree(tiny_tokens(), folder, dirs_exist_ok=True)


def train(architecture, folder):
    for step in STEPS:
        model = Transformer(architecture, Tokens.open(tiny_tokens()).vocabulary)
        save_checkpoint(folder, model.initialize(torch.Generator().manual_seed(step)), step)
    write_model_card(folder, model, 64)


@pytest.fixture(scope="module")
def page(tmp_path_factory, study):
    """A page of the two models of the grid that have begun, and where what was measured of them is."""
    folder, files, measured = tmp_path_factory.mktemp("so-far"), {}, {}
    store, measuring = Store(folder / "store"), CheckpointMeasuring(Store(folder / "store"), folder)
    tokens = store.build(Spec("tokens", "v", {}, {}, {}), copy_tokens)
    for cell in (study.cells[1], study.cells[3]):
        trained = store.build(Spec("training", "v", {"of": cell.label}, {}, {}), partial(train, cell.architecture))
        watched = WatchedModel(cell.label, trained.manifest.key, tokens.manifest.key, "")
        while measuring.measure_next([watched]):
            pass
        files[cell.label] = ModelFiles(trained.folder, tokens.folder)
        measured[cell.label] = measuring.tables(watched)
    write_explorer_so_far(study, files, measured, folder / "page.html", ["2 of 4 in work"], "7")
    return contents_of(folder / "page.html"), measured


def test_it_holds_the_models_that_have_begun_as_the_study_describes_them(page, study):
    models = pd.DataFrame(page[0]["tables"]["models"]).set_index("cell")
    assert sorted(models.index) == ["n_layers=0 seed=5", "n_layers=1 seed=5"]
    last = models.loc["n_layers=1 seed=5"]
    assert (last.label, last.seed, last.n_ctx, last.d_model) == ("1L2H", 5, 32, 20)
    architecture = study.cells[3].architecture
    assert last.parameters == count_parameters(Transformer(architecture, Tokens.open(tiny_tokens()).vocabulary))
    assert (page[0]["study"], page[0]["answer"], page[0]["version"]) == ("mine", ["2 of 4 in work"], "7")


def test_the_slider_has_what_was_measured_of_each_checkpoint(page):
    contents, measured = page
    shown = pd.DataFrame(contents["tables"]["heads"]).set_index(["model_id", "step", "layer", "head"])
    for folder in measured["n_layers=1 seed=5"]:
        for row in pd.read_parquet(folder / "heads.parquet").itertuples():
            score = shown.loc[("n_layers=1 seed=5", row.step, row.layer, row.head)].previous_token
            assert score == pytest.approx(row.previous_token, rel=1e-4)
    checkpoints = pd.DataFrame(contents["tables"]["checkpoints"])
    assert sorted(checkpoints[checkpoints.model_id == "n_layers=1 seed=5"].tokens) == [64 * step for step in STEPS]


def test_a_models_last_weights_are_there_to_run(page):
    for network in page[0]["networks"].values():
        assert str(STEPS[-1]) in network["weights"]
    assert page[0]["texts"][0]["tokenizer"]
