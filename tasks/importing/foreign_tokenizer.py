"""Reads the tokenizer beside a model's weights: always the model's own, never one trained here."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import is_there, read_json, require_file
from headstream.tasks.importing.foreign_model import ForeignTokenizer

TOKENIZER, OPTIONS = "tokenizer.json", "tokenizer_config.json"
_WHOLE_TEXTS = {"truncation": None, "padding": None}  # overrides in tokenizer.json, which may ask for one length
MAX_TOKENIZER_BYTES = 256 << 20  # those of large vocabularies have 35 MB


def find_tokenizer(folder: Path, config: dict[str, Any]) -> tuple[ForeignTokenizer | None, list[Path], list[str]]:
    """The tokenizer in a folder, its files, and notes for the user; `config` is the model's."""
    path, options = folder / TOKENIZER, folder / OPTIONS
    if is_there(path):
        text, files = json.dumps(read_json(path, MAX_TOKENIZER_BYTES) | _WHOLE_TEXTS), [path]
    elif all(is_there(folder / name) for name in ("vocab.json", "merges.txt")):
        files = [folder / "vocab.json", folder / "merges.txt"]
        text = _byte_level(*files)
    elif is_there(folder / "tokenizer.model"):
        return None, [], ["tokenizer.model isn't read: save the tokenizer as tokenizer.json to have it used"]
    else:
        return None, [], ["there is no tokenizer beside the weights"]
    asked: dict[str, Any] = {}
    if is_there(options):
        asked = read_json(options, MAX_TOKENIZER_BYTES)
        files.append(options)
    tokenizer = read_tokenizer(text, files[0])
    bos, notes = _bos(tokenizer, asked, config)
    return ForeignTokenizer(text, _entries(tokenizer), bos), files, notes


def given_tokenizer(path: Path, d_vocab: int) -> ForeignTokenizer:
    """The tokenizer that a study names for a model that came without one: a tokenizer.json, or its folder.

    Raises:
        UserError: there is none, or it has more ids than the model has rows.
    """
    folder = path if path.is_dir() else path.parent
    if path != folder and path.name != TOKENIZER:
        raise UserError(f"tokenizer must be a file {TOKENIZER} or its folder, got {path}. Rename or convert it.")
    tokenizer, _, notes = find_tokenizer(folder, {})
    if tokenizer is None:
        raise UserError(f"there is no {TOKENIZER} in {folder}: {notes[0]}. Correct the path.")
    tokenizer_notes(path, tokenizer, d_vocab)
    return tokenizer


def read_tokenizer(text: str, path: Path) -> Tokenizer:
    """The tokenizer that a text describes.

    Raises:
        UserError: it describes none that works.
    """
    try:
        tokenizer = Tokenizer.from_str(text)
        tokenizer.encode("a")  # some faults show only in use
    except Exception as error:  # the library has no exception class of its own
        raise UserError(f"{path} does not describe a tokenizer: {error}. Download the file again.") from None
    return tokenizer


def tokenizer_notes(path: Path, tokenizer: ForeignTokenizer | None, d_vocab: int) -> list[str]:
    """Notes on a vocabulary whose size differs from the tokenizer's.

    Raises:
        UserError: the tokenizer has ids that the model has no row for.
    """
    if tokenizer is None or tokenizer.entries == d_vocab:
        return []
    if tokenizer.entries > d_vocab:
        raise UserError(
            f"the tokenizer of {path} has {tokenizer.entries:,} ids, more than the {d_vocab:,} rows of the embedding."
            " Give the tokenizer that belongs to the model."
        )
    return [f"the embedding has {d_vocab - tokenizer.entries:,} more rows than the tokenizer has ids"]


def _entries(tokenizer: Tokenizer) -> int:
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)


def _byte_level(vocabulary: Path, merges: Path) -> str:
    """A tokenizer of GPT-2's kind, from the two files of its older format."""
    read_json(vocabulary, MAX_TOKENIZER_BYTES)
    try:
        tokenizer = Tokenizer(models.BPE.from_file(str(vocabulary), str(require_file(merges))))
    except Exception as error:  # the library has no exception class of its own
        raise UserError(f"{vocabulary} and {merges} don't make a tokenizer: {error}. Download both again.") from None
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer.to_str()


def _bos(tokenizer: Tokenizer, options: dict[str, Any], config: dict[str, Any]) -> tuple[int | None, list[str]]:
    """The token that training put before each document, and notes where the files contradict each other.

    It is the one that the options ask for; else the one that the tokenizer adds; else the config's, unless that one
    ends documents, too.
    """
    asks, named, added = options.get("add_bos_token"), _named(tokenizer, options), _added(tokenizer)
    in_config, ends = config.get("bos_token_id"), config.get("eos_token_id")
    if in_config not in range(_entries(tokenizer)):
        in_config = None
    separates = in_config in (ends if isinstance(ends, list) else [ends])

    def spelled(token: int | None) -> str:
        return "nothing" if token is None else str(tokenizer.id_to_token(token))

    notes = []
    if asks is False or (asks is True and named is not None):
        bos = named if asks else None
        if bos != added:
            notes.append(
                f"{OPTIONS} puts {spelled(bos)} before a text, and {TOKENIZER} {spelled(added)}: the first counts"
            )
    else:
        bos = in_config if added is None and not separates else added
        if asks is True:
            notes.append(f"{OPTIONS} asks for a BOS that the tokenizer hasn't got")
        elif bos is None and in_config is not None:
            notes.append(f"{spelled(in_config)} separates documents, so it isn't BOS")
    if bos is not None and in_config not in (None, bos):
        notes.append(f"the config's BOS is {spelled(in_config)}, and documents are read with {spelled(bos)}")
    return bos, notes


def _named(tokenizer: Tokenizer, options: dict[str, Any]) -> int | None:
    """The token that the options call BOS."""
    named = options.get("bos_token")
    named = named.get("content") if isinstance(named, dict) else named
    return tokenizer.token_to_id(named) if isinstance(named, str) else None


def _added(tokenizer: Tokenizer) -> int | None:
    """The token that the tokenizer itself puts before a text."""
    encoding = tokenizer.encode("a")
    return encoding.ids[0] if encoding.special_tokens_mask[:1] == [1] else None
