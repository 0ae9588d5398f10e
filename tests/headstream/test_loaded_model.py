"""A model from elsewhere is opened at once, and computes what the model that was exported does."""

import sys

import pandas as pd
import pytest
import torch

import headstream as hs
from headstream.flows import command_line
from headstream.flows.export_command import export_model
from headstream.model_on_text import Model
from headstream.opened_model import StudyModel
from headstream.tasks.importing import loading

TEXT = "the river runs to the sea"


@pytest.fixture(scope="module")
def exported(home, tmp_path_factory):
    """A model of a study, and the folder that it was exported into."""
    model, folder = hs.open("ours").model(seed=0), tmp_path_factory.mktemp("exported") / "it"
    export_model(model.model_id, folder, "headstream", None, None, False)
    return model, folder


def test_it_computes_what_the_model_does(exported):
    model, folder = exported
    loaded = hs.load(folder)
    assert type(loaded) is Model
    assert isinstance(model, StudyModel)
    assert repr(loaded).startswith("Model it: ")
    assert torch.equal(loaded.trace(TEXT)["logits"], model.trace(TEXT)["logits"])
    assert loaded.tokens(TEXT) == model.tokens(TEXT)
    off = {"off": ["L1H0"]}
    assert loaded.loss([TEXT, TEXT], **off).tolist() == model.loss([TEXT, TEXT], **off).tolist()
    pd.testing.assert_frame_equal(loaded.next(TEXT), model.next(TEXT))
    assert loaded.trainable().loss(TEXT).requires_grad


def test_it_reads_no_more_than_is_asked_for(exported):
    _, folder = exported
    assert hs.load(folder, n_ctx=4).module.architecture.n_ctx == 4
    with pytest.raises(hs.UserError, match="must fit n_ctx=4 tokens"):
        hs.load(folder, n_ctx=4).loss(TEXT)


def test_what_takes_text_or_does_not_exist_is_refused(exported, tmp_path):
    _, folder = exported
    with pytest.raises(hs.UserError, match="opened without any"):
        hs.load(folder).loss(TEXT, off=["L1H0"], replace="mean")
    with pytest.raises(hs.UserError, match="must be a file, a folder or an installed package"):
        hs.load(tmp_path / "nowhere")
    with pytest.raises(hs.UserError, match="n_ctx must be at most what the model can read"):
        hs.load(folder, n_ctx=10_000)
    with pytest.raises(hs.UserError, match="the package pandas must hold one model, got none"):
        hs.load("pandas")


def test_a_package_that_holds_one_model_stands_for_it(exported, monkeypatch):
    _, folder = exported

    class Held:
        suffix = ".safetensors"

        def locate(self):
            return next(folder.rglob("*.safetensors"))

    monkeypatch.setattr(loading, "files", lambda package: [Held()])
    assert hs.load("a-package").module.d_vocab == hs.load(folder).module.d_vocab


def test_the_command_line_asks_it_by_its_path(exported, monkeypatch, capsys):
    model, folder = exported
    said = []
    for name in (str(folder), model.model_id):
        monkeypatch.setattr(sys, "argv", ["headstream", "prompts", "closing", "--model", name, "--pairs", "8"])
        with pytest.raises(SystemExit) as stop:
            command_line.main()
        assert not stop.value.code
        title, *lines = capsys.readouterr().out.splitlines()
        assert name in title
        said.append(lines)
    assert said[0] == said[1]
    monkeypatch.setattr(sys, "argv", ["headstream", "prompts", "closing", "--model", "nobody"])
    with pytest.raises(SystemExit) as stop:
        command_line.main()
    assert stop.value.code == 2
    assert "no model is called 'nobody'" in capsys.readouterr().err
