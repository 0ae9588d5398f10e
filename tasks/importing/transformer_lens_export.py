"""Writes a model as a TransformerLens state dict, with the config of its HookedTransformer."""

from pathlib import Path
from typing import Any

import torch

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.importing.exported_model import (
    ExportedFiles,
    ExportedModel,
    differences,
    with_learned_positions,
    with_rotary_pairs,
    written_tensors,
)
from headstream.tasks.importing.huggingface_family import ACTIVATION_NAMES, GATED_ACTIVATION_NAMES, named_activation
from headstream.tasks.importing.huggingface_folder import CONFIG
from headstream.tasks.importing.settings import Settings, checked_architecture
from headstream.tasks.importing.transformer_lens_model import (
    NORMS,
    POSITIONS,
    UNEMBEDDING,
    transformer_lens_fields,
    transformer_lens_placements,
)

# Names in a HookedTransformerConfig.
_POSITIONS = {kind: name for name, kind in POSITIONS.items()}
_NORMS = {"none": None} | {kind: name for name, kind in NORMS.items() if name in ("LN", "RMS")}


def as_transformer_lens(model: ExportedModel) -> ExportedFiles:
    """A model as a TransformerLens state dict and its config, with zeros for biases that the model lacks.

    Raises:
        UserError: TransformerLens can't represent it.
    """
    shared = with_rotary_pairs(with_learned_positions(model), "neighbouring")  # version 4 reads no others
    a = shared.architecture
    config = _config(a) | {"d_vocab": model.d_vocab, "d_vocab_out": model.d_vocab}
    read_back = checked_architecture(Path(CONFIG), **transformer_lens_fields(Settings(config, Path(CONFIG))))
    lacking = differences(a.model_copy(update={"tied_embeddings": False, "qkv_biases": False}), read_back)
    if lacking:
        raise UserError(f"TransformerLens can't represent {', '.join(lacking)}. Export it --to headstream.")
    _require_one_table(shared)
    biased = a.model_copy(update={"biases": True, "qkv_biases": False, "output_biases": False})
    placements = transformer_lens_placements(biased, folded=False)
    tensors = written_tensors(shared, biased, placements, "TransformerLens")
    if a.tied_embeddings:
        tensors[UNEMBEDDING] = shared.weights["W_E"].mT.contiguous()
    of_gated = [name for name in tensors if a.gated_feed_forward and ".mlp.b_" in name]
    if not any(tensors[name].any() for name in of_gated):  # newer versions have no such biases
        tensors = {name: tensor for name, tensor in tensors.items() if name not in of_gated}
    own = model.architecture.positions
    notes = [] if own == a.positions else [f"{own} positions are written as a table of learned ones"]
    if model.architecture.rotary_pairs != a.rotary_pairs:
        notes.append("dimensions of queries and keys are reordered alike, so that rotary pairs are neighbours")
    old_only = {
        "parallel sublayers": a.parallel_sublayers,
        "windows of attention": a.attention == "local",
        "shortformer positions": a.positions == "learned_shortformer",
    }
    dropped = [part for part, is_used in old_only.items() if is_used]
    if dropped:
        notes.append(f"TransformerLens 4 has no {' and '.join(dropped)} in models of its own; earlier versions do")
    return ExportedFiles(config | {"default_prepend_bos": model.bos is not None}, tensors, notes)


def _config(architecture: Architecture) -> dict[str, Any]:
    a = architecture
    n_heads = a.heads_per_layer[0] if a.n_layers else 1
    groups = a.key_value_heads(n_heads)
    windowed = a.attention == "local"
    activations = GATED_ACTIVATION_NAMES if a.gated_feed_forward else ACTIVATION_NAMES
    return {
        "n_layers": a.n_layers,
        "d_model": a.d_model,
        "n_ctx": a.n_ctx,
        "d_head": a.head_width if a.n_layers else a.d_model,
        "n_heads": n_heads,
        "n_key_value_heads": None if groups == n_heads else groups,
        "d_mlp": a.mlp_width or None,
        "act_fn": named_activation(a.feed_forward, activations),
        "attn_only": a.feed_forward == "none",
        "gated_mlp": a.gated_feed_forward,
        "parallel_attn_mlp": a.parallel_sublayers,
        "eps": a.epsilon_of(a.normalization),
        "normalization_type": _NORMS[a.normalization],
        "positional_embedding_type": _POSITIONS.get(a.positions, "standard"),
        "rotary_dim": a.rotary_width if a.positions == "rotary" else None,
        "rotary_base": int(a.rotary_base) if a.rotary_base.is_integer() else a.rotary_base,
        "rotary_adjacent_pairs": a.rotary_pairs == "neighbouring",
        "use_local_attn": windowed,
        "window_size": len(a.visible_distances) if windowed else None,
        "attn_types": ["local"] * a.n_layers if windowed else None,
        "attention_dir": "causal",
        "use_attn_scale": True,
        "dtype": "torch.float32",
    }


def _require_one_table(model: ExportedModel) -> None:
    """Raise UserError if layers have different shortformer positions: TransformerLens has one table for all."""
    tables = [tensor for name, tensor in model.weights.items() if name.endswith("attention.W_pos")]
    if any(not torch.equal(table, tables[0]) for table in tables):
        raise UserError(
            "shortformer positions differ between layers, and TransformerLens has one table for all. Export it"
            " --to headstream."
        )
