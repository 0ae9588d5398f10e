"""A model in a Hugging Face folder: config.json, safetensors in one file or in shards, and a tokenizer."""

from pathlib import Path
from typing import Any

from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import is_there, read_json
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.foreign_tokenizer import find_tokenizer
from headstream.tasks.importing.gemma_families import GEMMA, GEMMA2, GEMMA3
from headstream.tasks.importing.gpt2_family import GPT2
from headstream.tasks.importing.gpt_neo_family import GPT_NEO
from headstream.tasks.importing.gpt_neox_family import GPT_NEOX
from headstream.tasks.importing.huggingface_family import Family
from headstream.tasks.importing.llama_families import LLAMA, MISTRAL, QWEN2
from headstream.tasks.importing.olmo_families import OLMO, OLMO2
from headstream.tasks.importing.opt_family import OPT
from headstream.tasks.importing.phi3_family import PHI3
from headstream.tasks.importing.phi_family import PHI
from headstream.tasks.importing.placements import Origin, PlacedTensors, checked_model
from headstream.tasks.importing.qwen3_family import QWEN3
from headstream.tasks.importing.settings import Settings, checked_architecture
from headstream.tasks.importing.stored_tensors import StoredTensors, open_safetensors
from headstream.tasks.importing.unknown_parts import OF_MODEL_TYPES
from headstream.tasks.study.mistakes import word

FAMILIES = {
    family.model_type: family
    for family in (
        *(GPT2, GPT_NEO, GPT_NEOX, LLAMA, MISTRAL, QWEN2, QWEN3, OLMO, OLMO2, PHI, PHI3, OPT, GEMMA, GEMMA2, GEMMA3),
    )
}
WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
MAX_INDEX_BYTES = 64 << 20

# Settings that ask, in any family, for parts that Headstream lacks: their neutral values, and the part.
_NEUTRAL: dict[str, tuple[tuple[Any, ...], str]] = {
    "quantization_config": ((None,), "quantised weights"),
    "compression_config": ((None,), "quantised weights"),
    "auto_map": ((None,), "way to run code that comes with a model"),
    "is_encoder_decoder": ((False,), "encoder"),
    "add_cross_attention": ((False,), "cross attention"),
    "vision_config": ((None,), "modality but text"),
    "text_config": ((None,), "modality but text"),
    "num_experts": ((None, 0, 1), "experts"),
    "num_local_experts": ((None, 0, 1), "experts"),
    "n_routed_experts": ((None, 0), "experts"),
    "alibi": ((False,), "ALiBi"),
    "use_alibi": ((False,), "ALiBi"),
    "attn_logit_softcapping": ((None,), "soft-capped scores"),
    "final_logit_softcapping": ((None,), "soft-capped logits"),
    "logits_soft_cap": ((None,), "soft-capped logits"),
    "embedding_multiplier": ((1,), "scaled embeddings"),
    "scale_emb": ((1,), "scaled embeddings"),
    "scale_embedding": ((False,), "scaled embeddings"),
    "residual_multiplier": ((1,), "scaled sublayers"),
    "attention_multiplier": ((None,), "scale of scores but 1 / sqrt(d_head)"),
    "query_pre_attn_scalar": ((None,), "scale of scores but 1 / sqrt(d_head)"),
    "logits_scaling": ((1,), "scaled logits"),
    "logit_scale": ((None, 1), "scaled logits"),
    "qk_layernorm": ((False,), "LayerNorm of queries and keys"),
    "use_qk_norm": ((False,), "norms of queries and keys by this config"),
    "per_layer_config": ((None, {}), "settings that differ by layer"),
    "no_rope_layers": ((None, []), "rotary positions in some layers alone"),
}
# Settings that don't affect what a trained model computes.
_OF_NO_CONSEQUENCE = """
_name_or_path _attn_implementation architectures attention_dropout attn_pdrop bad_words_ids begin_suppress_tokens
bos_token_id chunk_size_feed_forward classifier_dropout decoder_start_token_id diversity_penalty do_sample dtype
early_stopping embd_pdrop encoder_no_repeat_ngram_size eos_token_id exponential_decay_length_penalty
finetuning_task forced_bos_token_id forced_eos_token_id gradient_checkpointing hidden_dropout id2label initializer_range
is_decoder keys_to_ignore_at_inference label2id layer_types length_penalty max_length min_length model_type
no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_attentions output_hidden_states output_scores
pad_token_id prefix problem_type remove_invalid_values repetition_penalty resid_pdrop return_dict
return_dict_in_generate sep_token_id suppress_tokens summary_activation summary_first_dropout summary_proj_to_labels
summary_type summary_use_proj task_specific_params temperature tie_encoder_decoder tokenizer_class top_k top_p
torch_dtype torchscript transformers.js_config
transformers_version typical_p unk_token_id use_bfloat16 use_cache use_return_dict vocab_size
"""


def open_huggingface(folder: Path) -> ForeignModel:
    """Open the model in a Hugging Face folder.

    Raises:
        UserError: it is incomplete, contradicts itself, or has parts that Headstream can't represent.
    """
    config = read_json(folder / CONFIG)
    settings = Settings(config, folder / CONFIG)
    family = _family_of(config, settings.path)
    for name, (neutral, part) in _NEUTRAL.items():
        if name not in family.defines:
            settings.must_be(name, neutral, part)
    d_vocab = settings.whole("vocab_size")
    architecture = checked_architecture(settings.path, **family.fields(settings))
    stored, weight_files = open_weights(folder)
    tokenizer, tokenizer_files, notes = find_tokenizer(folder, config)
    settings.ignore(*_OF_NO_CONSEQUENCE.split())
    notes += settings.notes
    if settings.whole("max_position_embeddings", 0) > architecture.n_ctx:
        notes.append(f"it can read more positions than the {architecture.n_ctx:,} that Headstream takes")
    tied = architecture.tied_embeddings
    tensors = PlacedTensors(
        path=folder,
        stored=stored.renamed(family.full_name),
        placements=family.placements(architecture, config),
        buffers=family.buffers,
        copies={family.unembedding: family.embedding} if tied else {},
    )
    files = [settings.path, *weight_files, *tokenizer_files]
    format = f"huggingface {family.model_type}"
    return checked_model(Origin(format, files, tokenizer, notes), tensors, architecture, d_vocab)


def _family_of(config: dict[str, Any], path: Path) -> Family:
    kind = config.get("model_type")
    if isinstance(kind, str) and kind in FAMILIES:
        return FAMILIES[kind]
    parts = OF_MODEL_TYPES.get(str(kind))
    lacking = f" {kind} has {parts}, which Headstream can't represent." if parts else ""
    raise UserError(
        f"model_type must be one of {', '.join(FAMILIES)}, got {word(kind)} in {path}.{lacking} Choose another model."
    )


def open_weights(folder: Path) -> tuple[StoredTensors, list[Path]]:
    """The tensors in a folder, and the files that hold them.

    Raises:
        UserError: there are none, or some are missing.
    """
    if is_there(folder / "adapter_config.json"):
        raise UserError(
            f"{folder} holds an adapter (LoRA), not a whole model. Merge it into its model (`merge_and_unload` of"
            " peft), save that, and give its folder."
        )
    if is_there(folder / WEIGHTS):
        return open_safetensors((folder / WEIGHTS,)), [folder / WEIGHTS]
    if is_there(folder / INDEX):
        return _open_shards(folder)
    pickled = sorted([*folder.glob("*.bin"), *folder.glob("*.pt*")])
    if pickled:
        raise UserError(
            f"{pickled[0].name} in {folder} could run code when it is read, so it isn't; only {WEIGHTS} is. If you"
            " trust it, load it with transformers and `save_pretrained` it again."
        )
    raise UserError(f"{folder} has neither {WEIGHTS} nor {INDEX}. Download the whole model.")


def _open_shards(folder: Path) -> tuple[StoredTensors, list[Path]]:
    index = folder / INDEX
    places = read_json(index, MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(shard, str) for shard in places.values()):
        raise UserError(f"{index} has no weight_map from tensors to files. Download the file again.")
    shards = sorted(set(places.values()))
    for shard in shards:
        if shard != Path(shard).name or not shard.endswith(".safetensors"):
            raise UserError(
                f"{index} names {word(shard)}, which isn't a safetensors file beside it. Download the file again."
            )
    missing = [shard for shard in shards if not is_there(folder / shard)]
    if missing:
        raise UserError(
            f"{folder} lacks {missing[0]}, one of {len(shards)} shards that {INDEX} names. Download the missing"
            f" file{'s' if len(missing) > 1 else ''}."
        )
    stored = open_safetensors(tuple(folder / shard for shard in shards))
    for name, shard in places.items():
        if name not in stored.header:
            raise UserError(f"{shard} lacks {name}, which it has by {index}. Download the model again.")
    return stored, [index, *(folder / shard for shard in shards)]
