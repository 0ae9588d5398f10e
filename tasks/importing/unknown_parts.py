"""Parts of models that Headstream can't represent, recognised by the names of tensors and model types."""

import re

OF_TENSORS = {
    r"value_embed|\bve\b|ve_gate|\bvte\b": "value embeddings",
    r"lora_|adapter": "adapters (LoRA), which must be merged into the weights first",
    r"expert|router|block_sparse_moe|gate_up_proj|\bmoe\b|_(sh)?exps?\b": "experts",
    r"rope_freqs|rope_factors": "scaled rotary positions",
    r"qweight|qzeros|scales|absmax|quant|weight_scale|\bg_idx": "quantised weights",
    r"(q|k)_(layer)?norm|(q|k)_ln|query_norm|key_norm": "norms of queries and keys",
    r"post_feedforward|pre_feedforward|post_self_attn|ln1_post|ln2_post": "norms after sublayers",
    r"cross_?attn|crossattention|encoder_attn|encoder\.": "cross attention",
    r"mlp\.ln\.": "a norm inside the feed-forward layer (SoLU)",
    r"relative_attention_bias|rel_pos|alibi": "positions as a bias of attention",
    r"score\.|classifier|v_head|value_head": "a head that isn't for language",
    r"sinks?\b": "attention sinks",
    r"smear|x0_lambda|resid_lambda|skip_weight|lambdas": "scaled or mixed residual streams",
    r"vision|image|audio": "another modality",
}


def named_part(tensor: str) -> str:
    """An unknown tensor's name, with the part of a model that it probably belongs to."""
    found = next((part for pattern, part in OF_TENSORS.items() if re.search(pattern, tensor)), None)
    return f"{tensor} ({found})" if found else tensor


# Hugging Face model types, and the parts of each that Headstream lacks.
OF_MODEL_TYPES = {
    "gemma3": "a part for images: its text model alone, a gemma3_text, can be read",
    "bloom": "ALiBi",
    "mpt": "ALiBi",
    "falcon": "one norm for both sublayers, or ALiBi",
    "mixtral": "experts",
    "qwen2_moe": "experts",
    "qwen3_moe": "experts",
    "deepseek_v3": "experts and compressed keys",
    "gpt_oss": "experts and attention sinks",
    "granite": "multipliers of embeddings, sublayers and logits",
    "cohere": "one norm for both sublayers and scaled logits",
    "gptj": "one norm for both sublayers",
    "t5": "an encoder",
    "bart": "an encoder",
    "bert": "attention to later tokens",
    "roberta": "attention to later tokens",
    "mamba": "no attention at all",
}
