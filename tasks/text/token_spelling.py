"""The spelling of tokens in bytes, for any kind of tokenizer."""

import re

from tokenizers import Tokenizer

# Byte-level BPE writes a byte as its own character if that is printable, and otherwise as one from U+0100 upwards.
_PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = {chr(byte): byte for byte in _PRINTED} | {
    chr(0x100 + index): byte for index, byte in enumerate(sorted(set(range(256)) - set(_PRINTED)))
}
SENTENCEPIECE_SPACE = "\u2581"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def spelled_tokens(tokenizer: Tokenizer, vocabulary: int) -> list[bytes]:
    """The bytes of each id of a vocabulary; a name for special tokens, and for ids that no token has."""
    names, special = tokenizer.get_vocab(), {each.content for each in tokenizer.get_added_tokens_decoder().values()}
    spelled = [f"<unused {token}>".encode() for token in range(vocabulary)]
    byte_level = "ByteLevel" in str(tokenizer.decoder)  # alone, or in a sequence of decoders
    for name, token in names.items():
        if name in special:
            spelled[token] = name.encode()
        elif byte_level and all(sign in _BYTES for sign in name):
            spelled[token] = bytes(_BYTES[sign] for sign in name)
        elif byte := _BYTE_TOKEN.fullmatch(name):
            spelled[token] = bytes.fromhex(byte[1])
        else:
            spelled[token] = name.replace(SENTENCEPIECE_SPACE, " ").encode()
    return spelled
