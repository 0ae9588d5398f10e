"""The tokenizer that a GGUF file describes: byte-level BPE by merges, or sentencepiece's BPE by scores.

Control tokens are part of the vocabulary but never read from text: text that spells one out stays text.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from headstream.tasks.text.token_spelling import SENTENCEPIECE_SPACE

NORMAL, UNKNOWN, USER_DEFINED, BYTE = 1, 2, 4, 6  # types of tokens

LLAMA_3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def tokenizer_of(metadata: Mapping[str, Any]) -> Tokenizer:
    """Build the tokenizer that a file's metadata describes.

    Raises:
        ValueError: it is of an unknown kind, or contradicts itself; says which in a few words.
    """
    tokens = _entries(metadata, "tokens", str)
    types = metadata.get("tokenizer.ggml.token_type", [NORMAL] * len(tokens))
    vocabulary = {token: place for place, token in enumerate(tokens)}
    if len(types) != len(tokens) or len(vocabulary) < len(tokens):
        raise ValueError(f"it has {len(tokens):,} tokens, {len(vocabulary):,} different ones, and {len(types):,} types")
    match kind := metadata.get("tokenizer.ggml.model"):
        case "gpt2":
            tokenizer = _byte_level(vocabulary, metadata)
        case "llama":
            tokenizer = _sentencepiece(vocabulary, types, metadata)
        case _:
            raise ValueError(f"it has a tokenizer of the kind {kind!r}, and only 'gpt2' and 'llama' are known")
    own = [token for token, kind in zip(tokens, types, strict=True) if kind == USER_DEFINED]
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in own])
    return tokenizer


def bos_of(metadata: Mapping[str, Any]) -> int | None:
    """The token that begins every text, by the file or else by its kind of tokenizer; None without one."""
    begins = metadata.get("tokenizer.ggml.add_bos_token", metadata.get("tokenizer.ggml.model") == "llama")
    bos = metadata.get("tokenizer.ggml.bos_token_id")
    if not begins or bos is None:
        return None
    n_tokens = len(metadata["tokenizer.ggml.tokens"])
    if bos not in range(n_tokens):
        raise ValueError(f"its BOS is token {bos} of {n_tokens:,}")
    return bos


def _byte_level(vocabulary: Mapping[str, int], metadata: Mapping[str, Any]) -> Tokenizer:
    splits: dict[str, list[pre_tokenizers.PreTokenizer]] = {
        "gpt-2": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
        "smollm": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
        "llama-bpe": [
            pre_tokenizers.Split(Regex(LLAMA_3_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ],
    }
    name = metadata.get("tokenizer.ggml.pre")
    if name not in splits:
        raise ValueError(f"its tokenizer splits words by the rule {name!r}, and only {', '.join(splits)} are known")
    merges = []
    for line in _entries(metadata, "merges", str):
        left, _, right = line.partition(" ")
        if not {left, right, left + right} <= vocabulary.keys():
            raise ValueError(f"it has a merge {line!r} of tokens that it doesn't list")
        merges.append((left, right))
    tokenizer = Tokenizer(models.BPE(dict(vocabulary), merges, ignore_merges=name == "llama-bpe"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits[name])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(vocabulary: Mapping[str, int], types: list[int], metadata: Mapping[str, Any]) -> Tokenizer:
    scores = _entries(metadata, "scores", float)
    if len(scores) != len(vocabulary):
        raise ValueError(f"it has {len(vocabulary):,} tokens and {len(scores):,} scores")
    of_type: dict[int, list[str]] = defaultdict(list)
    for token, place in vocabulary.items():
        of_type[types[place]].append(token)
    merges = merges_by_score({token: scores[vocabulary[token]] for token in of_type.get(NORMAL, [])})
    tokenizer = Tokenizer(
        models.BPE(
            dict(vocabulary),
            merges,
            unk_token=next(iter(of_type.get(UNKNOWN, [])), None),
            fuse_unk=True,
            byte_fallback=BYTE in of_type,
        )
    )
    prefix = metadata.get("tokenizer.ggml.add_space_prefix", True)
    spaces = normalizers.Replace(" ", SENTENCEPIECE_SPACE)
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Prepend(SENTENCEPIECE_SPACE), spaces]) if prefix else spaces
    )
    decoding = [decoders.Replace(SENTENCEPIECE_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(decoding + [decoders.Strip(" ", 1, 0)] * prefix)
    return tokenizer


def merges_by_score(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """Merges of two tokens into a third, by falling score of the third, and then by the order of the two.

    SentencePiece repeatedly joins the neighbours whose union scores highest.
    Source: Kudo & Richardson 2018, SentencePiece, section 3.1.
    """
    place = {token: i for i, token in enumerate(scores)}
    merges = []
    for token in scores:
        for cut in range(1, len(token)):
            if token[:cut] in place and token[cut:] in place:
                merges.append((token[:cut], token[cut:]))
    return sorted(merges, key=lambda pair: (-scores["".join(pair)], place[pair[0]], place[pair[1]]))


def _entries(metadata: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    entries = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(entries, list) or not all(isinstance(entry, kind) for entry in entries):
        raise ValueError(f"it has no list tokenizer.ggml.{name}")
    return entries
