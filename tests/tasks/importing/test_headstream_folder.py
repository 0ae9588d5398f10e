"""Folders that Headstream wrote are read as what they are, whichever of their checkpoints is asked for."""

import json
from pathlib import Path

import pytest
import torch
from random_models import random_model
from written_models import write_words

from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.open_foreign import content_hash, open_foreign
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card


def write(folder: Path, **options: object) -> dict[int, Transformer]:
    """A folder of checkpoints; the models after each step."""
    models = {step: random_model(seed=step, **options).float() for step in (0, 30, 200)}
    write_model_card(folder, models[0], 64)
    for step, model in models.items():
        save_checkpoint(folder, model, step)
    return models


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_heads": (2, 0), "gates": "dynamic", "qk_normalization": True, "attention": "top_k", "top_k": 3},
        {"normalization": "rmsnorm", "normalization_place": "post", "feed_forward": "relu", "biases": True},
        {"n_heads": 6, "n_key_value_heads": 3, "positions": "learned_shortformer", "feed_forward": "geglu"},
    ],
)
def test_any_architecture_and_every_checkpoint_is_read(options, tmp_path):
    models = write(tmp_path, **options)
    last = open_foreign(tmp_path)
    assert (last.format, last.step, last.tokens) == ("headstream", 200, 200 * 64)
    assert any("last of 3 checkpoints" in note for note in last.notes)
    for step, model in models.items():
        found = open_foreign(tmp_path / "checkpoints" / f"{step:07}.safetensors")
        assert (found.step, found.architecture, found.d_vocab) == (step, model.architecture, model.d_vocab)
        read = found.read_weights()
        assert read.keys() == dict(model.named_parameters()).keys()
        assert all(torch.equal(read[name], parameter) for name, parameter in model.named_parameters())
    assert content_hash(found) == content_hash(last)


def test_its_tokenizer_and_bos_are_those_beside_it(tmp_path):
    write(tmp_path)
    write_words(tmp_path / "tokenizer.json", 37)
    assert open_foreign(tmp_path).tokenizer.bos is None
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": "w5", "add_bos_token": True}))
    assert open_foreign(tmp_path).tokenizer.bos == 5


def test_what_contradicts_itself_is_refused_in_a_line(tmp_path):
    write(tmp_path)
    card = json.loads((tmp_path / "model.json").read_text())
    for changed, words in (
        ({"architecture": card["architecture"] | {"d_model": 29}}, "has shape [37, 23]"),
        ({"architecture": card["architecture"] | {"depth": 3}}, "no field 'depth'"),
        ({"architecture": 7}, "architecture must be an object, got 7"),
        ({"d_vocab": -1}, "d_vocab must be a whole number"),
    ):
        (tmp_path / "model.json").write_text(json.dumps(card | changed))
        with pytest.raises(UserError) as refused:
            open_foreign(tmp_path)
        assert words in str(refused.value)
        assert "\n" not in str(refused.value)
    (tmp_path / "model.json").write_text(json.dumps(card))
    for path in (tmp_path / "checkpoints").iterdir():
        path.unlink()
    with pytest.raises(UserError, match="has no checkpoints"):
        open_foreign(tmp_path)
