"""Certificates: what is right passes with the numbers of slow counts, and what is wrong is no model to be measured."""

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import tiny_tokens, tokens_without_bos
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from written_models import llama_architecture, llama_config, llama_tensors, random_weights, write_folder

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.errors import WorkError
from headstream.tasks.importing.certificate import PARITY_BAR, TriedOn, certify
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.reference.forward import reference_logits
from headstream.tasks.importing.settings import Settings
from headstream.tasks.importing.text_checks import tokenizer_checks
from headstream.tasks.results.tables import write_table
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

N_CTX = 16


def texts_of(tokens: Tokens) -> list[str]:
    """Two documents of validation text: what its stream holds, decoded."""
    starts = [*tokens.document_starts("validation"), len(tokens.validation)]
    return [tokens.tokenizer.decode(tokens.validation.read(*starts[i : i + 2])) for i in range(2)]


def bigram_logits(tokens: Tokens) -> torch.Tensor:
    """Log probabilities of the next token by counts of the training text."""
    counts = np.ones((tokens.vocabulary, tokens.vocabulary))
    stream = tokens.train.read(0, len(tokens.train)).astype(int)
    np.add.at(counts, (stream[:-1], stream[1:]), 100)
    return torch.from_numpy(np.log(counts / counts.sum(1, keepdims=True))).float()


def bigram_model(folder: Path, tokens: Tokens, **options: object) -> tuple[ForeignModel, Transformer]:
    """A model that has learned bigrams and nothing else, as it is found in a folder."""
    shape = {"n_layers": 0, "n_heads": 1, "d_model": tokens.vocabulary, "n_ctx": N_CTX, **options}
    model = Transformer(Architecture(**shape), tokens.vocabulary).initialize(torch.Generator().manual_seed(0))
    for layer in model.layers:
        layer.attention.W_O.data.mul_(0)
    model.W_E.data, model.W_U_free.data = torch.eye(tokens.vocabulary), bigram_logits(tokens)
    write_model_card(folder, model, 1)
    save_checkpoint(folder, model, 5)
    return open_foreign(folder), model.requires_grad_(False)


def certificate(
    foreign: ForeignModel,
    model: Transformer,
    tokens: Tokens,
    texts: Sequence[str] | None = None,
    prompt: str | None = None,
    **options: object,
) -> dict[str, dict[str, object]]:
    tried_on = TriedOn(tokens, texts_of(tokens) if texts is None else texts, prompt)
    rows = certify(model, foreign, tried_on, **options)
    return {row.pop("checked"): row for row in rows}


@pytest.mark.parametrize("folder", [tiny_tokens, tokens_without_bos])
def test_a_model_read_right_passes_with_the_numbers_of_slow_counts(folder, tmp_path):
    tokens = Tokens.open(folder())
    foreign, model = bigram_model(tmp_path, tokens)
    texts = [texts_of(tokens)[0], "a", ""]
    found = certificate(foreign, model, tokens, texts, prompt="the sea")
    assert {name: row["passed"] for name, row in found.items()} == {
        "finite": True, "parity": True, "round_trip": None, "unknown_tokens": None, "loss_nats": True,
        "loss_bits_per_byte": True, "continuation": None,
    }  # fmt: skip
    assert found["finite"]["value"] == found["unknown_tokens"]["value"] == 0
    assert found["parity"]["value"] < found["parity"]["bar"] == 1e-6
    assert found["round_trip"]["value"] == 1

    bos = [tokens.bos] if tokens.bos >= 0 else []
    logs, counts = bigram_logits(tokens), tokens.counts
    p = (counts + np.count_nonzero(counts) / len(counts)) / (counts.sum() + np.count_nonzero(counts))
    nats = unigram = n = n_bytes = 0
    for text in texts:
        ids = (bos + tokens.tokenizer.encode(text).ids)[: N_CTX + 1]
        for before, after in pairwise(ids):
            nats, unigram, n = nats - float(logs[before, after]), unigram - math.log(p[after]), n + 1
            n_bytes += len(tokens.token_bytes[after])
    assert found["loss_nats"]["value"] == pytest.approx(nats / n, abs=1e-5)
    assert found["loss_nats"]["bar"] == pytest.approx(unigram / n)
    assert found["loss_bits_per_byte"]["value"] == pytest.approx(nats / n_bytes / math.log(2), abs=1e-5)

    ids = bos + tokens.tokenizer.encode("the sea").ids
    new: list[int] = []
    while len(ids + new) <= N_CTX:
        new.append(int(logs[(ids + new)[-1]].argmax()))
    assert found["continuation"]["detail"] == f"'the sea' goes on with {tokens.tokenizer.decode(new)!r}"

    rows = [{"model_id": "m", "step": 5, "checked": name, **row} for name, row in found.items()]
    assert write_table(tmp_path, "certificates", rows).exists()


def failure(*args: object, **options: object) -> str:
    with pytest.raises(WorkError) as failed:
        certificate(*args, **options)
    assert "\n" not in str(failed.value)
    return str(failed.value)


def test_one_misplaced_weight_is_a_failed_certificate(tmp_path):
    tokens = Tokens.open(tiny_tokens())
    foreign, model = bigram_model(tmp_path, tokens)
    model.W_E.data[int(tokens.validation.read(3, 4)[0])] *= 1.001
    assert "certificate: logits differ by" in failure(foreign, model, tokens)


SHARP = {"n_layers": 12, "n_heads": 3, "d_model": 23, "d_head": 6, "n_ctx": N_CTX, "normalization": "rmsnorm"}
SHARP_KINDS: list[dict[str, object]] = [
    {"positions": "rotary", "norm_epsilon": 1e-5},
    {"positions": "learned", "norm_epsilon": 1e-5, "feed_forward": "gelu", "tied_embeddings": True},
    {"positions": "sinusoidal", "norm_epsilon": 1e-5, "feed_forward": "swiglu", "n_key_value_heads": 1},
]


def sharp_model(folder: Path, tokens: Tokens, options: dict[str, object]) -> tuple[ForeignModel, Transformer]:
    """A random model whose scores are so far apart that rounding to float32 can move attention from key to key."""
    model = Transformer(Architecture(**SHARP, **options), tokens.vocabulary).requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        parameter.data.normal_(0, 5 if ".W_Q" in name or ".W_K" in name else 1, generator=generator)
    write_model_card(folder, model, 1)
    save_checkpoint(folder, model, 5)
    return open_foreign(folder), model


@pytest.mark.parametrize("options", SHARP_KINDS)
def test_a_model_whose_attention_is_sharp_passes_and_keeps_its_weights(options, tmp_path):
    tokens = Tokens.open(tiny_tokens())
    foreign, model = sharp_model(tmp_path, tokens, options)
    ids = torch.from_numpy(tokens.validation.spread_windows(2, N_CTX))
    expected = reference_logits(foreign, ids)
    assert (model(ids) - expected).abs().max() > 10 * PARITY_BAR * expected.std()  # in float32
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    found = certificate(foreign, model, tokens, untrained=True)
    assert found["parity"]["passed"] is True
    assert found["parity"]["value"] < 1e-9
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())
    model.load_state_dict(foreign.read_weights())  # as the next checkpoint of a history is


def test_an_epsilon_read_wrong_is_a_failed_certificate(tmp_path):
    tokens = Tokens.open(tiny_tokens())
    foreign, _ = sharp_model(tmp_path, tokens, SHARP_KINDS[0])
    misread = Transformer(Architecture(**SHARP, positions="rotary", norm_epsilon=1e-6), tokens.vocabulary)
    misread.load_state_dict(foreign.read_weights())
    assert "certificate: logits differ by" in failure(foreign, misread, tokens, untrained=True)


def test_a_setting_that_was_passed_over_is_a_failed_certificate(tmp_path, monkeypatch):
    tokens = Tokens.open(tiny_tokens())
    a = llama_architecture(n_layers=1)
    write_folder(tmp_path, llama_config(a), llama_tensors(a, random_weights(a, tokens.vocabulary)), n_ids=None)
    config = llama_config(a) | {"vocab_size": tokens.vocabulary, "rope_scaling": {"type": "yarn", "factor": 2.0}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(Settings, "must_be", lambda settings, name, neutral, part: None)
    foreign = open_foreign(tmp_path)
    model = Transformer(foreign.architecture, foreign.d_vocab)
    model.load_state_dict(foreign.read_weights())
    assert "certificate: the file says rope_type = 'yarn', which Headstream passed over" in failure(
        foreign, model, tokens
    )


def test_weights_that_are_no_numbers_fail_first(tmp_path):
    tokens = Tokens.open(tiny_tokens())
    foreign, model = bigram_model(tmp_path, tokens)
    model.W_E.data[0, :3] = torch.nan
    assert "certificate: 3 weights are infinite or not numbers" in failure(foreign, model, tokens)


def test_a_model_that_predicts_worse_than_counts_fails_unless_it_is_told_to_be_untrained(tmp_path):
    tokens = Tokens.open(tiny_tokens())
    foreign, model = bigram_model(tmp_path, tokens)
    model.W_U_free.data.copy_(model.W_U_free.data.flip(1))
    save_checkpoint(tmp_path, model, 5)
    said = failure(foreign, model, tokens)
    assert "certificate: the loss on the corpus is" in said
    assert "no better than that of token counts" in said
    told = certificate(foreign, model, tokens, untrained=True)
    assert told["loss_nats"]["passed"] is None
    assert told["loss_nats"]["bar"] is None


def test_what_cant_be_checked_is_said_and_not_passed(tmp_path):
    tokens = Tokens.open(tiny_tokens())
    gated = {"n_layers": 1, "d_head": 4, "gates": "dynamic"}
    foreign, model = bigram_model(tmp_path, tokens, **gated)
    found = certificate(foreign, model, tokens, texts=[])
    assert found["parity"]["value"] is found["parity"]["passed"] is None
    assert "gates = 'dynamic'" in found["parity"]["detail"]
    assert all(found[name]["value"] is None for name in ("round_trip", "unknown_tokens", "loss_nats"))


def test_documents_that_dont_survive_a_tokenizer_and_unknown_tokens_are_counted():
    words = Tokenizer(WordLevel({"?": 0, "a": 1, "b": 2}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    round_trip, unknown = tokenizer_checks(words, ["a b", "a c b", "b", "a"])
    assert round_trip.value == 0.75
    assert "has '? b' for 'c b'" in round_trip.detail
    assert unknown.value == pytest.approx(1 / 7)
    assert round_trip.passed is None
