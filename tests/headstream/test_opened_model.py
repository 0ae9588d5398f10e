"""A model in Python: its checkpoints, and what it computes on a text, against the plain forward pass."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import torch

import headstream as hs
from headstream.attention_on_text import Attention
from headstream.opened_model import StudyModel

TEXT = "the river runs to the river"


@pytest.fixture(scope="module")
def model(home) -> StudyModel:
    return hs.open("ours").model(seed=0)


def test_attention_is_by_head_over_the_tokens_of_the_text(model):
    attention = model.attention(TEXT)
    assert attention.tokens[0] == "<|bos|>"
    assert "".join(attention.tokens[1:]).replace("·", " ") == TEXT
    n = len(attention.tokens)
    assert [tuple(patterns.shape) for patterns in attention.layers] == [(2, n, n), (3, n, n)]
    assert attention.heads == ["L0H0", "L0H1", "L1H0", "L1H1", "L1H2"]
    assert torch.equal(attention["L1H2"], attention[1, 2])
    assert torch.allclose(attention["L0H1"].sum(1), torch.ones(n))
    assert attention.frame("L1H0").index[1] == f"1 {attention.tokens[1]}"
    with pytest.raises(hs.UserError, match="got 'L2H0'"):
        attention["L2H0"]


def test_attention_is_shown_by_where_it_goes():
    patterns = torch.tensor([[[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.1, 0.2, 0.7, 0], [0.3, 0.1, 0.4, 0.2]]])
    shown = repr(Attention(("<|bos|>", "a", "b", "a"), (0, 7, 8, 7), (patterns,))).splitlines()
    assert shown[0] == "Attention on 4 tokens: <|bos|> a b a"
    # Only the last query has an earlier copy, at 1, which `b` at 2 followed.
    assert shown[2].split() == ["L0H0", "0.30", "0.47", "0.30", "0.40"]


def test_copies_are_those_of_ids_whatever_labels_say():
    patterns = torch.full((1, 4, 4), 0.25).tril()
    shown = repr(Attention(("<|bos|>", "a", "b", "a"), (0, 7, 8, 9), (patterns,))).splitlines()
    assert shown[2].split()[-1] == "-"


def test_a_trace_names_what_the_forward_pass_computes(model):
    trace, n = model.trace(TEXT), len(model.tokens(TEXT))
    assert torch.allclose(trace["logits"], model.module(model.encode(TEXT))[0], atol=1e-5)
    assert list(trace["L1.head_outputs"].shape) == [3, n, 20]
    written = trace["L1.residual_in"] + trace["L1.head_outputs"].sum(0)
    assert torch.allclose(trace["L1.residual_out"], written, atol=1e-5)
    assert torch.equal(trace["L0.pattern"], model.attention(TEXT).layers[0])
    assert trace["logits"].shape[1] == len(model.vocabulary)
    assert "L0.pattern" in repr(trace)
    assert "L0.gates" not in trace


def test_any_checkpoint_is_opened(model):
    first, middle, last = model.steps
    assert model.step == last
    assert model.at(step=first).tokens_seen == 0
    near = model.at(tokens=0.6 * middle / last * model.tokens_seen)
    assert near.step == middle
    assert hs.open("ours").model(seed=0, tokens=0).step == first
    assert not torch.equal(near.module.W_E, model.module.W_E)
    assert f"step {middle} of {last}" in repr(near)


@pytest.mark.parametrize("tokens", [math.inf, -math.inf, math.nan, "5", True, [5]])
def test_tokens_are_a_finite_number(model, tokens):
    with pytest.raises(hs.UserError, match="tokens must be a finite number, got"):
        model.at(tokens=tokens)


def test_any_finite_number_of_tokens_has_a_nearest_checkpoint(model):
    assert model.at(tokens=10**400).step == model.steps[-1]
    assert model.at(tokens=-1).step == model.at(tokens=np.float32(0)).step == model.at(step=0.0).step == 0


@pytest.mark.parametrize("given", [{}, {"step": 0, "tokens": 5}, {"step": 0, "tokens": 0}])
def test_a_checkpoint_is_asked_for_in_one_way(model, given):
    with pytest.raises(hs.UserError, match="give either a step or tokens"):
        model.at(**given)


@pytest.mark.parametrize("step", [True, "0", [0], 0.5, math.nan])
def test_a_step_that_is_none(model, step):
    with pytest.raises(hs.UserError, match=r"no weights were kept at step .*\. Choose one of 0, "):
        model.at(step=step)


@pytest.mark.parametrize("head", [3, None, (1, 2, 3), ("a", "b"), [0, 0], (0.5, 0), "L9H9"])
def test_a_head_that_is_none(model, head):
    with pytest.raises(hs.UserError, match=r"a head must be one of L0H0, .*Choose one\."):
        model.attention("a")[head]


@pytest.mark.parametrize(("text", "message"), [("a" * 70, "must fit n_ctx=64"), ("\ud800", "Unicode"), (7, "Unicode")])
def test_a_text_that_is_none_or_too_long(model, text, message):
    with pytest.raises(hs.UserError, match=message):
        model.attention(text)


def test_no_text_is_bos_alone(model):
    assert model.attention("")["L0H0"].tolist() == [[1.0]]
    assert "L0H0" in repr(model.attention(""))


def test_a_module_can_be_sent_to_another_process(model):
    assert torch.equal(pickle.loads(pickle.dumps(model.module)).W_E, model.module.W_E)


# Prompts

PAIRS = pd.DataFrame(
    {"prompt": ["the river", "a hill"] * 6, "corrupt": ["the hill", "a river"] * 6, "answer": " runs", "wrong": " sees"}
)


def test_a_model_is_asked_by_pairs_of_prompts(model):
    asked = model.prompts(
        PAIRS.assign(prompt=[f"{text} {'runs ' * i}" for i, text in enumerate(PAIRS.prompt)]), pairs=12
    )
    assert set(asked.pairs.columns) >= {"prompt", "corrupt", "why_dropped"}
    assert asked.why_refused or asked.scores.n_pairs >= 8
    assert repr(asked).startswith("prompts: ")
    shipped = model.prompts("repeats", pairs=16)
    assert shipped.scores.n_pairs == 16
    assert "16 pairs, 0 dropped; right in" in repr(shipped)
    with pytest.raises(hs.UserError, match=r"prompts must be a file or one of repeats, ioi.*got 'iio'"):
        model.prompts("iio")


def test_heads_are_patched_on_one_pair(model):
    effects = model.patch("7 8 7", "7 9 7", "q", "z")
    assert set(effects.index) == {"L0H0", "L0H1", "L1H0", "L1H1", "L1H2"}
    assert effects.attrs["difference_nats"] != 0
    assert (effects.effect_nats.abs().diff().dropna() <= 0).all()
    assert (effects.share - effects.effect_nats / effects.attrs["difference_nats"]).abs().max() < 1e-9
    with pytest.raises(hs.UserError, match="the pair can't be compared: the prompts are the same"):
        model.patch("the river", "the river", "a", "b")


# Heads switched off, and what comes next


def test_heads_are_switched_off_as_their_weights_would_be(model):
    again = hs.open("ours").model(seed=0)
    again.module.layers[0].attention.W_O.data[1] = 0
    for switched, without in (
        (model.trace(TEXT, off=["L0H1"])["logits"], again.trace(TEXT)["logits"]),
        (model.attention(TEXT, off="L0H1")["L1H2"], again.attention(TEXT)["L1H2"]),
    ):
        assert torch.allclose(switched, without, atol=1e-5)
    assert model.loss(TEXT, off=["L0H1"]) == pytest.approx(again.loss(TEXT), abs=1e-5)
    intact = model.trace(TEXT)["logits"]
    by_kind = {kind: model.trace(TEXT, off=["L0H1"], replace=kind)["logits"] for kind in ("zero", "mean", "resample")}
    assert all(not torch.allclose(logits, intact, atol=1e-4) for logits in by_kind.values())
    assert not torch.allclose(by_kind["mean"], by_kind["zero"], atol=1e-5)
    assert not torch.allclose(by_kind["mean"], by_kind["resample"], atol=1e-5)
    with pytest.raises(hs.UserError, match=r"no head 'L0H7' to switch off\. Did you mean 'L0H"):
        model.loss(TEXT, off=["L0H7"])
    with pytest.raises(hs.UserError, match="replace must be 'zero', 'mean' or 'resample', got 'noise'"):
        model.loss(TEXT, off=["L0H1"], replace="noise")


def test_what_comes_next_is_what_the_module_says(model):
    logits = model.module(model.encode(TEXT))[0]
    found = model.next(TEXT, n=3)
    assert list(found.index) == [model.vocabulary[token] for token in logits[-1].topk(3).indices.tolist()]
    assert found.probability.tolist() == pytest.approx(logits[-1].softmax(-1).topk(3).values.tolist(), rel=1e-4)
    expected = torch.nn.functional.cross_entropy(logits[:-1], model.encode(TEXT)[0, 1:]).item()
    assert model.loss(TEXT) == pytest.approx(expected, rel=1e-5)
    lens = model.logit_lens(TEXT)
    assert list(lens.columns) == ["R0", "R1", "R2"]
    assert lens.R2.iloc[-1] == found.index[0]


def test_texts_go_on_the_same_for_the_same_seed(model):
    first, again, other = (model.generate(TEXT, n=12, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first.startswith(TEXT)
    likeliest = model.generate(TEXT, n=1, temperature=0)
    token = model.module(model.encode(TEXT))[0, -1]
    token[model.bos] = -torch.inf
    assert likeliest == TEXT + model._tokens.tokenizer.decode([int(token.argmax())], skip_special_tokens=False)
