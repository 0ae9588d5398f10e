"""What a model is asked about: text or token ids, one or a batch, with heads switched off in every way."""

import numpy as np
import pandas as pd
import pytest
import torch

import headstream as hs
from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.opened_model import StudyModel
from headstream.switched_off import REFERENCE_WINDOWS, switched_off
from headstream.tasks.text.windows import reference_text

TEXT, OTHER = "the river runs to the river", "a deep sea"


@pytest.fixture(scope="module")
def model(home) -> StudyModel:
    return hs.open("ours").model(seed=0)


def same(found, expected) -> bool:
    """True if two answers of a method are equal."""
    if isinstance(found, pd.DataFrame | pd.Series):
        return found.equals(expected)
    if isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if hasattr(found, "layers"):
        return found.ids == expected.ids and all(map(torch.equal, found.layers, expected.layers))
    return bool(found == expected)


METHODS = ["tokens", "attention", "next", "loss", "generate", "logit_lens"]
ABLATED = METHODS[1:]


@pytest.mark.parametrize("method", METHODS)
def test_token_ids_are_as_good_as_text(model, method):
    ask, ids = getattr(model, method), model.encode(TEXT)[0]
    expected = ask(TEXT)
    for given in (ids, ids.tolist(), tuple(ids.tolist()), ids.numpy(), pd.Series(ids.numpy())):
        assert same(ask(given), expected)


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_is_answered_text_by_text(model, method):
    ask, options = getattr(model, method), {} if method == "tokens" else {"off": ["L0H1"], "replace": "mean"}
    each = [ask(text, **options) for text in (TEXT, OTHER, TEXT)]
    found = ask([TEXT, model.encode(OTHER)[0], model.encode(TEXT)[0].tolist()], **options)
    if method == "loss":
        assert found.tolist() == each
        assert found.name == "loss_nats"
    elif isinstance(found, pd.DataFrame):
        assert found.index.names[0] == "text"
        assert [len(found.loc[i]) for i in range(3)] == [len(frame) for frame in each]
        assert all((found.loc[i].to_numpy() == frame.to_numpy()).all() for i, frame in enumerate(each))
    else:
        assert same(found, each)
    rows = torch.cat([model.encode(TEXT)] * 2)
    assert same(ask(rows), ask([TEXT, TEXT]))
    assert same(ask(rows.numpy()), ask(rows.tolist()))


def test_a_batch_of_equal_lengths_is_traced_at_once(model):
    ids = model.encode(TEXT)[0]
    texts = [TEXT, torch.cat([ids[:1], ids[1:].flip(0)])]
    batch, each = model.trace(texts, off="L1H2"), [model.trace(text, off="L1H2") for text in texts]
    assert list(batch) == model.names
    assert batch.tokens == (each[0].tokens, each[1].tokens)
    for name, values in batch.items():
        torch.testing.assert_close(values, torch.stack([trace[name] for trace in each]), msg=name)
    assert repr(batch).startswith(f"Trace of 2 texts of {len(each[0].tokens)} tokens\n")
    with pytest.raises(hs.UserError, match=r"traced together must be equally long, got \d+, \d+ tokens\. Trace each\."):
        model.trace([TEXT, OTHER])


def replaced_z(model, replace: str, n: int):
    """What stands in for the z of heads, added up window by window in float64."""
    text = reference_text(model._tokens, 64, REFERENCE_WINDOWS).sequences
    if replace == "zero":
        return None
    if replace == "resample":
        return [layer.z for layer in model.module.trace(text[:1, :n]).layers]
    traces = [model.module.trace(window[None, :-1]) for window in text]
    return [
        torch.cat([trace.layers[i].z[0].double() for trace in traces], 1).mean(1, keepdim=True).float()
        for i in range(2)
    ]


@pytest.mark.parametrize("replace", ["zero", "mean", "resample"])
@pytest.mark.parametrize("off", ["L0H1", ["L0H0", "L1H2"], ("L0H0", "L0H1", "L1H0", "L1H1", "L1H2"), []])
def test_heads_are_replaced_as_the_stages_define_it(model, off, replace):
    names = [off] if isinstance(off, str) else off
    mask = [torch.tensor([float(f"L{i}H{head}" not in names) for head in range(n)]) for i, n in enumerate((2, 3))]
    ids = model.encode(TEXT)
    expected = model.module.trace(ids, mask, replaced_z(model, replace, ids.shape[1]))
    logits, options = expected.logits[0], {"off": off, "replace": replace}
    torch.testing.assert_close(model.trace(TEXT, **options)["logits"], logits)
    for given in (TEXT, ids[0]):
        torch.testing.assert_close(model.attention(given, **options).layers[1], expected.layers[1].pattern[0])
        assert model.next(given, 3, **options).logit.tolist() == pytest.approx(logits[-1].topk(3).values.tolist(), 1e-4)
        loss = torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:]).item()
        assert model.loss(given, **options) == pytest.approx(loss, 1e-5)
        best = [model.vocabulary[token] for token in logits.argmax(-1).tolist()]
        assert model.logit_lens(given, **options).R2.tolist() == best
        first = model.generate(given, 1, temperature=0, **options)
        likeliest = logits[-1].clone()
        likeliest[model.bos] = -torch.inf
        assert first == TEXT + model._tokens.tokenizer.decode([int(likeliest.argmax())], skip_special_tokens=False)


@pytest.mark.parametrize("method", ABLATED)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"off": ["L0H7"]}, r"no head 'L0H7' to switch off\. Did you mean 'L0H"),
        ({"off": [(0, 1)]}, r"no head \(0, 1\) to switch off"),
        ({"off": 3}, r'off must be names of heads, like \["L1H0"\], got 3'),
        ({"off": [[]]}, r"no head \[\] to switch off"),
        ({"off": ["L0H1"], "replace": "noise"}, "replace must be 'zero', 'mean' or 'resample', got 'noise'"),
        ({"replace": None}, "replace must be 'zero', 'mean' or 'resample', got None"),
    ],
)
def test_what_can_not_be_switched_off(model, method, options, message):
    with pytest.raises(hs.UserError, match=message):
        getattr(model, method)(TEXT, **options)


def test_a_model_without_heads_says_so(model):
    empty = Transformer(Architecture(n_layers=0, d_model=8), 5)
    with pytest.raises(hs.UserError, match=r"no head 'L0H0' to switch off\. The model has no heads\.$"):
        switched_off(empty, model._tokens, ["L0H0"], "zero")


@pytest.mark.parametrize("method", [*METHODS, "trace"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "a text must be a string of Unicode, a list of token ids, or a list of these, got 7"),
        (None, "got None"),
        (b"a", "got b'a'"),
        ([], "got an empty list"),
        ("\ud800", "Unicode"),
        (["a", "\ud800"], "Unicode"),
        ("a" * 70, "must fit n_ctx=64 tokens"),
        ([5] * 65, "must fit n_ctx=64 tokens, BOS included, got 65"),
        ([5, 270], r"token ids must be whole numbers from 0 to 269, got 270"),
        ([-1], "got -1"),
        ([0.5], "got 0.5"),
        (np.array([1.0]), "got 1.0"),
        ([True], "got True"),
        (["a", 3], "each of a batch must be a text or a list of token ids, got 3"),
        ([[1, 2], ["a"]], "token ids must be whole numbers from 0 to 269, got 'a'"),
        ([["a"]], "got 'a'"),
        ([[]], "the text is empty"),
    ],
)
def test_what_is_no_text(model, method, given, message):
    with pytest.raises(hs.UserError, match=message) as error:
        getattr(model, method)(given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.next(TEXT, n=0), "n must be a whole number from 1 on, got 0"),
        (lambda model: model.next(TEXT, n="3"), "n must be a whole number from 1 on, got '3'"),
        (lambda model: model.logit_lens(TEXT, n=0.5), "n must be a whole number"),
        (lambda model: model.generate(TEXT, n=-1), "n must be a whole number from 0 on, got -1"),
        (lambda model: model.generate(TEXT, seed=None), "seed must be a whole number from 0 on, got None"),
        (lambda model: model.generate(TEXT, temperature=-1), "temperature must be a number from 0 on, got -1"),
        (lambda model: model.generate(TEXT, temperature=float("nan")), "temperature must be a number"),
        (lambda model: model.loss(""), "a loss needs a token after the first"),
    ],
)
def test_options_out_of_range(model, ask, message):
    with pytest.raises(hs.UserError, match=message):
        ask(model)


def test_more_tokens_than_there_are_is_all_of_them(model):
    assert len(model.next(TEXT, n=1000)) == len(model.vocabulary) == 270
    assert model.next(TEXT, n=1000).probability.sum() == pytest.approx(1)
