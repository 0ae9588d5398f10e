"""A model exported and imported again is the model that it was, weight by weight; what can't be is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_tokens
from torch import Tensor
from written_models import gpt2_architecture, gpt_neox_architecture, llama_architecture, random_weights

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.export_formats import fit_of
from headstream.tasks.importing.exported_model import ExportedModel, with_rotary_pairs
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.model_export import export_checkpoints
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

STEPS = (0, 40)


def stored(folder: Path, architecture: Architecture) -> dict[int, Transformer]:
    """A model of the store; as it was after each step."""
    folder.mkdir()
    models = {}
    for step in STEPS:
        models[step] = Transformer(architecture, Tokens.open(tiny_tokens()).vocabulary)
        models[step].load_state_dict(random_weights(architecture, models[step].d_vocab, seed=step))
        save_checkpoint(folder, models[step].requires_grad_(False), step)
    write_model_card(folder, models[0], 32)
    return models


def exported(folder: Path, format: str, architecture: Architecture) -> tuple[Transformer, ForeignModel]:
    """A model, and what is read of it after it was exported."""
    models = stored(folder / "stored", architecture)
    export_checkpoints(format, folder / "stored", tiny_tokens(), [40], folder / "out")
    return models[40], open_foreign(folder / "out")


@torch.no_grad()
def logits(architecture: Architecture, weights: dict[str, Tensor]) -> Tensor:
    model = Transformer(architecture, weights["W_E"].shape[0]).double()
    model.load_state_dict(weights)
    return model.eval()(torch.arange(14)[None])


def plain(**options: Any) -> Architecture:
    return Architecture(**{"d_model": 24, "n_ctx": 19, "n_heads": 4, **options})


REPRESENTABLE = {
    "gpt2": ("huggingface", gpt2_architecture()),
    "gpt2 untied": ("huggingface", gpt2_architecture(tied_embeddings=False, feed_forward="relu", norm_epsilon=None)),
    "gpt_neox": ("huggingface", gpt_neox_architecture()),
    "gpt_neox, sublayers in turn": ("huggingface", gpt_neox_architecture(parallel_sublayers=False, rotary_fraction=1)),
    "llama": ("huggingface", llama_architecture(d_model=18)),
    "llama with biases": ("huggingface", llama_architecture(d_model=18, biases=True, feed_forward="geglu_tanh")),
    "llama, grouped by one": ("huggingface", llama_architecture(d_model=18, n_key_value_heads=6)),
    "mistral, as its sizes are no llama's": ("huggingface", llama_architecture()),
    "mistral": ("huggingface", llama_architecture(attention="local", attention_window=5)),
    "qwen2": ("huggingface", llama_architecture(qkv_biases=True, tied_embeddings=True)),
    "qwen2 with windows": ("huggingface", llama_architecture(qkv_biases=True, attention="local", attention_window=5)),
    "qwen3, with norms of queries and keys": ("huggingface", llama_architecture(qk_normalization=True)),
    "phi3, part of a head turned": ("huggingface", llama_architecture(rotary_fraction=0.5, norm_epsilon=None)),
    "no norms": ("transformer-lens", plain(positions="learned")),
    "attention alone": ("transformer-lens", plain(positions="rotary", normalization="layernorm", biases=True)),
    "neighbouring pairs": ("transformer-lens", llama_architecture(rotary_pairs="neighbouring", tied_embeddings=True)),
    "parallel": ("transformer-lens", gpt_neox_architecture(output_biases=False, rotary_pairs="neighbouring")),
    "windows": ("transformer-lens", plain(positions="learned", attention="local", attention_window=3, qkv_biases=True)),
    "relative": ("headstream", plain(n_heads=(3, 0), d_head=5, gates="dynamic", qk_normalization=True)),
    "top_k": ("headstream", plain(attention="top_k", top_k=3, normalization="rmsnorm", normalization_place="post")),
}


@pytest.mark.parametrize("name", REPRESENTABLE)
def test_weights_are_identical_when_they_come_back(name, tmp_path):
    format, architecture = REPRESENTABLE[name]
    model, found = exported(tmp_path, format, architecture)
    assert found.format.startswith(format)
    assert format != "huggingface" or found.format.split()[1] == name.replace(",", "").split()[0]
    assert (found.step, found.tokens) == (40, 40 * 32)
    own, read = dict(model.named_parameters()), found.read_weights()
    assert all(torch.equal(read[each], own[each]) for each in own.keys() & read.keys())
    assert not any(read[each].any() for each in read.keys() - own.keys())  # biases that the format has
    assert all(each == "b_U" and not own[each].any() for each in own.keys() - read.keys())
    doubles = [{each: tensor.double() for each, tensor in weights.items()} for weights in (own, read)]
    assert torch.equal(logits(architecture, doubles[0]), logits(found.architecture, doubles[1]))


def test_its_tokenizer_and_bos_come_back(tmp_path):
    tokens = Tokens.open(tiny_tokens())
    for format in ("huggingface", "transformer-lens", "headstream"):
        (tmp_path / format).mkdir()
        _, found = exported(tmp_path / format, format, gpt2_architecture())
        assert found.tokenizer.bos == tokens.bos
        assert found.tokenizer.entries == tokens.vocabulary
        assert not found.notes


@pytest.mark.parametrize("format", ["huggingface", "transformer-lens"])
@pytest.mark.parametrize(
    "options",
    [
        {"positions": "sinusoidal"},
        {"positions": "none"},
        {"positions": "shortformer"},
        {"positions": "rotary", "rotary_fraction": 0.7, "parallel_sublayers": True},
        {"positions": "rotary", "normalization": "rmsnorm", "feed_forward": "geglu", "d_head": 6, "biases": False},
        {"positions": "rotary", "normalization": "rmsnorm", "feed_forward": "none", "biases": False},
        {"positions": "learned", "feed_forward": "none", "biases": False},
        {"positions": "sinusoidal", "n_layers": 0},
        {"positions": "rotary", "rotary_pairs": "half-split", "d_head": 6, "rotary_fraction": 0.7},
        {
            **{"positions": "rotary", "rotary_pairs": "half-split", "n_key_value_heads": 2, "biases": False},
            **{"normalization": "rmsnorm", "feed_forward": "geglu"},
        },
    ],
)
def test_what_a_format_says_in_other_words_computes_the_same(format, options, tmp_path):
    architecture = plain(**{"normalization": "layernorm", "feed_forward": "gelu", "biases": True, **options})
    if format == "huggingface" and options["positions"] == "shortformer":
        return  # TransformerLens alone has it
    model, found = exported(tmp_path, format, architecture)
    own, read = dict(model.named_parameters()), found.read_weights()
    doubles = [{each: tensor.double() for each, tensor in weights.items()} for weights in (own, read)]
    expected = logits(architecture, doubles[0])
    assert torch.allclose(logits(found.architecture, doubles[1]), expected, rtol=0, atol=1e-5 * float(expected.std()))


@torch.no_grad()
@pytest.mark.parametrize("over", ["head", "layer"])
@pytest.mark.parametrize("pairs", ["half-split", "neighbouring"])
def test_rotary_pairs_are_reordered_with_all_that_belongs_to_them(over, pairs):
    other = "neighbouring" if pairs == "half-split" else "half-split"
    options = {"qk_normalization": True, "qk_normalization_over": over, "biases": True, "rotary_fraction": 0.5}
    architecture = llama_architecture(**options, d_head=8, rotary_pairs=other)
    weights = random_weights(architecture)
    model = with_rotary_pairs(ExportedModel(architecture, 37, weights, bos=None, step=0, tokens=None), pairs)
    assert model.architecture.rotary_pairs == pairs
    doubles = [{name: tensor.double() for name, tensor in each.items()} for each in (weights, model.weights)]
    expected = logits(architecture, doubles[0])
    assert torch.allclose(logits(model.architecture, doubles[1]), expected, rtol=0, atol=1e-9 * float(expected.std()))


def test_transformer_lens_gets_neighbouring_pairs_alone_since_version_4_reads_no_others(tmp_path):
    exported(tmp_path, "transformer-lens", llama_architecture())
    assert json.loads((tmp_path / "out" / "config.json").read_text())["rotary_adjacent_pairs"] is True


GEMMA = llama_architecture(
    normalization_place="both", norm_offset=True, embedding_scale=17**0.5, feed_forward="geglu_tanh"
)  # but for a width that transformers takes

UNREPRESENTABLE = [
    ("huggingface", plain(), "positions = 'relative', normalization = 'none'."),
    ("huggingface", gpt2_architecture(normalization_place="post"), "gpt2, can't have normalization_place = 'post'"),
    ("huggingface", gpt2_architecture(d_head=4), "d_head = 4, d_value = 4"),
    ("huggingface", gpt2_architecture(gates="dynamic"), "gpt2, can't have gates = 'dynamic'"),
    ("huggingface", gpt2_architecture(qk_normalization=True), "gpt2, can't have qk_normalization = True"),
    ("huggingface", llama_architecture(rotary_fraction=0.5, qkv_biases=True), "rotary_width = 2"),
    ("huggingface", llama_architecture(feed_forward="gelu"), "feed_forward = 'gelu'"),
    ("huggingface", llama_architecture(embedding_scale=3.0), "embedding_scale = 3.0"),
    ("huggingface", llama_architecture(logit_cap=3.0), "logit_cap = 3.0"),
    ("huggingface", llama_architecture(rotary_fraction=0.5, rotary_stretch=2.0), "rotary_width = 2"),
    ("huggingface", GEMMA, "normalization_place = 'both'"),
    ("transformer-lens", plain(), "positions = 'relative'"),
    ("transformer-lens", plain(positions="learned", score_scale=1.0), "score_scale = 1.0"),
    ("transformer-lens", llama_architecture(normalization_place="both"), "normalization_place = 'both'"),
    ("transformer-lens", plain(positions="learned", n_heads=(2, 3), d_head=5), "n_heads = (2, 3)"),
    ("transformer-lens", plain(positions="learned", attention="strided", stride=2), "attention = 'strided'"),
    ("transformer-lens", plain(positions="learned", d_value=7), "d_value = 7"),
    ("transformer-lens", plain(positions="learned_shortformer"), "positions differ between layers"),
    ("transformer-lens", llama_architecture(biases=True), "no tensor for layers.0.feed_forward.b_"),
]


@pytest.mark.parametrize(("format", "architecture", "words"), UNREPRESENTABLE)
def test_what_a_format_can_not_say_is_named(format, architecture, words, tmp_path):
    stored(tmp_path / "stored", architecture)
    with pytest.raises(UserError) as refused:
        export_checkpoints(format, tmp_path / "stored", tiny_tokens(), [40], tmp_path / "out")
    assert words in str(refused.value)
    assert "--to headstream" in str(refused.value)
    assert fit_of(format, architecture).removeprefix("no: ") in str(refused.value), "as it is told before training"


@pytest.mark.parametrize(
    ("format", "architecture", "fit"),
    [
        ("huggingface", llama_architecture(), "written as mistral"),
        ("huggingface", gpt2_architecture(biases=False), "written as gpt2"),
        ("huggingface", gpt2_architecture(), "no: gpt2 has no tensor for b_U, which is not 0 throughout."),
        ("transformer-lens", llama_architecture(rotary_pairs="neighbouring"), "yes"),
    ],
)
def test_what_a_model_fits_is_known_before_it_is_trained(format, architecture, fit):
    assert fit_of(format, architecture) == fit


def test_a_bias_of_logits_is_refused_where_a_format_has_none(tmp_path):
    models = stored(tmp_path / "stored", gpt2_architecture())
    models[40].b_U += 1
    save_checkpoint(tmp_path / "stored", models[40], 40)
    with pytest.raises(UserError, match="no tensor for b_U"):
        export_checkpoints("huggingface", tmp_path / "stored", tiny_tokens(), [40], tmp_path / "out")


def test_a_history_is_a_folder_for_each_step(tmp_path):
    models = stored(tmp_path / "stored", gpt2_architecture())
    export_checkpoints("huggingface", tmp_path / "stored", tiny_tokens(), STEPS, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["step0000000", "step0000040"]
    for step in STEPS:
        found = open_foreign(tmp_path / "out" / f"step{step:07}")
        assert (found.step, found.tokens) == (step, 32 * step)
        assert torch.equal(found.read_weights()["W_E"], models[step].W_E)


def test_nothing_is_written_over(tmp_path):
    stored(tmp_path / "stored", gpt2_architecture())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    for folder in (tmp_path / "out", tmp_path / "out" / "mine.txt"):
        with pytest.raises(UserError, match="isn't an empty folder"):
            export_checkpoints("headstream", tmp_path / "stored", tiny_tokens(), [40], folder)


def test_the_config_is_the_one_that_transformers_reads(tmp_path):
    exported(tmp_path, "huggingface", gpt2_architecture())
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["architectures"], config["model_type"]) == (["GPT2LMHeadModel"], "gpt2")
    assert (config["n_head"], config["n_embd"], config["activation_function"]) == (3, 15, "gelu_new")
