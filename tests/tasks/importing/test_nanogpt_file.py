"""nanoGPT's checkpoints: matrices turned, biases there or not, prefixes of compiled models, and hostile pickles."""

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from written_models import D_VOCAB, N_CTX, gpt2_architecture, nanogpt_checkpoint, random_weights, write_words

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.importing.open_foreign import open_foreign


def nanogpt(**options: Any) -> Architecture:
    fields = {"feed_forward": "gelu", "d_model": 21, "d_mlp": 84, **options}
    return gpt2_architecture(**fields)


UNTIED = {"tied_embeddings": False, "n_heads": 1, "d_model": 5, "d_mlp": 20}


def write(path: Path, architecture: Architecture, prefix: str = "", **changes: Any) -> dict[str, Tensor]:
    """Write a checkpoint; its weights."""
    weights = random_weights(architecture)
    if not architecture.biases:  # its norms have none either
        weights |= {name: torch.zeros_like(t) for name, t in weights.items() if name.endswith("norm.bias")}
    torch.save(nanogpt_checkpoint(architecture, weights, prefix) | changes, path)
    return weights


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as refused:
        open_foreign(path).read_weights()
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module._orig_mod."])
@pytest.mark.parametrize("options", [{}, {"biases": False}, UNTIED])
def test_every_weight_is_where_it_belongs(prefix, options, tmp_path):
    architecture = nanogpt(**options)
    weights = write(tmp_path / "ckpt.pt", architecture, prefix)
    model = open_foreign(tmp_path / "ckpt.pt")
    assert model.architecture == architecture
    assert (model.format, model.d_vocab, model.tokenizer) == ("nanogpt", D_VOCAB, None)
    assert (model.step, model.tokens) == (700, 700 * 3 * 5 * N_CTX)
    read = model.read_weights()
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[name], weights[name]) for name in weights)


def test_a_folder_with_one_file_is_that_file(tmp_path):
    write(tmp_path / "ckpt.pt", nanogpt())
    write_words(tmp_path / "tokenizer.json", D_VOCAB - 7)
    model = open_foreign(tmp_path)
    assert model.tokenizer.entries == D_VOCAB - 7
    assert any("7 more rows" in note for note in model.notes)
    write(tmp_path / "other.pt", nanogpt())
    assert "holds 2 files of weights" in refusal(tmp_path)


def test_versions_without_the_choice_of_biases_had_the_tanh_gelu(tmp_path):
    write(tmp_path / "new.pt", nanogpt())
    new = open_foreign(tmp_path / "new.pt")
    assert any("GELU" in note for note in new.notes)
    content = nanogpt_checkpoint(nanogpt(), random_weights(nanogpt()))
    del content["model_args"]["bias"]
    torch.save(content, tmp_path / "old.pt")
    old = open_foreign(tmp_path / "old.pt")
    assert (old.architecture.feed_forward, old.architecture.biases) == ("gelu_tanh", True)
    assert not any("GELU" in note for note in old.notes)


def test_weights_stay_what_they_were_when_the_file_goes(tmp_path):
    """They are mapped into memory, and then copied."""
    weights = write(tmp_path / "ckpt.pt", nanogpt())
    read = open_foreign(tmp_path / "ckpt.pt").read_weights()
    with (tmp_path / "ckpt.pt").open("r+b") as file:
        file.write(b"\0" * file.seek(0, os.SEEK_END))
    assert all(torch.equal(read[name], weights[name]) for name in weights)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch exploded",)


def rewritten(path: Path, compress: int, more: bytes = b"") -> None:
    """Write an archive anew, compressed or with more in its pickle."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compress) as archive:
        for name, content in entries.items():
            archive.writestr(name, content + (more if name.endswith("data.pkl") else b""))


def bomb(path: Path) -> None:
    torch.save({"model": Bomb(), "model_args": {}}, path)


def plain_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"model": {}, "model_args": {}}))


def older_torch(path: Path) -> None:
    torch.save({"model": {}}, path, _use_new_zipfile_serialization=False)


def squeezed(path: Path) -> None:
    rewritten(path, zipfile.ZIP_DEFLATED, b"\0" * (8 << 20))


def long_pickle(path: Path) -> None:
    rewritten(path, zipfile.ZIP_STORED, b"\0" * (65 << 20))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def not_a_model(path: Path) -> None:
    path.write_bytes(b"")


def whole_module(path: Path) -> None:
    torch.save({"model": torch.nn.Linear(2, 2), "model_args": {}}, path)


def without_arguments(path: Path) -> None:
    torch.save(nanogpt_checkpoint(nanogpt(), random_weights(nanogpt()))["model"], path)


def list_of_tensors(path: Path) -> None:
    torch.save([torch.ones(3)], path)


def swelling_tensor(path: Path) -> None:
    swollen(path, torch.ones(1).expand(1 << 40))


def tensor_of_nothing(path: Path) -> None:
    swollen(path, torch.empty(D_VOCAB, 21, device="meta"))


def sparse_tensor(path: Path) -> None:
    swollen(path, torch.eye(21).to_sparse())


def swollen(path: Path, tensor: Tensor) -> None:
    content = nanogpt_checkpoint(nanogpt(), random_weights(nanogpt()))
    content["model"]["transformer.wte.weight"] = tensor
    torch.save(content, path)


def no_state_dict(path: Path) -> None:
    torch.save({"model": 7, "model_args": {}}, path)


def arguments_of_another_size(path: Path) -> None:
    write(path, nanogpt(), model_args={"n_layer": 2, "n_head": 3, "n_embd": 24, "block_size": 19, "vocab_size": 37})


def value_embeddings(path: Path) -> None:
    content = nanogpt_checkpoint(nanogpt(), random_weights(nanogpt()))
    content["model"]["value_embeds.0.weight"] = torch.ones(3)
    torch.save(content, path)


BROKEN = {
    bomb: "words: posix.system, which could run code",
    plain_pickle: "is not a whole file of torch.save",
    older_torch: "is not a whole file of torch.save",
    squeezed: "would expand when read",
    long_pickle: "would expand when read",
    cut_short: "is not a whole file of torch.save",
    not_a_model: "is not a whole file of torch.save",
    whole_module: "Linear, which could run code",
    without_arguments: "it has neither nanoGPT's model_args nor TransformerLens's config",
    list_of_tensors: "holds data of type list, not a dictionary",
    swelling_tensor: "isn't a whole tensor",
    tensor_of_nothing: "isn't a whole tensor",
    sparse_tensor: "isn't a whole tensor",
    no_state_dict: "holds data of type int, not a state dict",
    arguments_of_another_size: "has shape [37, 21]",
    value_embeddings: "value_embeds.0.weight (value embeddings)",
}


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
def test_damaged_and_hostile_files_are_refused_in_a_line(damage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ckpt.pt"
    write(path, nanogpt())
    damage(path)
    assert BROKEN[damage] in refusal(path)
    assert not (tmp_path / "exploded").exists()
