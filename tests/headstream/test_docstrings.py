"""Every public class, function, method and property of `headstream` has an example in its docstring, which runs."""

import doctest
import inspect
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

import headstream as hs
from headstream import opened_explorer, started_study
from headstream.asked_model import AskedPairs
from headstream.attention_on_text import Attention, AttentionOnTexts
from headstream.flows.export_command import export_model
from headstream.model_on_text import Model
from headstream.named_tensors import NamedTensors
from headstream.opened_explorer import ExplorerPage
from headstream.opened_model import StudyModel
from headstream.results_figures import Plot

CLASSES = [
    hs.Results,
    Model,
    StudyModel,
    Attention,
    AttentionOnTexts,
    NamedTensors,
    AskedPairs,
    Plot,
    ExplorerPage,
]  # what people hold
ERRORS = (hs.UserError, hs.WorkError)


def documented() -> Iterator[tuple[str, str]]:
    """The name of everything public, and its docstring."""
    yield "headstream", hs.__doc__
    for function in (getattr(hs, name) for name in hs.__all__):
        if inspect.isfunction(function):
            yield function.__name__, function.__doc__
    for held in CLASSES:
        yield held.__name__, held.__doc__
        for name, member in vars(held).items():
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                yield f"{held.__name__}.{name}", member.__doc__


def test_all_that_is_public_is_looked_at():
    public = {getattr(hs, name) for name in hs.__all__} - {*ERRORS}
    assert {each for each in public if inspect.isclass(each)} <= {*CLASSES}
    names = [name for name, _ in documented()]
    assert {"run", "Results.plot", "Model.trace", "Model.names", "Attention.frame", "Plot.figure"} <= {*names}


@pytest.fixture(scope="module")
def opened(home) -> tuple[hs.Results, StudyModel]:
    return hs.open("ours"), hs.open("ours").model(seed=0)


@pytest.mark.parametrize(("name", "docstring"), [*documented()], ids=[name for name, _ in documented()])
def test_its_example_runs(opened, name, docstring, monkeypatch, tmp_path):
    results, model = opened
    monkeypatch.chdir(tmp_path)
    if name == "load":
        export_model(model.model_id, tmp_path / "exported" / "2L4H", "headstream", None, None, False)
    for module in (started_study, opened_explorer):  # README's example has a study itself run
        monkeypatch.setattr(module, "run_command", lambda words: None)
    monkeypatch.setattr(started_study, "open", lambda name: results)
    told = (docstring or "").replace("quick", "ours").replace('"2L4H"', f'"{model.model_id}"')
    found = doctest.DocTestParser().get_examples(told)
    assert found, "it has no example"
    names = {"hs": hs, "results": results, "model": model}
    for example in found:
        with refused("no circuit of 'repeats' was found") if name == "Results.circuit" else nullcontext():
            exec(example.source, names)


def refused(message: str):
    """A model as small as this has no circuit."""
    return pytest.raises(hs.UserError, match=message)
