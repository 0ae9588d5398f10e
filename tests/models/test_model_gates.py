"""Gates inside a model: what they scale, their gradients, and circuits of models that have them."""

import pytest
import torch
from planted import BOS, induction_model
from random_models import D_MODEL, D_VOCAB, N_CTX, random_model
from torch.func import functional_call

from headstream.models.architecture import Architecture
from headstream.models.circuits.causal_checks import causal_checks
from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.circuits.identities import identity_errors
from headstream.models.circuits.paths import head_paths, paths_by_order, virtual_head_paths, virtual_heads_of
from headstream.models.frozen import freeze_run
from headstream.models.gates import DynamicGates, StaticGates, active_fraction, expected_open
from headstream.models.hard_concrete import noisy, open_probability, sampled_gates
from headstream.models.heads.removal import remove_heads
from headstream.models.nodes import Edge, Head
from headstream.models.stimuli import Stimuli
from headstream.models.transformer import Transformer

KINDS = ["hard_concrete", "dynamic"]
HEADS = (2, 0, 3)
TOKENS = torch.randint(1, D_VOCAB, (3, N_CTX), generator=torch.Generator().manual_seed(1))
TOKENS[:, 0] = BOS


def build(gates, **options):
    """Some heads are open, some closed, static ones in between too."""
    return random_model(n_layers=3, n_heads=HEADS, gates=gates, **options)


def without_gates(model):
    """The same model that has none, and the gates that it is missing."""
    bare = Transformer(Architecture(**{**model.architecture.model_dump(), "gates": "none"}), D_VOCAB).double()
    bare.load_state_dict({name: p for name, p in model.state_dict().items() if ".gates." not in name})
    return bare.requires_grad_(False)


def test_static_gates_are_a_mask():
    model = build("hard_concrete")
    mask = [layer.attention.gates.log_alpha.sigmoid().mul(1.2).sub(0.1).clamp(0, 1) for layer in model.layers]
    assert 0 < torch.cat(mask).min() < 1
    torch.testing.assert_close(model(TOKENS), without_gates(model)(TOKENS, mask), rtol=0, atol=1e-12)
    for layer, own in zip(model.trace(TOKENS).layers, mask, strict=True):
        torch.testing.assert_close(layer.gates, own[None, :, None].expand(3, -1, N_CTX))


@pytest.mark.parametrize("options", [{}, {"normalization": "rmsnorm", "feed_forward": "gelu"}, {"attention": "local"}])
def test_dynamic_gates_equal_a_loop(options):
    model = build("dynamic", **options)
    bare = without_gates(model)
    x = model.embed(TOKENS)
    for layer, plain in zip(model.layers, bare.layers, strict=True):
        gates, z = layer.attention.gates, plain.attention.mix_fused(plain.read(x))
        for b, head, pos in torch.cartesian_prod(*map(torch.arange, z.shape[:3])).tolist():
            z[b, head, pos] *= (gates.direction[head] @ layer.read(x)[b, pos] + gates.offset[head]) > 0
        x = plain.write(x, z)[-1]
    torch.testing.assert_close(model(TOKENS), model.unembed(model.final_norm(x)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("gates", KINDS)
def test_trace_is_the_forward_pass_and_tells_the_gates(gates):
    model, seen = build(gates), []
    logits = model(TOKENS, gates=seen)
    trace = model.trace(TOKENS)
    torch.testing.assert_close(trace.logits, logits, rtol=0, atol=1e-12)
    for layer, own in zip(trace.layers, seen, strict=True):
        torch.testing.assert_close(layer.gates, own)
        torch.testing.assert_close(layer.head_outputs.sum(1), layer.attention_out, rtol=0, atol=1e-12)
    every = torch.cat([own.transpose(0, 1).flatten(1) for own in seen])
    torch.testing.assert_close(active_fraction(seen), every.mean())
    if gates == "dynamic":
        assert set(every.flatten().tolist()) == {0, 1}
    assert all(layer.gates is None for layer in random_model().trace(TOKENS).layers)


@pytest.mark.parametrize("gates", KINDS)
def test_masks_and_fills_come_after_gates(gates):
    """A masked head writes its fill, open or not; other heads are what they were."""
    model = build(gates)
    mask = [torch.tensor([1.0, 0.0]), torch.empty(0), torch.tensor([0.0, 1.0, 1.0])]
    fill = [torch.full((n, 1, 7), 0.3, dtype=torch.float64) for n in HEADS]
    trace = model.trace(TOKENS, mask, fill)
    assert (trace.layers[0].z[:, 1] == 0.3).all()
    assert (trace.layers[2].z[:, 0] == 0.3).all()
    torch.testing.assert_close(trace.layers[0].z[:, 0], model.trace(TOKENS).layers[0].z[:, 0])
    torch.testing.assert_close(model(TOKENS, mask, fill), trace.logits, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gates", KINDS)
def test_a_removed_head_takes_its_gate_along(gates):
    model = build(gates)
    mask = [torch.tensor([1.0, 0.0]), torch.empty(0), torch.tensor([0.0, 0.5, 1.0])]
    smaller = remove_heads(model, mask)
    assert smaller.architecture.heads_per_layer in ((1, 0, 2), (1, 2))
    torch.testing.assert_close(smaller(TOKENS), model(TOKENS, mask), rtol=0, atol=1e-10)


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("gates", KINDS)
def test_the_forward_pass_draws_nothing(gates, mode):
    model = build(gates).train(mode)
    assert torch.equal(model(TOKENS), model(TOKENS))


def test_noise_takes_the_place_of_log_alpha():
    gates, x = StaticGates(5).double(), torch.zeros(2, 7, D_MODEL).double()
    uniform = torch.rand(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sampled = functional_call(gates, {"log_alpha": noisy(gates.log_alpha, uniform)}, (x,))
    torch.testing.assert_close(sampled, sampled_gates(gates.log_alpha, uniform)[:, :, None].expand(-1, -1, 7))


def test_dynamic_gates_have_the_gradient_of_the_sigmoid():
    gates = DynamicGates(3, D_MODEL).double()
    generator = torch.Generator().manual_seed(0)
    for p in gates.parameters():
        p.data.normal_(0, 0.5, generator=generator)
    x = torch.randn(2, 5, D_MODEL, dtype=torch.float64, generator=generator)
    weight = torch.randn(2, 3, 5, dtype=torch.float64, generator=generator)
    soft = (torch.einsum("bpd,hd->bhp", x, gates.direction) + gates.offset[:, None]).sigmoid()
    expected = torch.autograd.grad((soft * weight).sum(), list(gates.parameters()))
    found = torch.autograd.grad((gates(x) * weight).sum(), list(gates.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_gates_start_open():
    for kind in KINDS:
        architecture = Architecture(n_layers=2, n_heads=2, d_model=8, n_ctx=N_CTX, gates=kind)
        model = Transformer(architecture, D_VOCAB).initialize(torch.Generator().manual_seed(0))
        for layer in model.trace(TOKENS).layers:
            torch.testing.assert_close(layer.gates, torch.ones_like(layer.gates))


def test_expected_open_is_a_sum_of_probabilities():
    log_alpha = [torch.tensor([-1.0, 2.0]), torch.empty(0), torch.tensor([0.5])]
    total = sum(open_probability(torch.tensor(a)).item() for a in (-1.0, 2.0, 0.5))
    assert expected_open(log_alpha).item() == pytest.approx(total)


# Circuits.


@pytest.mark.parametrize("gates", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"biases": True, "normalization": "layernorm"},
        {"biases": True, "normalization": "layernorm", "normalization_place": "post", "attention": "strided"},
    ],
)
def test_paths_with_frozen_gates_sum_to_the_logits(gates, options):
    model = build(gates, **options)
    run = freeze_run(model, TOKENS)
    orders = paths_by_order(run).orders
    torch.testing.assert_close(model.unembed(orders.sum(0)), model(TOKENS), rtol=0, atol=1e-10)
    torch.testing.assert_close(sum(part for _, part in head_paths(run)), orders[1], rtol=0, atol=1e-10)
    virtual = virtual_head_paths(run, virtual_heads_of(HEADS))
    torch.testing.assert_close(sum(part for _, part in virtual), orders[2], rtol=0, atol=1e-10)
    streams = [*(layer.trace.residual_in for layer in run.layers), run.trace.residual_final]
    for sources, stream in zip(run.sources(), streams, strict=True):
        torch.testing.assert_close(sum(sources.values()), stream, rtol=0, atol=1e-10)


@pytest.mark.parametrize("gates", KINDS)
def test_identities_hold_or_are_absent(gates):
    errors = identity_errors(random_model(n_layers=1, gates=gates), TOKENS)
    assert set(errors) == {"paths-sum", "terms-add", "pattern-bilinear", "heads-independent"}
    assert max(errors.values()) < 1e-10


def test_static_gates_are_folded_into_what_heads_write():
    model = build("hard_concrete")
    weights, trace = circuit_weights(model), model.trace(TOKENS)
    plain = without_gates(model).layers[0].attention.mix_fused(trace.embedding)
    torch.testing.assert_close(plain @ weights.layers[0].W_O, trace.layers[0].head_outputs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gates", KINDS)
def test_causal_checks_keep_the_gates(gates):
    """A reader whose values lose a writer: rerun by hand."""
    model = random_model(n_layers=2, n_heads=2, gates=gates)
    stimuli = Stimuli(BOS, TOKENS, TOKENS[:0], None, None, torch.arange(len(TOKENS)))
    tokens, targets = TOKENS[:, :-1], TOKENS[:, 1:]
    trace, attention = model.trace(tokens), model.layers[1].attention
    x, seen = trace.layers[1].residual_in, trace.layers[1]
    z = seen.z.clone()
    z[:, 1] = seen.pattern[:, 1] @ (x - trace.layers[0].head_outputs[:, 0]) @ attention.W_V[1]
    z[:, 1] *= seen.gates[:, 1, :, None]
    losses = [
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()
        for logits in (model.unembed(x + attention.write(z)), trace.logits)
    ]
    (found,) = causal_checks(model, stimuli, [(Edge(Head(0, 0), Head(1, 1), "V"),)])
    assert found.loss_effect_nats == pytest.approx(losses[0] - losses[1], abs=1e-9)


def test_a_closed_gate_breaks_a_planted_circuit():
    """The induction model with gates: it predicts repeats until the gate of its previous-token head closes."""
    full = induction_model(31, n_ctx=32)
    model = Transformer(Architecture(**{**full.architecture.model_dump(), "gates": "dynamic"}), 31)
    model.load_state_dict(full.state_dict(), strict=False)
    tokens = torch.cat([torch.zeros(1, dtype=torch.int64), torch.arange(1, 13).repeat(2)])[None]

    def share_predicted():
        return (model(tokens)[0, 13:-1].argmax(-1) == tokens[0, 14:]).double().mean()

    assert share_predicted() == 1
    with torch.no_grad():
        model.layers[0].attention.gates.offset[0] = -1
    assert share_predicted() < 0.2
