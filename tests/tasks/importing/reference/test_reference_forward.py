"""The second reading of every format: it agrees with the model that the first one makes, and finds what is misread."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from random_models import D_VOCAB as D_OWN_VOCAB
from random_models import random_model
from safetensors.torch import save_file
from torch import Tensor
from written_models import (
    D_VOCAB,
    N_CTX,
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

from headstream.models.transformer import Transformer
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.huggingface_folder import FAMILIES
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.reference import forward
from headstream.tasks.importing.reference.forward import reference_logits, without_reference
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

EXACT = 1e-11  # of the logits' standard deviation, both in float64


def gpt2(folder: Path, **options: object) -> Path:
    a = gpt2_architecture(**options)
    write_folder(folder, gpt2_config(a), gpt2_tensors(a, random_weights(a)))
    return folder


def gpt_neox(folder: Path, **options: object) -> Path:
    a = gpt_neox_architecture(**options)
    write_folder(folder, gpt_neox_config(a), gpt_neox_tensors(a, random_weights(a)))
    return folder


def llama(folder: Path, kind: str = "llama", **options: object) -> Path:
    a = llama_architecture(**options)
    write_folder(folder, llama_config(a, kind), llama_tensors(a, random_weights(a)))
    return folder


def nanogpt(folder: Path, prefix: str = "", **options: object) -> Path:
    a = gpt2_architecture(**{"feed_forward": "gelu", "d_mlp": 60, **options})
    torch.save(nanogpt_checkpoint(a, random_weights(a), prefix), folder / "ckpt.pt")
    return folder / "ckpt.pt"


def transformer_lens(folder: Path, make: Callable = gpt2_architecture, **options: object) -> Path:
    a = make(**options)
    weights = random_weights(a)
    if a.gated_feed_forward:
        weights |= {name: tensor * 0 for name, tensor in weights.items() if name.endswith(("b_in", "b_gate"))}
    tensors = transformer_lens_tensors(a, weights)
    torch.save({"cfg": transformer_lens_config(a), "state_dict": tensors}, folder / "model.pt")
    return folder / "model.pt"


def transformer_lens_folded(folder: Path) -> Path:
    a = gpt2_architecture()
    tensors = transformer_lens_tensors(a, random_weights(a))
    kept = {name: each.contiguous() for name, each in tensors.items() if ".ln" not in name and "ln_final" not in name}
    (folder / "config.json").write_text(json.dumps(transformer_lens_config(a) | {"normalization_type": "LNPre"}))
    save_file(kept, folder / "model.safetensors")
    return folder


def headstream(folder: Path, **options: object) -> Path:
    model = random_model(**options).float()
    write_model_card(folder, model, 64)
    save_checkpoint(folder, model, 3)
    return folder


def gguf(folder: Path, **options: object) -> Path:
    pytest.importorskip("gguf", reason="GGUF files are written with gguf, of the extra [models]")
    from written_gguf import gguf_architecture, gguf_tensors, write_gguf

    a = gguf_architecture(**options)
    return write_gguf(folder / "m.gguf", a, gguf_tensors(a, random_weights(a)))


WRITTEN: dict[str, Callable[[Path], Path]] = {
    "gpt2": gpt2,
    "gpt2 untied, of one head": lambda folder: gpt2(folder, tied_embeddings=False, n_heads=1, feed_forward="relu"),
    "gpt_neox": gpt_neox,
    "gpt_neox in turn": lambda folder: gpt_neox(folder, parallel_sublayers=False, rotary_fraction=1.0),
    "llama": llama,
    "llama with biases": lambda folder: llama(folder, biases=True, n_key_value_heads=None, feed_forward="geglu_tanh"),
    "mistral": lambda folder: llama(folder, "mistral", attention="local", attention_window=5),
    "qwen2": lambda folder: llama(folder, "qwen2", qkv_biases=True, tied_embeddings=True),
    "qwen2 with a window": lambda folder: llama(
        folder, "qwen2", qkv_biases=True, attention="local", attention_window=5
    ),
    "nanogpt": nanogpt,
    "nanogpt, compiled, without biases": lambda folder: nanogpt(folder, "module._orig_mod.", biases=False),
    "transformer-lens": transformer_lens,
    "transformer-lens, folded": transformer_lens_folded,
    "transformer-lens, a llama": lambda folder: transformer_lens(folder, llama_architecture),
    "transformer-lens, windows": lambda folder: transformer_lens(
        folder, llama_architecture, attention="local", attention_window=5, rotary_pairs="neighbouring"
    ),
    "transformer-lens, parallel": lambda folder: transformer_lens(folder, gpt_neox_architecture),
    "transformer-lens, shortformer": lambda folder: transformer_lens(
        folder, positions="learned_shortformer", feed_forward="none", d_mlp=None, n_layers=1
    ),
    "gguf": gguf,
    "gguf, part of a head turned": lambda folder: gguf(folder, rotary_fraction=0.5, qkv_biases=True),
    "headstream": headstream,
    "headstream, shortformer, post": lambda folder: headstream(
        folder, positions="shortformer", normalization="layernorm", normalization_place="post", feed_forward="gelu"
    ),
    "headstream, sinusoidal, window": lambda folder: headstream(
        folder, positions="sinusoidal", attention="local", attention_window=4, biases=True, tied_embeddings=True
    ),
    "headstream, rotary, grouped": lambda folder: headstream(
        folder, positions="rotary", d_head=6, n_heads=6, n_key_value_heads=2, feed_forward="swiglu",
        qk_normalization=True, normalization="rmsnorm", parallel_sublayers=True,
    ),
    "headstream, learned, layers that differ": lambda folder: headstream(
        folder, positions="learned", n_heads=(2, 0), qkv_biases=True, output_biases=True, feed_forward="relu"
    ),
    "headstream, strided": lambda folder: headstream(folder, attention="strided"),
    "headstream, the highest scores": lambda folder: headstream(
        folder, attention="top_k", top_k=4, positions="rotary", d_head=6
    ),
    "headstream, learned shortformer": lambda folder: headstream(folder, positions="learned_shortformer"),
}  # fmt: skip


def model_of(foreign: ForeignModel) -> Transformer:
    model = Transformer(foreign.architecture, foreign.d_vocab)
    model.load_state_dict(foreign.read_weights())
    return model.double()


def text(foreign: ForeignModel) -> Tensor:
    shape = (2, min(N_CTX, foreign.architecture.n_ctx))
    return torch.randint(foreign.d_vocab, shape, generator=torch.Generator().manual_seed(0))


def difference(foreign: ForeignModel, model: Transformer) -> float:
    expected = reference_logits(foreign, text(foreign))
    with torch.no_grad():
        return float((model(text(foreign)) - expected).abs().max() / expected.std())


@pytest.mark.parametrize("name", WRITTEN)
def test_both_readings_give_the_same_logits(name, tmp_path):
    foreign = open_foreign(WRITTEN[name](tmp_path))
    assert without_reference(foreign) is None
    assert difference(foreign, model_of(foreign)) < EXACT


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama", "nanogpt", "transformer-lens", "gguf", "headstream"])
def test_a_tensor_read_wrong_is_seen(name, tmp_path):
    foreign = open_foreign(WRITTEN[name](tmp_path))
    model = model_of(foreign)
    with torch.no_grad():
        heads = model.layers[0].attention.W_Q
        heads.copy_(heads.flip(0))
    assert difference(foreign, model) > 1e-2


@pytest.mark.parametrize("options", [{"gates": "dynamic"}, {"gates": "hard_concrete"}])
def test_what_has_no_second_reading_is_named(options, tmp_path):
    ((field, value),) = options.items()
    assert without_reference(open_foreign(headstream(tmp_path, **options))) == f"{field} = {value!r}"


DEFINITIONS = sorted(path for path in Path(forward.__file__).parent.glob("*.py") if path.name != "forward.py")


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_definitions_use_nothing_of_what_they_check(path):
    ours = re.findall(r"^\s*(?:from|import) headstream\.([\w.]+)", path.read_text(), re.MULTILINE)
    assert all(name.startswith("tasks.importing.reference.") for name in ours)


def test_every_family_has_a_definition():
    assert forward.HUGGINGFACE.keys() == FAMILIES.keys()


def test_one_vocabulary_does_for_all():
    assert D_OWN_VOCAB == D_VOCAB
