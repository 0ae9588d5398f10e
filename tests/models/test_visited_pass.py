"""A visited pass computes what a plain one does, and goes on with whatever a visitor puts in the place of a part."""

import pytest
import torch
from test_transformer import OPTIONS, build, draw_tokens, named

from headstream.models.interventions import Interventions
from headstream.models.nodes import MLP, Edge, Head
from headstream.models.visited_pass import activation_names, visited_pass

GATED = {"n_layers": 2, "n_heads": (3, 2), "feed_forward": "gelu", "d_mlp": 11, "biases": True, "gates": "dynamic"}


def recorded(model, tokens, *masks, change=None):
    """The logits of a visited pass, and everything visited, `change` put in the place of what has its name."""
    seen = {}

    def visit(name, value):
        if change and name == change[0]:
            value = change[1](value)
        return seen.setdefault(name, value)

    return visited_pass(model, tokens, visit, activation_names(model), *masks), seen


@pytest.mark.parametrize("options", [*OPTIONS, GATED, {**GATED, "gates": "hard_concrete"}], ids=named)
def test_it_names_what_a_trace_holds(options):
    model, tokens = build(**options), draw_tokens()
    mask = [torch.linspace(0, 1, heads) for heads in model.architecture.heads_per_layer]
    for masks in ((), (mask,), (mask, [layer.z.mean(0) for layer in model.trace(tokens).layers])):
        logits, seen = recorded(model, tokens, *masks)
        trace = model.trace(tokens, *masks)
        expected = {"embedding": trace.embedding}
        for i, layer in enumerate(trace.layers):
            parts = ("residual_in", "pattern", "gates", "z", "head_outputs", "attention_out", "feed_forward_out")
            expected |= {f"L{i}.{part}": getattr(layer, part) for part in (*parts, "residual_out")}
        expected |= {"residual_final": trace.residual_final, "logits": trace.logits}
        expected = {name: value for name, value in expected.items() if value is not None}
        assert list(seen) == activation_names(model) == list(expected)
        for name, value in seen.items():
            torch.testing.assert_close(value, expected[name], rtol=0, atol=0, msg=name)
        torch.testing.assert_close(logits, trace.logits, rtol=0, atol=0)


@pytest.mark.parametrize("name", activation_names(build(**GATED)))
def test_what_is_put_in_place_of_a_part_counts(name):
    model, tokens = build(**GATED), draw_tokens()
    plain, _ = recorded(model, tokens)
    same, _ = recorded(model, tokens, change=(name, lambda value: value.clone()))
    torch.testing.assert_close(same, plain)
    changed, _ = recorded(model, tokens, change=(name, lambda value: value + 0.1 * value.roll(1, -1)))
    assert (changed - plain).abs().max() > 1e-6


def test_a_head_whose_output_is_replaced_by_nothing_is_masked():
    model, tokens = build(**GATED), draw_tokens()

    def without(outputs):
        return torch.cat([outputs[:, :1], 0 * outputs[:, 1:2], outputs[:, 2:]], 1)

    logits, _ = recorded(model, tokens, change=("L0.head_outputs", without))
    torch.testing.assert_close(logits, model(tokens, [torch.tensor([1.0, 0, 1]), torch.ones(2)]))


def test_only_what_is_asked_for_is_visited():
    model, tokens, seen = build(**GATED), draw_tokens(), []
    logits = visited_pass(model, tokens, lambda name, value: seen.append(name) or value, {"L1.z"})
    assert seen == ["L1.z"]
    torch.testing.assert_close(logits, model.trace(tokens).logits, rtol=0, atol=0)


INTERVENTIONS = {
    "silenced": Interventions(silenced=frozenset({Head(0, 1), Head(1, 0)})),
    "clamped": Interventions(clamped={Head(0, 2): "previous", Head(1, 1): "copies"}, bos=0),
    "cut": Interventions(cut=frozenset({Edge(Head(0, 1), Head(1, 0), "K"), Edge(MLP(0), Head(1, 1), "Q")})),
}


@pytest.mark.parametrize("kind", INTERVENTIONS)
def test_what_is_done_to_a_model_is_done_in_a_visited_pass(kind):
    model, tokens = build(**GATED), draw_tokens()
    plain, _ = recorded(model, tokens)
    model.interventions = INTERVENTIONS[kind]
    logits, seen = recorded(model, tokens)
    trace = model.trace(tokens)
    torch.testing.assert_close(logits, trace.logits, rtol=0, atol=0)
    torch.testing.assert_close(seen["L1.pattern"], trace.layers[1].pattern, rtol=0, atol=0)
    assert (logits - plain).abs().max() > 1e-3
    changed, _ = recorded(model, tokens, change=("L1.pattern", torch.zeros_like))
    assert (changed - logits).abs().max() > 1e-6
