"""Where a model under interventions goes: as it was trained, or refused by name; nothing takes its weights for it."""

import pyarrow.parquet as pq
import pytest
import torch
from explorer_files import contents_of
from invented_study import Model, write_warehouse
from little_analysis import CONFIG
from tiny import tiny_tokens
from written_models import gpt2_architecture, random_weights

from headstream.asked_model import patch
from headstream.models.prompts.patched_runs import base_run
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.model_export import export_checkpoints
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.measuring.measure import measure
from headstream.tasks.report.explorer.explorer_contents import write_explorer
from headstream.tasks.report.explorer.model_files import ModelFiles
from headstream.tasks.results.study_results import open_results
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import load_model, save_checkpoint, write_model_card

CLAMP = {"kind": "clamp", "heads": ["L0H1"], "pattern": "previous", "from": 100}
SILENCE = {"kind": "silence", "heads": ["L0H0"], "from": 100}
TOKENS_PER_STEP = 32


@pytest.fixture
def folder(tmp_path):
    """A model with a clamped and a silenced head at step 5, but not yet at step 2."""
    folder = tmp_path / "model"
    folder.mkdir()
    tokens = Tokens.open(tiny_tokens())
    architecture = gpt2_architecture()
    model = Transformer(architecture, tokens.vocabulary)
    model.load_state_dict(random_weights(architecture, model.d_vocab))
    write_model_card(folder, model, TOKENS_PER_STEP, {"interventions": [CLAMP, SILENCE], "bos": tokens.bos})
    for step in (2, 5):
        save_checkpoint(folder, model, step)
    return folder


@pytest.mark.parametrize("format", ["headstream", "huggingface", "transformer-lens"])
def test_an_export_refuses_a_step_at_which_interventions_act(folder, format, tmp_path):
    export_checkpoints(format, folder, tiny_tokens(), [2], tmp_path / "out")
    with pytest.raises(UserError, match="step 5 can't be exported") as refused:
        export_checkpoints(format, folder, tiny_tokens(), [5], tmp_path / "refused")
    assert "\n" not in str(refused.value)


def test_its_folder_is_not_read_as_another_model(folder):
    with pytest.raises(UserError, match="its weights alone are another model"):
        open_foreign(folder)
    assert open_foreign(folder / "checkpoints" / "0000002.safetensors").step == 2


def test_the_explorer_keeps_what_it_did_and_the_weights_of_steps_before(folder, tmp_path):
    own = Model(n_layers=2)
    files = {own.model_id: ModelFiles(folder, tiny_tokens())}
    with open_results(write_warehouse(tmp_path / "w.duckdb", own), "invented") as results:
        write_explorer(results, files, tmp_path / "e.html", [])
    contents = contents_of(tmp_path / "e.html")
    network = contents["networks"][own.model_id]
    assert network["kept"]
    assert "5" not in network["weights"]
    assert any("clamped heads or cut edges" in note for note in contents["notes"])


def test_its_nodes_are_not_patched(folder):
    model, tokens = load_model(folder, 5), Tokens.open(tiny_tokens())
    with pytest.raises(ValueError, match="Set it free"):
        base_run(model, torch.zeros(1, 4, dtype=torch.int64))
    with pytest.raises(UserError, match="Choose another checkpoint"):
        patch(model, tokens, "a b", "a c", "x", "y")


def test_set_free_it_is_measured_at_the_steps_at_which_something_acts(folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    inputs = {"model": folder, "tokens": tiny_tokens()}
    measure("set-free", CONFIG, "m", inputs, out, lambda fraction: None)
    losses, heads = (pq.read_table(out / f"{name}.parquet").to_pylist() for name in ("set_free", "set_free_heads"))
    assert [(row["step"], row["tokens"]) for row in losses] == [(5, 5 * TOKENS_PER_STEP)]
    free = load_model(folder, 2)
    assert len(heads) == sum(free.architecture.heads_per_layer)
    behaviour = tmp_path / "behaviour"
    behaviour.mkdir()
    measure("behaviour", CONFIG, "m", inputs, behaviour, lambda fraction: None)
    as_trained = {row["step"]: row for row in pq.read_table(behaviour / "evaluations.parquet").to_pylist()}
    scores = pq.read_table(behaviour / "heads.parquet").to_pylist()
    assert as_trained[2]["validation_loss_nats"] != as_trained[5]["validation_loss_nats"]
    assert losses[0]["repeat_gain_nats"] == pytest.approx(as_trained[2]["repeat_gain_nats"], abs=1e-4)
    previous = {row["head"]: row["previous_token"] for row in scores if row["step"] == 5 and row["layer"] == 0}
    assert previous.keys() == {*range(free.architecture.heads_per_layer[0])} - {0}
    assert previous[1] == pytest.approx(1)
