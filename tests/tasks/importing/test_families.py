"""Each family's settings: both readings of a folder follow each one alike, and what can't be represented is refused."""

import json
from typing import Any

import pytest
import torch
from torch import Tensor
from written_families import BESIDES, CHANGES, CONFIGS, write_family
from written_models import D_VOCAB, N_CTX

from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.description import described_model
from headstream.tasks.importing.exported_model import ExportedModel
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.model_export import write_checkpoint
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.reference.forward import reference_logits

EXACT = 1e-11  # of the logits' standard deviation, both in float64
TOKENS = torch.randint(D_VOCAB, (2, N_CTX), generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def logits(foreign: ForeignModel) -> Tensor:
    """The logits of the first reading; those of the second are the same."""
    model = Transformer(foreign.architecture, foreign.d_vocab)
    model.load_state_dict(foreign.read_weights())
    found, expected = model.double()(TOKENS), reference_logits(foreign, TOKENS)
    assert float((found - expected).abs().max() / expected.std()) < EXACT
    return found


CASES = [(family, setting) for family, changes in CHANGES.items() for setting in changes]


@pytest.mark.parametrize(("family", "setting"), CASES)
def test_both_readings_follow_each_setting(family, setting, tmp_path):
    value = CHANGES[family][setting]
    changes = value if isinstance(value, dict) and (setting in value or "," in setting) else {setting: value}
    before, after = (
        open_foreign(write_family(tmp_path / each, family, own)) for each, own in (("a", {}), ("b", changes))
    )
    unchanged = logits(before)
    assert before.format == f"huggingface {family}"
    assert not torch.allclose(logits(after), unchanged, rtol=0, atol=1e-6)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("gpt_neo", {"attention_types": [[["global", "local"], 1]]}, "of each of 3 layers"),
    (
        "gpt_neo",
        {"attention_types": [[["global", "odd"], 1], [["local"], 1]]},
        "attention_types must say global or local",
    ),
    ("gpt_neo", {"attention_types": 7}, "attention_types must say global or local"),
    ("gpt_neo", {"attention_layers": ["global", "local", "global"]}, "and attention_layers the same"),
    ("olmo", {"clip_qkv": 8.0}, "Headstream has no limit for queries, keys and values"),
    ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "Headstream has no scaled rotary positions"),
    ("qwen3", {"rope_scaling": {"rope_type": "linear"}}, "has no factor"),
    ("qwen3", {"rope_scaling": {"rope_type": "llama3", "factor": 4.0}}, "has no high_freq_factor"),
    ("phi", {"qk_layernorm": True}, "Headstream has no LayerNorm of queries and keys"),
    (
        "phi3",
        {"rope_scaling": {"type": "longrope", "short_factor": [1.0]}},
        "Headstream has no scaled rotary positions",
    ),
    ("phi3", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "Headstream has no scaled rotary positions"),
    ("opt", {"do_layer_norm_before": False}, "Headstream has no OPT with norms after sublayers"),
    ("opt", {"word_embed_proj_dim": 7}, "Headstream has no projection between embeddings and the stream"),
    ("opt", {"_remove_final_layer_norm": True}, "Headstream has no OPT without its last norm"),
    ("opt", {"enable_bias": False}, "Headstream has no OPT without biases"),
    ("opt", {"layer_norm_elementwise_affine": False}, "Headstream has no OPT whose norms have no weights"),
    ("gemma", {"hidden_activation": "gelu"}, "Headstream has no activation that transformers would read here"),
    ("gemma", {"use_bidirectional_attention": True}, "Headstream has no attention to later tokens"),
    ("gemma2", {"use_bidirectional_attention": True}, "Headstream has no attention to later tokens"),
    ("gemma3_text", {"attn_logit_softcapping": 50.0}, "Headstream has no soft-capped scores"),
    (
        "gemma3_text",
        {"rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2.0}}},
        "Headstream has no scaled rotary positions in layers with a window",
    ),
    (
        "gemma3_text",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        "Headstream has no rotary positions for all of Gemma 3's layers alike",
    ),
    ("gpt_neo", {"activation_function": "silu"}, "activation_function must be one of"),
]

# Settings whose other values need other shapes of tensors, and those of which one value alone is read.
SIZES = {"hidden_size", "intermediate_size", "ffn_dim", "max_position_embeddings", "word_embed_proj_dim"}
ONE_VALUE = {name for _, refused, _ in REFUSED for name in refused} | {"original_max_position_embeddings"}
OF_TRAINING = {"dropout", "layerdrop", "init_std", "resid_pdrop"}


@pytest.mark.parametrize("family", CHANGES)
def test_every_setting_is_tried(family):
    assert CONFIGS[family]().keys() - CHANGES[family].keys() <= SIZES | ONE_VALUE | OF_TRAINING


@pytest.mark.parametrize("family", CHANGES)
def test_what_published_configs_hold_besides_decides_nothing_and_needs_no_word(family, tmp_path):
    plain, besides = (
        open_foreign(write_family(tmp_path / each, family, own)) for each, own in (("a", {}), ("b", BESIDES[family]))
    )
    assert besides.architecture == plain.architecture
    assert [text for heading, text in described_model(besides) if heading == "note"] == []


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        *((family, {}) for family in CHANGES),
        ("qwen3", CHANGES["qwen3"]["rope_parameters, llama3"]),
        ("gemma3_text", CHANGES["gemma3_text"]["rope_parameters"]),
    ],
)
def test_what_is_exported_again_is_the_same_model(family, changes, tmp_path):
    foreign = open_foreign(write_family(tmp_path / "theirs", family, changes))
    weights = foreign.read_weights()
    exported = ExportedModel(foreign.architecture, foreign.d_vocab, weights, bos=None, step=0, tokens=None)
    write_checkpoint("huggingface", exported, tmp_path / "ours")
    back = open_foreign(tmp_path / "ours")
    assert back.format == EXPORTED_AS.get(family, foreign.format)
    assert torch.allclose(logits(back), logits(foreign), rtol=0, atol=1e-9)


def test_norms_that_differ_are_not_exported_as_one(tmp_path):
    foreign = open_foreign(write_family(tmp_path / "theirs", "phi"))
    weights = foreign.read_weights()
    weights["layers.1.feed_forward_norm.weight"] += 1
    exported = ExportedModel(foreign.architecture, foreign.d_vocab, weights, bos=None, step=0, tokens=None)
    with pytest.raises(UserError, match=r"phi has one tensor for layers\.1\.attention_norm"):
        write_checkpoint("huggingface", exported, tmp_path / "ours")


EXPORTED_AS = {
    "llama": "huggingface mistral",
    "opt": "huggingface gpt2",
    "phi3": "huggingface mistral",
}  # where a model is one of another family, too


@pytest.mark.parametrize(("family", "changes", "words"), REFUSED)
def test_what_headstream_lacks_is_refused_by_name(family, changes, words, tmp_path):
    write_family(tmp_path, family)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UserError) as refused:
        open_foreign(tmp_path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
