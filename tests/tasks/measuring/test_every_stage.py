"""Every stage of the analysis works on every kind of model, or leaves out what such a model has not."""

from typing import Literal, get_args, get_origin

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from little_analysis import CONFIG, inputs_of
from tiny import tiny_tokens, tokens_without_bos

from headstream.models.architecture import Architecture
from headstream.models.architecture_config import ArchitectureConfig
from headstream.models.bos import NO_BOS
from headstream.models.heads.references import mean_z
from headstream.models.heads.removal import remove_heads
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.measure import measure
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import reference_text
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

SMALL = {"n_layers": 2, "n_heads": 2, "d_model": 12, "n_ctx": 24}
# As few as meet every value of every option with every stage.
KINDS = {
    "no layers": {"n_layers": 0},
    "one head": {"n_layers": 1, "n_heads": 1, "positions": "none", "feed_forward": "relu"},
    "static gates, a layer without heads": {
        **{"n_heads": (2, 0), "d_head": 5, "d_value": 3, "attention": "local", "attention_window": 5},
        "gates": "hard_concrete",
    },
    "dynamic gates, top k": {
        **{"positions": "shortformer", "attention": "top_k", "top_k": 3, "gates": "dynamic"},
        **{"normalization": "rmsnorm", "norm_epsilon": 1e-4, "feed_forward": "geglu"},
    },
    "dead heads, strided": {
        **{"positions": "learned_shortformer", "attention": "strided", "attention_window": 4, "stride": 3}
    },
    "like Llama": {
        **{"n_heads": 4, "n_key_value_heads": 2, "d_head": 6, "positions": "rotary", "rotary_base": 500.0},
        **{"rotary_pairs": "half-split", "normalization": "rmsnorm", "feed_forward": "swiglu", "d_mlp": 10},
        "qkv_biases": True,
    },
    "like GPT-J, without BOS": {
        **{"positions": "rotary", "rotary_fraction": 0.67, "parallel_sublayers": True},
        **{"normalization": "layernorm", "feed_forward": "gelu", "d_mlp": 10, "biases": True},
    },
    "norms after sublayers": {
        **{"normalization": "layernorm", "normalization_place": "post", "qk_normalization": True},
        **{"positions": "learned", "tied_embeddings": True, "feed_forward": "gelu_tanh", "biases": True},
    },
    "like GPT-Neo": {
        **{"positions": "learned", "attention": "local", "attention_window": 5, "windowed_layers": (1,)},
        **{"score_scale": 1.0, "normalization": "layernorm", "feed_forward": "gelu_tanh", "d_mlp": 10},
    },
    "like Llama 3 and Gemma 3": {
        **{"d_head": 8, "positions": "rotary", "rotary_stretch": 4.0, "rotary_stretched_wavelengths": (7.0, 30.0)},
        **{"attention": "local", "attention_window": 5, "windowed_layers": (0,), "windowed_rotary_base": 100.0},
    },
    "like Gemma 2": {
        **{
            "normalization": "rmsnorm",
            "normalization_place": "both",
            "norm_offset": True,
            "feed_forward": "geglu_tanh",
        },
        **{"d_mlp": 10, "tied_embeddings": True, "embedding_scale": 3.5, "score_cap": 2.0, "logit_cap": 3.0},
    },
    "capped, without norms, with smeared keys": {
        "score_cap": 2.0,
        "logit_cap": 3.0,
        "n_layers": 1,
        "key_smearing": True,
    },
    "like OLMo 2": {
        **{"n_heads": 4, "n_key_value_heads": 2, "d_head": 6, "positions": "rotary", "feed_forward": "swiglu"},
        **{"normalization": "rmsnorm", "normalization_place": "output", "d_mlp": 10},
        **{"qk_normalization": True, "qk_normalization_over": "layer"},
    },
    "norms before sublayers and of what they write": {
        **{"n_layers": 1, "normalization": "layernorm", "normalization_place": "both", "feed_forward": "relu"}
    },
    "pruned": {"positions": "sinusoidal", "feed_forward": "geglu_tanh"},
}


def trained(kind: str) -> tuple[Transformer, Tokens]:
    """A model of a kind, and the tokens that it reads."""
    tokens = Tokens.open(tokens_without_bos() if "without BOS" in kind else tiny_tokens())
    model = Transformer(Architecture(**SMALL | KINDS[kind]), tokens.vocabulary)
    model.initialize(torch.Generator().manual_seed(1))
    if "dead heads" in kind:  # as training.prune_to leaves them
        for layer in model.requires_grad_(False).layers:
            layer.attention.W_O[0] = 0
    if kind == "pruned":
        mask = [torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])]
        text = reference_text(tokens, SMALL["n_ctx"], 3)
        model = remove_heads(model.requires_grad_(False), mask, mean_z(model, text.sequences))
    return model, tokens


def values_not_met(name: str, architectures: list[Architecture]) -> set[object]:
    """Values of an option that none has; of one that is a number, its default stands for all others."""
    option = ArchitectureConfig.model_fields[name]
    met = {
        getattr(architecture, name)
        for architecture in architectures
        if architecture.n_layers and (architecture.positions == "rotary" or "rotary_" not in name)
    }
    if option.annotation is bool:
        return {True, False} - met
    if get_origin(option.annotation) is Literal:
        return {*get_args(option.annotation)} - met
    return {option.default} if met == {option.default} else set()


def test_every_value_of_every_option_is_met():
    found = [trained(kind) for kind in KINDS]
    architectures = [model.architecture for model, _ in found]
    missing = {name: values_not_met(name, architectures) for name in ArchitectureConfig.model_fields}
    assert {name: values for name, values in missing.items() if values} == {}
    assert 0 in {architecture.n_layers for architecture in architectures}
    assert NO_BOS in {tokens.bos for _, tokens in found}


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_on(kind, tmp_path):
    model, tokens = trained(kind)
    write_model_card(tmp_path, model, 1)
    for step in (0, 1):
        save_checkpoint(tmp_path, model, step)
    for stage in ANALYSES:
        folder = tmp_path / stage
        folder.mkdir()
        heard: list[float] = []
        facts = measure(stage, CONFIG, "m", inputs_of(stage, tmp_path, tokens.folder), folder, heard.append)
        assert facts == {"model_id": "m"}
        assert heard == sorted(heard)
        assert heard[-1] == 1
        for path in folder.glob("*.parquet"):
            found = pq.read_table(path)
            assert set(found.schema.names) <= set(table_schema(path.stem).names)
            for name in found.schema.names:
                if table_schema(path.stem).field(name).type == pa.float64():
                    assert not any(value != value for value in found[name].to_pylist()), "missing is NULL, not NaN"
