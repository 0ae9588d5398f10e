"""Every stage of the analysis works on every kind of model, or leaves out what such a model has not."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from little_analysis import CONFIG
from tiny import tiny_tokens, tokens_without_bos

from headstream.models.architecture import Architecture
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
KINDS = {
    "plain": {},
    "no layers": {"n_layers": 0},
    "one head": {"n_layers": 1, "n_heads": 1},
    "a layer without heads": {"n_heads": (2, 0), "d_head": 5},
    "local": {"attention": "local", "attention_window": 5},
    "strided": {"attention": "strided", "attention_window": 4, "stride": 3, "positions": "rotary"},
    "top k": {"attention": "top_k", "top_k": 3},
    "static gates": {"gates": "hard_concrete"},
    "dynamic gates": {"gates": "dynamic", "normalization": "rmsnorm"},
    "like Llama": {
        **{"n_heads": 4, "n_key_value_heads": 2, "d_head": 6, "positions": "rotary", "rotary_pairs": "half-split"},
        **{"normalization": "rmsnorm", "feed_forward": "swiglu", "d_mlp": 10, "qkv_biases": True},
    },
    "like GPT-NeoX": {
        **{"positions": "rotary", "rotary_fraction": 0.67, "rotary_pairs": "half-split", "parallel_sublayers": True},
        **{"normalization": "layernorm", "feed_forward": "gelu", "d_mlp": 10, "biases": True},
    },
    "learned shortformer": {"positions": "learned_shortformer"},
    "everything": {
        "normalization": "layernorm",
        "normalization_place": "post",
        "feed_forward": "gelu",
        "biases": True,
        "qk_normalization": True,
        "positions": "learned",
        "tied_embeddings": True,
    },
}


def trained(kind: str, tokens: Tokens) -> Transformer:
    if kind not in ("dead heads", "pruned"):
        architecture = Architecture(**SMALL | KINDS[kind])
        return Transformer(architecture, tokens.vocabulary).initialize(torch.Generator().manual_seed(1))
    model = trained("plain", tokens).requires_grad_(False)
    if kind == "dead heads":  # as training.prune_to leaves them
        for layer in model.layers:
            layer.attention.W_O[0] = 0
        return model
    mask = [torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])]
    return remove_heads(model, mask, mean_z(model, reference_text(tokens, 24, 3).sequences))


@pytest.mark.parametrize("kind", [*KINDS, "dead heads", "pruned", "without BOS"])
def test_every_stage_on(kind, tmp_path):
    tokens = Tokens.open(tokens_without_bos() if kind == "without BOS" else tiny_tokens())
    model = trained("plain" if kind == "without BOS" else kind, tokens)
    write_model_card(tmp_path, model, 1)
    for step in (0, 1):
        save_checkpoint(tmp_path, model, step)
    for stage in ANALYSES:
        folder = tmp_path / stage
        folder.mkdir()
        heard: list[float] = []
        facts = measure(stage, CONFIG, "m", {"model": tmp_path, "tokens": tokens.folder}, folder, heard.append)
        assert facts == {"model_id": "m"}
        assert heard == sorted(heard)
        assert heard[-1] == 1
        for path in folder.glob("*.parquet"):
            found = pq.read_table(path)
            assert set(found.schema.names) <= set(table_schema(path.stem).names)
            for name in found.schema.names:
                if table_schema(path.stem).field(name).type == pa.float64():
                    assert not any(value != value for value in found[name].to_pylist()), "missing is NULL, not NaN"
