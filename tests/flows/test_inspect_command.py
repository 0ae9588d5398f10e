"""`headstream inspect` refuses what an import would refuse, in the same words, weights included."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from written_models import (
    gpt2_architecture,
    gpt2_config,
    gpt2_tensors,
    gpt_neox_architecture,
    gpt_neox_config,
    gpt_neox_tensors,
    llama_architecture,
    llama_config,
    llama_tensors,
    nanogpt_checkpoint,
    random_weights,
    transformer_lens_config,
    transformer_lens_tensors,
    write_folder,
)

from headstream.flows.inspect_command import print_description
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card


def gpt2(folder: Path, changes: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Path:
    a = gpt2_architecture()
    tensors = gpt2_tensors(a, random_weights(a))
    return write_folder(folder, gpt2_config(a), tensors | changes(tensors))


def gpt_neox(folder: Path, changes: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Path:
    a = gpt_neox_architecture(tied_embeddings=True)
    tensors = gpt_neox_tensors(a, random_weights(a))
    return write_folder(folder, gpt_neox_config(a), tensors | changes(tensors))


def llama(
    folder: Path, changes: Callable[[dict[str, Tensor]], dict[str, Tensor]], kind: str = "llama", n_shards: int = 1
) -> Path:
    a = llama_architecture(tied_embeddings=True, qkv_biases=kind == "qwen2")
    tensors = llama_tensors(a, random_weights(a))
    return write_folder(folder, llama_config(a, kind), tensors | changes(tensors), n_shards=n_shards)


def nanogpt(folder: Path, number: float) -> Path:
    a = gpt2_architecture(d_mlp=60)
    content = nanogpt_checkpoint(a, random_weights(a))
    content["model"]["transformer.h.1.ln_1.weight"][3] = number
    torch.save(content, folder / "ckpt.pt")
    return folder / "ckpt.pt"


def transformer_lens(folder: Path, number: float) -> Path:
    a = gpt2_architecture()
    tensors = transformer_lens_tensors(a, random_weights(a))
    tensors["blocks.1.mlp.W_in"][2, 3] = number
    torch.save({"cfg": transformer_lens_config(a), "state_dict": tensors}, folder / "model.pt")
    return folder / "model.pt"


def headstream(folder: Path, number: float) -> Path:
    model = Transformer(llama_architecture(), 37).requires_grad_(False)
    model.W_E.data.fill_(number)
    write_model_card(folder, model, 64)
    save_checkpoint(folder, model, 3)
    return folder


def gguf(folder: Path, number: float) -> Path:
    pytest.importorskip("gguf", reason="GGUF files are written with gguf, of the extra [models]")
    from written_gguf import gguf_architecture, gguf_tensors, write_gguf

    a = gguf_architecture()
    tensors = gguf_tensors(a, random_weights(a))
    return write_gguf(folder / "m.gguf", a, tensors | {"output_norm.weight": torch.full((17,), number)})


def cut_short(folder: Path) -> Path:
    path = llama(folder, unchanged) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-5])
    return folder


def unchanged(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {}


def other_head(name: str, embedding: str) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    return lambda tensors: {name: tensors[embedding] + 1e-3}


NAN, INFINITE = float("nan"), float("inf")
LLAMA_HEAD = other_head("lm_head.weight", "model.embed_tokens.weight")
BROKEN: dict[str, tuple[Callable[[Path], Path], str]] = {
    "gpt2 tied": (lambda f: gpt2(f, other_head("lm_head.weight", "transformer.wte.weight")), "lm_head.weight differs"),
    "gpt_neox tied": (
        lambda f: gpt_neox(f, other_head("embed_out.weight", "gpt_neox.embed_in.weight")),
        "embed_out.weight differs",
    ),
    "llama tied": (lambda f: llama(f, LLAMA_HEAD), "lm_head.weight differs from model.embed_tokens.weight"),
    "mistral tied": (lambda f: llama(f, LLAMA_HEAD, "mistral"), "lm_head.weight differs"),
    "qwen2 tied": (lambda f: llama(f, LLAMA_HEAD, "qwen2"), "lm_head.weight differs"),
    "tied, in shards": (lambda f: llama(f, LLAMA_HEAD, n_shards=3), "lm_head.weight differs"),
    "tied, of another shape": (
        lambda f: llama(f, lambda tensors: {"lm_head.weight": torch.ones(5, 17)}),
        "lm_head.weight differs",
    ),
    "tied, not a number": (
        lambda f: llama(f, lambda tensors: {"lm_head.weight": torch.full((37, 17), NAN)}),
        "lm_head.weight differs",
    ),
    "llama": (
        lambda f: llama(f, lambda tensors: {"model.norm.weight": torch.full((17,), NAN)}),
        "17 of 17 weights in model.norm.weight are not finite",
    ),
    "nanogpt": (lambda f: nanogpt(f, INFINITE), "1 of 15 weights in transformer.h.1.ln_1.weight are not finite"),
    "transformer-lens": (lambda f: transformer_lens(f, NAN), "1 of 345 weights in blocks.1.mlp.W_in are not finite"),
    "headstream": (lambda f: headstream(f, -INFINITE), "629 of 629 weights in W_E are not finite"),
    "gguf": (lambda f: gguf(f, NAN), "17 of 17 weights in output_norm.weight are not finite"),
    "cut short": (cut_short, "is not a whole safetensors file"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_an_import_would_refuse_is_refused(name, capsys, tmp_path):
    write, words = BROKEN[name]
    path = write(tmp_path)
    with pytest.raises(UserError) as of_inspect:
        print_description(path)
    with pytest.raises(UserError) as of_import:
        open_foreign(path).read_weights()
    assert words in str(of_inspect.value)
    assert str(of_inspect.value) == str(of_import.value)
    assert capsys.readouterr().out == ""


def test_a_copy_that_is_one_passes(capsys, tmp_path):
    print_description(llama(tmp_path, lambda tensors: {"lm_head.weight": tensors["model.embed_tokens.weight"].clone()}))
    assert "tied_embeddings = true" in capsys.readouterr().out


def test_a_model_without_its_tokenizer_is_told_what_a_study_needs(capsys, tmp_path):
    llama(tmp_path, unchanged)
    (tmp_path / "tokenizer.json").unlink()
    print_description(tmp_path)
    assert "none; a study must name the model's own: tokenizer = 'PATH'" in capsys.readouterr().out
