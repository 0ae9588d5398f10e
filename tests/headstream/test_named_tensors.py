"""Names of what a pass computes: completed, hooked, and with gradients, against finite differences."""

import copy
import pickle

import pytest
import torch

import headstream as hs
from headstream.opened_model import StudyModel

TEXT = "the river runs to the river"


@pytest.fixture(scope="module")
def model(home) -> StudyModel:
    return hs.open("ours").model(seed=0)


def test_names_are_listed_and_completed(model):
    trace = model.trace(TEXT)
    assert list(trace) == model.names == trace._ipython_key_completions_()
    assert {"embedding", "L0", "L1", "logits"} <= {*dir(trace)}
    assert {"pattern", "head_outputs"} <= {*dir(trace.L1)}
    assert trace.L1.pattern is trace["L1.pattern"]
    assert trace.logits is trace["logits"]
    again = pickle.loads(pickle.dumps(trace))
    assert copy.copy(again).tokens == trace.tokens
    assert torch.equal(again.logits, trace.logits)
    assert model.attention(TEXT)._ipython_key_completions_() == ["L0H0", "L0H1", "L1H0", "L1H1", "L1H2"]


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (
            lambda trace: trace["L1.paterns"],
            hs.UserError,
            r"no tensor 'L1\.paterns' in a trace\. Did you mean 'L1\.pattern'",
        ),
        (lambda trace: trace[0], hs.UserError, "no tensor 0 in a trace"),
        (lambda trace: trace.logit, AttributeError, "Did you mean 'logits'"),
        (lambda trace: trace.L1.patern, AttributeError, "Did you mean 'pattern'"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(model, ask, error, message):
    with pytest.raises(error, match=message):
        ask(model.trace(TEXT))


def test_hooks_see_everything_that_a_trace_has(model):
    seen = {}
    expected = model.trace(TEXT)
    trace = model.trace(TEXT, hooks={name: lambda value, name=name: seen.update({name: value}) for name in model.names})
    assert list(seen) == list(trace) == model.names
    for name, value in seen.items():
        assert torch.equal(value, expected[name])
        assert torch.equal(trace[name], expected[name])


@pytest.mark.parametrize("in_place", [False, True])
def test_a_hook_that_silences_a_head_switches_it_off(model, in_place):
    def silenced(outputs):
        if in_place:
            outputs[1] = 0
            return None
        return torch.stack([outputs[0], 0 * outputs[1]])

    for name in ("L0.head_outputs", "L0.z"):
        with model.hooks({name: silenced}):
            assert model.loss(TEXT) == pytest.approx(model.loss(TEXT, off=["L0H1"]), abs=1e-5)
            assert model.loss([TEXT, TEXT]).tolist() == pytest.approx([model.loss(TEXT)] * 2)
            torch.testing.assert_close(model.attention(TEXT)["L1H0"], model.attention(TEXT, off=["L0H1"])["L1H0"])
        assert model.loss(TEXT) != pytest.approx(model.loss(TEXT, off=["L0H1"]), abs=1e-5)


def test_every_name_can_be_changed_and_only_what_follows_does(model):
    plain = model.trace(TEXT)
    for name in model.names:
        changed = model.trace(TEXT, hooks={name: lambda value: value + value.roll(1, -1)})
        assert not torch.equal(changed["logits"], plain["logits"]), name
        before = model.names[: model.names.index(name)]
        assert all(torch.equal(changed[each], plain[each]) for each in before), name


def test_hooks_are_called_in_the_order_given_and_end_with_their_block(model):
    called = []
    with model.hooks({"logits": lambda value: called.append("outer") or value * 0}):
        trace = model.trace(TEXT, hooks={"logits": lambda value: called.append(value.abs().sum().item())})
        assert called == ["outer", 0.0]
        assert trace["logits"].abs().sum() == 0
    assert model.trace(TEXT)["logits"].abs().sum() > 0
    with pytest.raises(ZeroDivisionError), model.hooks({"logits": lambda value: 1 / 0}):
        model.loss(TEXT)
    assert model._hooks == {}


def test_hooks_of_a_batch_see_it_at_once(model):
    shapes, n = [], len(model.tokens(TEXT))
    model.trace([TEXT, TEXT], hooks={"L1.pattern": lambda pattern: shapes.append([*pattern.shape])})
    assert shapes == [[2, 3, n, n]]


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"L1.paterns": print}, r"nothing named 'L1\.paterns' to hook\. Did you mean 'L1\.pattern'"),
        ({3: print}, "nothing named 3 to hook"),
        ({"logits": 3}, "the hook of logits must be a function of its value, got 3"),
        ([print], r'hooks must be functions by name, like {"logits": print}, got \['),
        (
            {"logits": lambda value: value[0]},
            r"a hook of logits must return a tensor \[\d+, 270\] or None, got \[270\]",
        ),
        ({"logits": lambda value: 3}, r"a hook of logits must return a tensor \[\d+, 270\] or None, got 3"),
    ],
)
def test_a_hook_that_is_wrong(model, hooks, message):
    with pytest.raises(hs.UserError, match=message):
        model.trace(TEXT, hooks=hooks)


# Gradients


@pytest.fixture(scope="module")
def own(model) -> StudyModel:
    """A trainable copy in float64, so that finite differences are exact to many digits."""
    own = model.trainable()
    own.module.double()
    return own


def test_gradients_flow_to_weights(own):
    own.module.zero_grad()
    own.loss(TEXT).backward()
    for name, entry in (
        ("layers.0.attention.W_Q", (1, 2, 3)),
        ("layers.1.attention.W_O", (2, 3, 4)),
        ("W_U_free", (5, 6)),
    ):
        weight = own.module.get_parameter(name)
        sides = []
        for shift in (1e-5, -2e-5):
            weight.data[entry] += shift
            sides.append(own.loss(TEXT).item())
        weight.data[entry] += 1e-5
        assert weight.grad[entry].item() == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-4, abs=1e-9)


def test_everything_in_a_trace_has_a_gradient(own):
    ids = own.encode(TEXT)[0]
    for text in (TEXT, [TEXT]):
        trace = own.trace(text)
        logits = trace["logits"].reshape(len(ids), -1)
        torch.nn.functional.cross_entropy(logits[:-1], ids[1:]).backward()
        for name, value in trace.items():
            entry = (0,) * (value.ndim - 2) + ((3, 2))
            step = torch.zeros_like(value)
            step[entry] = 1e-6
            bumped = own.trace(text, hooks={name: lambda value, step=step: value + step})["logits"].detach()
            loss = torch.nn.functional.cross_entropy(bumped.reshape(len(ids), -1)[:-1], ids[1:])
            slope = (loss.item() - own.loss(TEXT).item()) / 1e-6
            assert value.grad[entry].item() == pytest.approx(slope, rel=1e-3, abs=1e-7), name


def test_a_trainable_model_has_weights_of_its_own(model):
    own = model.trainable()
    before = model.loss(TEXT)
    optimiser = torch.optim.SGD(own.module.parameters(), lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        own.loss([TEXT, "a deep sea"]).mean().backward()
        optimiser.step()
    assert own.loss(TEXT).item() < before == model.loss(TEXT)
    assert own.generate(TEXT, 3).startswith(TEXT)
    assert own.attention(TEXT).frame("L0H0").shape == (len(own.tokens(TEXT)),) * 2
    assert len(own.next(TEXT)) == 10
    assert len(own.logit_lens(TEXT)) == len(own.tokens(TEXT))
    assert "L0H0" in repr(own.attention(TEXT))


def test_without_being_asked_for_gradients_are_not_kept(model):
    assert not any(tensor.requires_grad for tensor in model.trace(TEXT).values())
    assert isinstance(model.loss(TEXT), float)
