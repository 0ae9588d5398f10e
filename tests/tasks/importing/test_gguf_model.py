"""GGUF files: every weight where it belongs, blocks decoded, and whatever doesn't fit refused in a line."""

import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from written_models import D_VOCAB, llama_architecture, llama_config, llama_tensors, random_weights, write_folder

from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing import gguf_codings
from headstream.tasks.importing.gguf_header import GgufTensor, read_header
from headstream.tasks.importing.open_foreign import open_foreign

pytest.importorskip("gguf", reason="GGUF files are written with gguf, of the extra [models]")
from gguf import GGMLQuantizationType, dequantize, quantize
from written_gguf import byte_level_metadata, gguf_architecture, gguf_tensors, write_gguf

ARCHITECTURES = {
    "grouped": gguf_architecture(),
    "tied, a key a head": gguf_architecture(n_key_value_heads=None, tied_embeddings=True),
    "biases of queries, keys and values": gguf_architecture(qkv_biases=True),
    "all biases, one head": gguf_architecture(biases=True, n_heads=1, n_key_value_heads=None, d_head=6),
    "part of a head turned": gguf_architecture(rotary_fraction=0.5, d_value=3),
}


def written(path: Path, name: str = "grouped", **options: object) -> Path:
    architecture = ARCHITECTURES[name]
    return write_gguf(
        path / "m.gguf", architecture, gguf_tensors(architecture, random_weights(architecture)), **options
    )


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as refused:
        open_foreign(path).read_weights()
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_weight_is_where_it_belongs(name, tmp_path):
    model = open_foreign(written(tmp_path, name))
    expected = ARCHITECTURES[name]
    assert model.architecture == expected
    assert (model.format, model.d_vocab, model.dtype, model.notes) == ("gguf llama", D_VOCAB, "F32", ())
    read, weights = model.read_weights(), random_weights(expected)
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[each], weights[each]) for each in weights)


def test_the_same_llama_of_hugging_face_computes_the_same(tmp_path):
    """Whose rotary pairs lie half a head apart, where GGUF's are neighbours."""
    a = llama_architecture()
    weights = random_weights(a)
    write_folder(tmp_path / "folder", llama_config(a), llama_tensors(a, weights))
    half = a.head_width // 2
    order = [place for pair in range(half) for place in (pair, pair + half)]
    turned = {
        name: tensor[..., order] if name.endswith(("W_Q", "W_K_shared")) else tensor for name, tensor in weights.items()
    }
    gguf = write_gguf(tmp_path / "m.gguf", gguf_architecture(), gguf_tensors(a, turned))
    logits = []
    for path in (tmp_path / "folder", gguf):
        opened = open_foreign(path)
        model = Transformer(opened.architecture, opened.d_vocab)
        model.load_state_dict(opened.read_weights())
        logits.append(model.double()(torch.arange(2 * 13).reshape(2, 13)))
    torch.testing.assert_close(
        *logits, rtol=0, atol=1e-5
    )  # epsilon and base are float32 in the one, float64 in the other


def test_a_block_is_decoded_as_its_format_defines():
    """Q8_0: a half-precision scale, and 32 signed bytes. Source: ggml's block_q8_0."""
    signs = list(range(-16, 16))
    block = struct.pack("<e32b", 0.5, *signs) + struct.pack("<e32b", -2.0, *signs)
    tensor = GgufTensor((2, 32), int(GGMLQuantizationType.Q8_0), 3)
    found = gguf_codings.decoded(np.frombuffer(b"abc" + block, np.uint8), tensor)
    assert found.tolist() == [[sign / 2 for sign in signs], [-2.0 * sign for sign in signs]]


@pytest.mark.parametrize("coding", ["F16", "BF16", "Q4_1", "Q8_0"])
def test_coded_numbers_are_decoded_and_told(coding, tmp_path):
    a = gguf_architecture(d_model=32, d_mlp=64, n_heads=8, n_key_value_heads=4)
    weights = random_weights(a)
    kind = GGMLQuantizationType[coding]
    model = open_foreign(write_gguf(tmp_path / "m.gguf", a, gguf_tensors(a, weights), kind))
    assert model.dtype == f"{coding} and F32" if coding == "BF16" else f"F32 and {coding}"
    assert f"{model.dtype} weights are decoded to float32" in model.notes
    read = model.read_weights()
    rounded = torch.from_numpy(dequantize(quantize(weights["W_E"].numpy(), kind), kind))
    assert torch.equal(read["W_E"], rounded)
    assert not torch.equal(read["W_E"], weights["W_E"])
    for name in weights:
        torch.testing.assert_close(read[name], weights[name], rtol=0, atol=0.4 if coding == "Q4_1" else 0.03)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"expert_count": 8}, "experts"),
        ({"rope.scaling.type": "yarn"}, "scaled rotary positions"),
        ({"attention.head_count": None}, "has no attention.head_count"),
        ({"attention.head_count": "six"}, "a whole number"),
        ({"attention.layer_norm_rms_epsilon": None}, "has no attention.layer_norm_rms_epsilon"),
        ({"block_count": 3}, "blk.2"),
        ({"feed_forward_length": 30}, "ffn_gate.weight has shape [31, 17]"),
        ({"block_count": 100}, "n_layers"),
        ({"vocab_size": 30}, "token_embd.weight has shape [37, 17]"),
    ],
)
def test_what_a_file_says_and_headstream_lacks_is_named(metadata, words, tmp_path):
    assert words in refusal(written(tmp_path, metadata=metadata))


@pytest.mark.parametrize(
    ("metadata", "tokenizer", "told"),
    [
        ({}, {}, ""),
        ({"attention.sliding_window": 7}, {}, "attention.sliding_window"),
        ({"rope.scaling.yarn_log_multiplier": 0.1}, {}, "rope.scaling.yarn_log_multiplier"),
        ({"novel_gate": "on", "other_gate": False}, {}, "novel_gate"),
        (
            {"attention.layer_norm_epsilon": 1e-5, "expert_used_count": 2},
            {},
            "attention.layer_norm_epsilon, expert_used_count",
        ),
        ({"tensor_data_layout": "Meta AI original pth"}, {}, "tensor_data_layout"),
        ({}, {"remove_extra_whitespaces": True}, "tokenizer.ggml.remove_extra_whitespaces"),
        ({}, {"eos_token_id": 1, "add_space_prefix": True, "eot_token_id": 2, "padding_token_id": 3}, ""),
        ({"rope.scaling.original_context_length": 9, "rope.scaling.finetuned": True}, {}, ""),
    ],
)
def test_keys_of_a_file_that_nobody_reads_are_told(metadata, tokenizer, told, tmp_path):
    model = open_foreign(written(tmp_path, metadata=metadata, tokenizer=byte_level_metadata() | tokenizer))
    assert model.notes == ((f"settings that are not read: {told}",) if told else ())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rope_freqs.weight": torch.ones(2)}, "rope_freqs.weight (scaled rotary positions)"),
        ({"blk.0.ffn_gate_exps.weight": torch.ones(2, 3)}, "experts"),
        ({"output_norm.weight": torch.full((17,), torch.nan)}, "17 of 17 weights in output_norm.weight are not finite"),
    ],
)
def test_tensors_that_a_llama_has_not_are_named(change, words, tmp_path):
    a = gguf_architecture()
    tensors = gguf_tensors(a, random_weights(a)) | change
    assert words in refusal(write_gguf(tmp_path / "m.gguf", a, tensors))


def test_other_architectures_are_named(tmp_path):
    assert "general.architecture must be llama, got gemma" in refusal(written(tmp_path, architecture="gemma"))


def without_tokens(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"tokenizer.ggml.tokens", b"tokenizer.ggml.others"))


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("GGUF is a format.")


def another_version(path: Path) -> None:
    edit(path, 4, "<I", 9)


def cut_in_the_head(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:700])


def cut_in_the_tensors(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-64])


def countless_tensors(path: Path) -> None:
    edit(path, 8, "<Q", 1 << 60)


def countless_entries(path: Path) -> None:
    edit(path, 16, "<Q", 1 << 60)


def endless_name(path: Path) -> None:
    edit(path, 24, "<Q", 1 << 62)


def edit(path: Path, place: int, layout: str, number: int) -> None:
    content = bytearray(path.read_bytes())
    struct.pack_into(layout, content, place, number)
    path.write_bytes(content)


def endless_list(path: Path) -> None:
    content = path.read_bytes()
    edit(path, content.index(b"tokenizer.ggml.tokens") + len(b"tokenizer.ggml.tokens") + 8, "<Q", 1 << 50)


def unknown_coding(path: Path) -> None:
    edit(path, coding_place(path), "<I", 77)


def coding_without_decoder(path: Path) -> None:
    edit(path, coding_place(path), "<I", int(GGMLQuantizationType.I8))


def coding_place(path: Path) -> int:
    return path.read_bytes().index(b"token_embd.weight") + len(b"token_embd.weight") + 4 + 2 * 8


def far_tensor(path: Path) -> None:
    edit(path, coding_place(path) + 4, "<Q", 1 << 62)


def huge_tensor(path: Path) -> None:
    edit(path, coding_place(path) - 8, "<Q", 1 << 63)


def no_utf8(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"llama.block_count", b"llama.\xff\xfeock_count"))


@pytest.mark.parametrize(
    "damage",
    [
        without_tokens, nothing, text, another_version, cut_in_the_head, cut_in_the_tensors, countless_tensors,
        countless_entries, endless_name, endless_list, unknown_coding, coding_without_decoder, far_tensor, huge_tensor,
        no_utf8,
    ],
)  # fmt: skip
def test_damaged_and_hostile_files_are_refused_in_a_line(damage: Callable[[Path], None], tmp_path):
    path = written(tmp_path)
    open_foreign(path)
    damage(path)
    said = refusal(path)
    assert str(path) in said
    assert "GGUF file" in said


def test_every_shorter_file_is_refused(tmp_path):
    content = written(tmp_path).read_bytes()
    start = min(tensor.start for tensor in read_header(tmp_path / "m.gguf").tensors.values())
    for length in range(0, start, 23):
        (tmp_path / "short.gguf").write_bytes(content[:length])
        assert "GGUF file" in refusal(tmp_path / "short.gguf")


def test_whatever_bytes_change_in_the_head_it_is_read_or_refused_in_a_line(tmp_path):
    path, rng = written(tmp_path), random.Random(0)
    content = path.read_bytes()
    start = min(tensor.start for tensor in read_header(path).tensors.values())
    outcomes = set()
    for _ in range(200):
        changed = bytearray(content)
        changed[rng.randrange(start)] = rng.randrange(256)
        path.write_bytes(changed)
        try:
            open_foreign(path).read_weights()
            outcomes.add("read")
        except UserError as error:
            outcomes.add(f"refused in {len(str(error).splitlines())} line")
    assert outcomes == {"read", "refused in 1 line"}


def test_without_the_library_the_command_is_told(tmp_path, monkeypatch):
    path = written(tmp_path)
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert "pip install -c constraints.txt -e '.[models]'" in refusal(path)


def test_bos_is_what_the_file_says(tmp_path):
    for said, bos in (({}, None), ({"add_bos_token": True, "bos_token_id": 3}, 3), ({"bos_token_id": 3}, None)):
        path = written(tmp_path, tokenizer=byte_level_metadata() | said)
        assert open_foreign(path).tokenizer.bos == bos
    assert "BOS" in refusal(
        written(tmp_path, tokenizer=byte_level_metadata() | {"add_bos_token": True, "bos_token_id": 99})
    )
