"""A model that the door opens, exported from the command line, is read again as the model that it is."""

import sys
from typing import Any

import pytest
import torch

import headstream as hs
from headstream.flows import command_line
from headstream.opened_model import StudyModel
from headstream.tasks.importing.open_foreign import open_foreign


def call(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["headstream", *arguments])
    with pytest.raises(SystemExit) as stop:
        command_line.main()
    output = capsys.readouterr()
    return int(stop.value.code or 0), output.out, output.err


@pytest.fixture(scope="module")
def model(home) -> StudyModel:
    return hs.open("ours").model(seed=0)


def test_every_checkpoint_comes_back_as_it_was(model, monkeypatch, capsys, tmp_path):
    code, out, _ = call(monkeypatch, capsys, "export", model.model_id, str(tmp_path / "out"), "--all-steps")
    assert code == 0
    assert f"{model.label} seed=0 of ours ({model.model_id}) after steps {model.steps[0]}, " in out
    for step in model.steps:
        found, kept = open_foreign(tmp_path / "out" / f"step{step:07}"), model.at(step)
        assert (found.step, found.tokens) == (step, kept.tokens_seen)
        read = found.read_weights()
        assert all(torch.equal(read[name], parameter) for name, parameter in kept.module.named_parameters())
    text = "the river runs to the sea"
    assert found.tokenizer is not None
    assert found.tokenizer.read().encode(text).ids == model.encode(text)[0].tolist()
    assert found.tokenizer.bos == model.encode(text)[0][0]


def test_one_step_is_one_folder_and_inspect_says_what_is_in_it(model, monkeypatch, capsys, tmp_path):
    first, out = str(model.steps[0]), str(tmp_path / "out")
    assert call(monkeypatch, capsys, "export", model.model_id, out, "--step", first)[0] == 0
    code, said, _ = call(monkeypatch, capsys, "inspect", out)
    assert code == 0
    assert [line.split()[-1] for line in said.splitlines() if line.startswith("format")] == ["headstream"]
    assert "n_heads = [2, 3]" in said
    assert "BOS '<|bos|>'" in said
    n_parameters = sum(parameter.numel() for parameter in model.module.parameters())
    assert f"{n_parameters:,}, stored as float32" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["2L2-3H", "out"], "2 models are called '2L2-3H'. Choose an id: 2L2-3H seed=0 of ours"),
        (["3L4H", "out"], "no model is called '3L4H'"),
        (["2L2-3H", "out", "--study", "theirs"], "no model is called '2L2-3H'. Choose an id: none"),
        (["ID", "out", "--step", "7"], "no weights were kept at step 7. Choose one of 0, "),
        (["ID", "out", "--to", "huggingface"], "positions = 'relative'"),
        (["ID", "."], "isn't an empty folder"),
    ],
)
def test_what_can_not_be_exported_is_refused_in_a_line(model, monkeypatch, capsys, tmp_path, arguments, words):
    (tmp_path / "mine.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    arguments = [model.model_id if word == "ID" else word for word in arguments]
    code, _, err = call(monkeypatch, capsys, "export", *arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
