"""A TransformerLens model: its state dict, and its config as a dictionary.

Weights have Headstream's shapes, [head, d_model, d_head] and so on. The config is `cfg` beside `state_dict` in the
file, or config.json beside the file. Every model has all biases: kinds that are 0 throughout are left out.

Source: https://github.com/TransformerLensOrg/TransformerLens, HookedTransformerConfig and components/.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from headstream.models.architecture import Architecture
from headstream.models.attention_heads import SHARED_SUFFIX
from headstream.tasks.errors import UserError
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.foreign_tokenizer import find_tokenizer
from headstream.tasks.importing.huggingface_family import ACTIVATION_NAMES, GATED_ACTIVATION_NAMES
from headstream.tasks.importing.layouts import ALIKE, SAME
from headstream.tasks.importing.placements import Origin, PlacedTensors, Placement, checked_model
from headstream.tasks.importing.settings import Settings, checked_architecture
from headstream.tasks.importing.stored_tensors import StoredTensors

_BUFFERS = re.compile(r"\.attn\.(mask|IGNORE|rotary_sin|rotary_cos)$")
POSITIONS = {"standard": "learned", "rotary": "rotary", "shortformer": "learned_shortformer"}
NORMS = {"LN": "layernorm", "LNPre": "layernorm", "RMS": "rmsnorm", "RMSPre": "rmsnorm"}
_EMBEDDING, UNEMBEDDING = "embed.W_E", "unembed.W_U"
CENTRED = 1e-4  # ratio of means to norms below which weights count as centred
_BIAS = re.compile(r"\._?(b_[A-Za-z]+)$")

# Settings that ask for parts that Headstream lacks: their neutral values, and the part.
_NEUTRAL: dict[str, tuple[tuple[Any, ...], str]] = {
    "use_attn_scale": ((True,), "attention without a scale"),
    "scale_attn_by_inverse_layer_idx": ((False,), "scale of attention by layer"),
    "attention_dir": (("causal",), "attention to later tokens"),
    "post_embedding_ln": ((False,), "norm of the embedding"),
    "num_experts": ((None,), "experts"),
    "attn_scores_soft_cap": ((-1, None), "soft-capped scores"),
    "output_logits_soft_cap": ((-1, None), "soft-capped logits"),
    "use_normalization_before_and_after": ((False,), "norms before and after a sublayer"),
    "use_qk_norm": ((False,), "norms of queries and keys by this config"),
    "use_NTK_by_parts_rope": ((False,), "scaled rotary positions"),
    "use_yarn_rope": ((False,), "scaled rotary positions"),
    "rotary_base_local": ((None,), "rotary positions that differ by layer"),
    "rotary_scaling_factor": ((1,), "scaled rotary positions"),
    "final_rms": ((False,), "final norm of another kind"),
    "load_in_4bit": ((False,), "quantised weights"),
}
_OF_NO_CONSEQUENCE = """
attn_types checkpoint_index checkpoint_label_type checkpoint_value decoder_start_token_id default_prepend_bos device
dtype experts_per_token from_checkpoint gated_mlp init_mode init_weights initializer_range model_name n_devices n_params
NTK_by_parts_factor NTK_by_parts_high_freq_factor NTK_by_parts_low_freq_factor NTK_original_ctx_len
original_architecture relative_attention_max_distance relative_attention_num_buckets seed tie_word_embeddings
tokenizer_name tokenizer_prepends_bos trust_remote_code ungroup_grouped_query_attention use_attn_in use_attn_result
use_hook_mlp_in use_hook_tokens use_split_qkv_input window_size attn_only
"""


def open_transformer_lens(
    path: Path, files: list[Path], config: Mapping[str, Any], stored: StoredTensors
) -> ForeignModel:
    """Open the model of a state dict and its config, both of which are in these files.

    Raises:
        UserError: they contradict each other, or have parts that Headstream can't represent.
    """
    settings = Settings(config, path)
    for name, (neutral, part) in _NEUTRAL.items():
        settings.must_be(name, neutral, part)
    settings.ignore(*_OF_NO_CONSEQUENCE.split())
    d_vocab = settings.whole("d_vocab")
    settings.must_be("d_vocab_out", (d_vocab, -1), "vocabulary of outputs apart from that of inputs")
    tied = _tied(stored)
    fields = {**transformer_lens_fields(settings), **_biases(stored, settings), "tied_embeddings": tied}
    architecture = checked_architecture(path, **fields)
    _require_scale(settings, architecture)
    folded = (_norm(settings) or "").endswith("Pre")
    tokenizer, tokenizer_files, notes = find_tokenizer(path.parent, {})
    notes += [*_folding_notes(architecture, stored, folded), *settings.notes]
    placements = [
        place
        for place in transformer_lens_placements(architecture, folded=folded)
        if place.tensor in stored.header or not _may_be_missing(place.tensor, architecture, stored)
    ]
    placed = {place.tensor for place in placements}
    left_out = {name for name in stored.header if _BIAS.search(name) or (tied and name == UNEMBEDDING)} - placed
    tensors = PlacedTensors(path, stored.without(left_out), placements, _BUFFERS)
    origin = Origin("transformer-lens", [*files, *tokenizer_files], tokenizer, notes)
    return checked_model(origin, tensors, architecture, d_vocab)


def transformer_lens_placements(architecture: Architecture, *, folded: bool) -> list[Placement]:
    """The places of a state dict's tensors; with `folded`, norms have no weights."""
    a = architecture
    names = {_EMBEDDING: "W_E"}
    if not a.tied_embeddings:
        names[UNEMBEDDING] = "W_U_free"
    if a.positions == "learned":
        names["pos_embed.W_pos"] = "W_pos"
    if a.biases:
        names["unembed.b_U"] = "b_U"
    norms = {"ln_final": "final_norm"}
    maps = (
        ["W_Q", "W_O"]
        + (["b_Q"] if a.biases or a.qkv_biases else [])
        + (["b_O"] if a.biases or a.output_biases else [])
    )
    shared = ["W_K", "W_V"] + (["b_K", "b_V"] if a.biases or a.qkv_biases else [])
    for i, n_heads in enumerate(a.heads_per_layer):
        block, layer = f"blocks.{i}", f"layers.{i}"
        groups = a.key_value_heads(n_heads) < n_heads
        names |= {f"{block}.attn.{name}": f"{layer}.attention.{name}" for name in maps}
        names |= {
            f"{block}.attn.{'_' * groups}{name}": f"{layer}.attention.{name}{SHARED_SUFFIX * groups}" for name in shared
        }
        norms[f"{block}.ln1"] = f"{layer}.attention_norm"
        if a.feed_forward != "none":
            norms[f"{block}.ln2"] = f"{layer}.feed_forward_norm"
            biases = ["b_out"] + ["b_in"] * (not a.gated_feed_forward) if a.biases else []
            for name in ["W_in", "W_out", *["W_gate"] * a.gated_feed_forward, *biases]:
                names[f"{block}.mlp.{name}"] = f"{layer}.feed_forward.{name}"
    parts = {"layernorm": {"w": "weight", "b": "bias"}, "rmsnorm": {"w": "weight"}, "none": {}}[a.normalization]
    if not folded:
        names |= {f"{norm}.{part}": f"{own}.{long}" for norm, own in norms.items() for part, long in parts.items()}
    placed = [Placement(tensor, SAME, (parameter,)) for tensor, parameter in names.items()]
    if a.positions == "learned_shortformer":
        own = tuple(f"layers.{i}.attention.W_pos" for i in range(a.n_layers))
        placed.append(Placement("pos_embed.W_pos", ALIKE, own))
    return placed


def transformer_lens_fields(settings: Settings) -> dict[str, Any]:
    """Fields of the architecture by a config: all but biases and tied embeddings."""
    d_model, n_heads, n_ctx = settings.whole("d_model"), settings.whole("n_heads"), settings.whole("n_ctx")
    d_head = settings.whole("d_head", d_model // max(n_heads, 1))
    positions = settings.choice("positional_embedding_type", POSITIONS, "standard")
    if settings.flag("shortformer_pos", False):  # of older configs
        positions = "learned_shortformer"
    groups, norm = settings.whole("n_key_value_heads", n_heads), _norm(settings)
    fields = {
        "n_layers": settings.whole("n_layers"),
        "n_heads": n_heads,
        "n_key_value_heads": None if groups == n_heads else groups,
        "d_model": d_model,
        "d_head": d_head,
        "n_ctx": n_ctx,
        "positions": positions,
        "normalization": "none" if norm is None else NORMS[norm],
        "norm_epsilon": settings.number("eps", 1e-5),
        "parallel_sublayers": settings.flag("parallel_attn_mlp", False),
        **_feed_forward(settings, d_model),
        **_window(settings, n_ctx),
    }
    rotary = {
        "rotary_base": settings.number("rotary_base", 10_000),
        "rotary_fraction": fraction_of(settings.whole("rotary_dim", d_head), d_head),
        "rotary_pairs": "neighbouring" if settings.flag("rotary_adjacent_pairs", False) else "half-split",
    }
    return fields | (rotary if positions == "rotary" else {})


def fraction_of(turned: int, d_head: int) -> float:
    """The fraction of d_head that gives `turned` dimensions when rounded down."""
    fraction = turned / max(d_head, 1)
    return fraction if int(d_head * fraction) == turned else math.nextafter(fraction, 2)


def _norm(settings: Settings) -> str | None:
    """The kind of norm: None if a config says so, LayerNorm if it says nothing; older configs name it differently."""
    name = "normalization" if settings.says("normalization") else "normalization_type"
    if name not in settings and settings.says(name):
        return None
    return settings.choice(name, {kind: kind for kind in NORMS}, "LN")


def _feed_forward(settings: Settings, d_model: int) -> dict[str, Any]:
    if settings.flag("attn_only", False):
        settings.ignore("act_fn", "d_mlp")
        return {"feed_forward": "none"}
    activations = GATED_ACTIVATION_NAMES if settings.flag("gated_mlp", False) else ACTIVATION_NAMES
    return {"feed_forward": settings.choice("act_fn", activations), "d_mlp": settings.whole("d_mlp", 4 * d_model)}


def _window(settings: Settings, n_ctx: int) -> dict[str, Any]:
    kinds = set(settings.words("attn_types"))
    if not settings.flag("use_local_attn", False) or kinds == {"global"}:
        return {}
    window = settings.whole("window_size")
    if kinds != {"local"}:
        raise UserError(
            f"by {settings.path} layers have attn_types of {len(kinds)} kinds, which isn't read in this format. Give"
            " the model as a Hugging Face folder, or choose another."
        )
    return {"attention": "local", "attention_window": window} if window < n_ctx else {}


def _require_scale(settings: Settings, architecture: Architecture) -> None:
    scale, usual = settings.number("attn_scale", -1, above=-2), architecture.head_width**0.5
    if scale != -1 and not math.isclose(scale, usual, rel_tol=1e-6):
        raise UserError(
            f"attn_scale must be sqrt(d_head) = {usual:g}, got {scale:g} in {settings.path}: Headstream has no other"
            " scale of scores. Choose another model."
        )


def _biases(stored: StoredTensors, settings: Settings) -> dict[str, bool]:
    """The biases that aren't all zeros: only those of queries, keys and values, only those of outputs, or others, too.

    Raises:
        UserError: gated feed-forward layers have one between their two maps.
    """
    used = set()
    for name in stored.header:
        bias = _BIAS.search(name)
        if bias and stored.read(name).any():
            used.add(bias[1])
    if "b_in" in used and settings.flag("gated_mlp", False):
        raise UserError(
            f"b_in of gated feed-forward layers is not 0 in {settings.path}: TransformerLens adds it after the gate,"
            " and Headstream before. Choose another model."
        )
    of_queries, of_outputs = used & {"b_Q", "b_K", "b_V"}, used & {"b_O"}
    if used - of_queries - of_outputs or (of_queries and of_outputs):
        return {"biases": True}
    return {"qkv_biases": bool(of_queries), "output_biases": bool(of_outputs)}


def _may_be_missing(name: str, architecture: Architecture, stored: StoredTensors) -> bool:
    """True if a bias that a file lacks is 0: old files have none for logits, new ones none in gated layers."""
    end = "mlp.b_out"
    gated = architecture.gated_feed_forward and name.endswith(end)
    return name == "unembed.b_U" or (gated and not any(other.endswith(end) for other in stored.header))


def _tied(stored: StoredTensors) -> bool:
    """True if the unembedding is the transposed embedding."""
    if not {_EMBEDDING, UNEMBEDDING} <= stored.header.keys():
        return False
    shapes = [stored.header[name].shape for name in (_EMBEDDING, UNEMBEDDING)]
    return shapes[0] == shapes[1][::-1] and torch.equal(stored.read(_EMBEDDING), stored.read(UNEMBEDDING).mT)


def _folding_notes(architecture: Architecture, stored: StoredTensors, folded: bool) -> list[str]:
    """Notes on changes to the weights after training, which affect numbers from weights alone."""
    notes = []
    if folded:
        notes.append("norms are folded into the weights after them: numbers from weights alone are of folded ones")
    first = "blocks.0.attn.W_O"
    if architecture.normalization == "layernorm" and first in stored.header:
        W_O = stored.read(first).float()
        if W_O.mean(-1).norm() < CENTRED * W_O.norm():
            notes.append("weights that write to the stream are centred: numbers from weights alone are of centred ones")
    return notes
