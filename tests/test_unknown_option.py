"""An option of the architecture is refused by its name wherever it isn't known, and at its default nowhere."""

from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from explorer_files import contents_of
from invented_study import Model, write_warehouse
from pydantic import Field
from tiny import tiny_tokens
from written_models import gpt2_architecture, gpt_neox_architecture, llama_architecture, random_weights

from headstream.models.architecture import Architecture
from headstream.models.known_options import KnownOptions, unknown_options
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing import settings
from headstream.tasks.importing.model_export import export_checkpoints
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.reference.forward import without_reference
from headstream.tasks.importing.reference.headstream import DEFINED
from headstream.tasks.report.explorer.explorer_contents import write_explorer
from headstream.tasks.report.explorer.model_files import ModelFiles
from headstream.tasks.report.explorer.portable_models import RUNS
from headstream.tasks.results.study_results import open_results
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training import checkpoints
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card


class ToyArchitecture(Architecture):
    """With one option more, which has no parameters of its own: no tensor gives it away."""

    toy: bool = Field(False, description="Changes what is computed.")


def toy(like: Architecture, value: bool) -> ToyArchitecture:
    return ToyArchitecture(**dict(like), toy=value)


@pytest.fixture
def headstream_has_it(monkeypatch):
    """Files are read as if the option were one of Headstream's."""
    for module in (settings, checkpoints):
        monkeypatch.setattr(module, "Architecture", ToyArchitecture)


def stored(folder: Path, architecture: Architecture, step: int = 5) -> Path:
    """A model of the store."""
    folder.mkdir()
    model = Transformer(architecture, Tokens.open(tiny_tokens()).vocabulary)
    model.load_state_dict(random_weights(architecture, model.d_vocab))
    write_model_card(folder, model, 32)
    save_checkpoint(folder, model, step)
    return folder


@pytest.mark.usefixtures("headstream_has_it")
@pytest.mark.parametrize("like", [gpt2_architecture(), gpt_neox_architecture(), llama_architecture()])
@pytest.mark.parametrize("format", ["huggingface", "transformer-lens"])
def test_an_export_refuses_it(format, like, tmp_path):
    without, with_it = (stored(tmp_path / str(value), toy(like, value)) for value in (False, True))
    export_checkpoints(format, without, tiny_tokens(), [5], tmp_path / "out")
    with pytest.raises(UserError, match=r"(can.t have|can.t represent) toy = True[,.]") as refused:
        export_checkpoints(format, with_it, tiny_tokens(), [5], tmp_path / "refused")
    assert "\n" not in str(refused.value)


def test_a_headstream_that_lacks_it_refuses_the_folder_of_one_that_has_it(tmp_path):
    model = stored(tmp_path / "model", toy(gpt2_architecture(), True))
    export_checkpoints("headstream", model, tiny_tokens(), [5], tmp_path / "out")
    with pytest.raises(UserError, match="no field 'toy'") as refused:
        open_foreign(tmp_path / "out")
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("headstream_has_it")
@pytest.mark.parametrize(("value", "reason"), [(False, None), (True, "toy = True")])
def test_a_certificate_is_not_given_by_a_definition_that_lacks_it(value, reason, tmp_path):
    assert without_reference(open_foreign(stored(tmp_path / "model", toy(Architecture(), value)))) == reason


@pytest.mark.usefixtures("headstream_has_it")
def test_a_page_keeps_what_the_model_did_instead_of_running_it(tmp_path):
    models = {False: Model(), True: Model(n_layers=1)}
    files = {}
    for value, own in models.items():
        like = Architecture(n_layers=own.n_layers, n_heads=own.n_heads, d_model=20, n_ctx=64)
        files[own.model_id] = ModelFiles(stored(tmp_path / own.model_id, toy(like, value)), tiny_tokens())
    with open_results(write_warehouse(tmp_path / "w.duckdb", *models.values()), "invented") as results:
        write_explorer(results, files, tmp_path / "e.html", [])
    contents = contents_of(tmp_path / "e.html")
    without, with_it = (contents["networks"][own.model_id] for own in models.values())
    assert without["weights"]
    assert not without["kept"]
    assert not with_it["weights"]
    assert with_it["kept"]
    assert [note for note in contents["notes"] if "toy" in note] == [
        "Models with toy = True don't run in the page, which has no forward pass for them."
    ]


@pytest.mark.parametrize("known", [RUNS, DEFINED], ids=["page", "reference"])
def test_what_is_declared_is_there_and_choices_are_declared_one_by_one(known: KnownOptions):
    fields = Architecture.model_fields
    assert known.keys() <= fields.keys()
    for name, values in known.items():
        choices = get_args(fields[name].annotation) if get_origin(fields[name].annotation) is Literal else None
        assert (values is None) == (choices is None), name
        assert set(values or ()) <= set(choices or ()), name


def test_a_field_is_known_by_its_values_and_an_undeclared_one_at_its_default():
    known: KnownOptions = {"n_layers": None, "positions": ("learned", "rotary")}
    assert unknown_options(Architecture(n_layers=5, positions="learned"), known) == []
    assert unknown_options(Architecture(), known) == ["positions = 'relative'"]
    found = unknown_options(ToyArchitecture(positions="none", toy=True, d_model=64), known)
    assert sorted(found) == ["d_model = 64", "positions = 'none'", "toy = True"]
