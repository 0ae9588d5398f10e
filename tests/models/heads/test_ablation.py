"""Effects of ablated heads: against reruns of the whole model one head at a time, and on planted circuits."""

import itertools

import pytest
import torch
from planted import BOS, blank_model, copying_model, induction_model, plant_fixed_offset
from random_models import D_VOCAB, random_model
from torch.nn import functional as F

from headstream.models import stream_losses
from headstream.models.heads import ablation
from headstream.models.heads.ablation import Ablation, ablation_effects, other_sequences, zero_z
from headstream.models.heads.references import mean_z
from headstream.models.losses import sequence_losses

ARCHITECTURES = [
    {},
    {"n_layers": 1},
    {"n_layers": 3, "n_heads": (2, 0, 3)},
    {"n_layers": 3, "n_heads": (1, 2, 0), "output_biases": True},
    {"n_layers": 3, "positions": "rotary", "d_head": 6, "normalization": "rmsnorm"},
    {"positions": "learned", "normalization": "layernorm", "feed_forward": "gelu", "biases": True},
    {"positions": "sinusoidal", "normalization": "layernorm", "normalization_place": "post", "feed_forward": "relu"},
    {"positions": "shortformer", "qk_normalization": True, "biases": True},
    {"positions": "none", "n_heads": 1, "tied_embeddings": True},
    {"attention": "local", "attention_window": 3, "gates": "dynamic"},
]
METHODS = ("zero", "mean", "position_mean", "resample")
FULL = [Ablation(ablated, method, "full") for ablated in ("head", "others") for method in METHODS]


def tokens(n=5, length=13, seed=1):
    return torch.randint(D_VOCAB, (n, length), generator=torch.Generator().manual_seed(seed))


def replacements_of(model, text, draws=2):
    other = tokens(n=7, length=text.shape[1], seed=2)
    return {
        "zero": [zero_z(model)],
        "mean": [mean_z(model, other)],
        "position_mean": [mean_z(model, other, by_position=True)],
        "resample": other_sequences(len(text), draws, seed=3),
    }


def ablate(model, text, ablations=FULL, **pruned):
    return ablation_effects(model, text, ablations, replacements_of(model, text), **pruned)


def compare(logits, intact, targets):
    """Rise of the loss, and KL divergence, of each sequence."""
    log_q, log_p = logits.log_softmax(-1), intact.log_softmax(-1)
    rise = F.nll_loss(log_q.mT, targets, reduction="none") - F.nll_loss(log_p.mT, targets, reduction="none")
    return rise.mean(1), (log_p.exp() * (log_p - log_q)).sum(-1).mean(1)


def heads_of(model):
    return [(layer, head) for layer, n in enumerate(model.architecture.heads_per_layer) for head in range(n)]


def everything(model):
    return [torch.ones(n, dtype=torch.float64) for n in model.architecture.heads_per_layer]


@pytest.mark.parametrize("options", ARCHITECTURES)
def test_effects_are_those_of_reruns_of_the_whole_model(options):
    model, text = random_model(**options), tokens()
    read, targets = text[:, :-1], text[:, 1:]
    replacements, found, intact = replacements_of(model, text), ablate(model, text), model(read)
    for ablated, method, scope in FULL:
        effects = found[Ablation(ablated, method, scope)]
        for layer, head in heads_of(model):
            mask = everything(model)
            mask[layer][:] = float(ablated == "head")
            mask[layer][head] = float(ablated == "others")
            draws = []
            for draw in replacements[method]:
                fill = [seen.z for seen in model.trace(read[draw]).layers] if method == "resample" else draw
                draws.append(torch.stack(compare(model(read, mask, fill), intact, targets)))
            rise, kl = torch.stack(draws).mean(0)
            assert torch.allclose(effects.loss_nats[layer][head], rise, atol=1e-10)
            assert torch.allclose(effects.kl_nats[layer][head], kl, atol=1e-10)
    assert [len(own) for own in effects.loss_nats] == list(model.architecture.heads_per_layer)


def run_with_patterns(model, read, patterns, layer, head):
    """Logits with a head of a layer at zero and the patterns given, one sequence, head and query at a time."""
    x = model.embed(read)
    for i, (own, pattern) in enumerate(zip(model.layers, patterns, strict=True)):
        a, seen = own.attention, own.read(x)
        written = torch.zeros_like(x)
        for b, h, q in itertools.product(range(len(x)), range(pattern.shape[1]), range(x.shape[1])):
            if (i, h) != (layer, head):
                values = seen[b] @ a.W_V[h] + (0 if a.b_V is None else a.b_V[h])
                written[b, q] += sum(pattern[b, h, q, k] * values[k] for k in range(q + 1)) @ a.W_O[h]
        if a.b_O is not None:
            written = written + a.b_O
        written = own.attention_out_norm(written)
        x = own.attention_norm(x + written) if own.post else x + written
        if own.feed_forward is not None and own.post:
            x = own.feed_forward_norm(x + own.feed_forward(x))
        elif own.feed_forward is not None:
            x = x + own.feed_forward_out_norm(own.feed_forward(own.feed_forward_norm(x)))
    return model.unembed(model.final_norm(x))


@pytest.mark.parametrize(
    "options",
    [
        {"n_layers": 3, "n_heads": (2, 1, 2)},
        {"positions": "shortformer", "normalization": "layernorm", "feed_forward": "gelu", "biases": True},
        {"positions": "rotary", "d_head": 6, "normalization": "rmsnorm", "normalization_place": "post"},
        {"normalization": "rmsnorm", "normalization_place": "both", "feed_forward": "gelu", "biases": True},
        {"logit_cap": 1.5, "score_cap": 2.0, "embedding_scale": 3.0},
    ],
)
def test_frozen_patterns_are_those_of_the_intact_run(options):
    model, text = random_model(**options), tokens(n=2, length=7)
    read, trace = text[:, :-1], model.trace(text[:, :-1])
    patterns = [seen.pattern for seen in trace.layers]
    assert torch.allclose(run_with_patterns(model, read, patterns, -1, -1), trace.logits, atol=1e-10)
    frozen, full = (Ablation("head", "zero", scope) for scope in ("frozen_patterns", "full"))
    found = ablate(model, text, [full, frozen])
    for layer, head in heads_of(model):
        logits = run_with_patterns(model, read, patterns, layer, head)
        rise, kl = compare(logits, trace.logits, text[:, 1:])
        assert torch.allclose(found[frozen].loss_nats[layer][head], rise, atol=1e-10)
        assert torch.allclose(found[frozen].kl_nats[layer][head], kl, atol=1e-10)
        moved = (found[full].loss_nats[layer][head] - rise).abs().max()
        assert (moved > 1e-3) == (layer + 1 < len(model.layers))


def test_gates_are_not_frozen():
    model, text = random_model(gates="dynamic", positions="none"), tokens()
    for layer in model.layers:
        layer.attention.W_Q.zero_()  # patterns can't change, so freezing them must not change anything
    frozen, full = (Ablation("head", "zero", scope) for scope in ("frozen_patterns", "full"))
    found = ablate(model, text, [full, frozen])
    assert torch.allclose(found[frozen].loss_nats[0], found[full].loss_nats[0], atol=1e-10)


@pytest.mark.parametrize("biases", [False, True])
def test_in_the_last_layer_zero_takes_z_W_O_W_U_off_the_logits(biases):
    model, text = random_model(biases=biases), tokens()
    trace = model.trace(text[:, :-1])
    found = ablate(model, text, [Ablation("head", "zero", "full")])[Ablation("head", "zero", "full")]
    for head in range(3):
        logits = trace.logits - trace.layers[1].z[:, head] @ trace.layers[1].W_O[head] @ model.W_U
        rise, kl = compare(logits, trace.logits, text[:, 1:])
        assert torch.allclose(found.loss_nats[1][head], rise, atol=1e-10)
        assert torch.allclose(found.kl_nats[1][head], kl, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"normalization": "layernorm", "feed_forward": "gelu"}])
def test_pruned_heads_stay_pruned(options):
    model, text = random_model(**options), tokens()
    read, targets, fill = text[:, :-1], text[:, 1:], mean_z(model, tokens(seed=4))
    mask = everything(model)
    mask[0][1] = mask[1][0] = 0
    found, intact = ablate(model, text, head_mask=mask, fill=fill), model(read, mask, fill)
    (mean,) = replacements_of(model, text)["mean"]
    replaced = [torch.where(own[:, None, None] > 0, *pair) for own, *pair in zip(mask, mean, fill, strict=True)]
    for (layer, head), ablated in itertools.product(heads_of(model), ("head", "others")):
        effects = found[Ablation(ablated, "mean", "full")].loss_nats[layer][head]
        if not mask[layer][head]:
            assert effects.isnan().all()
            continue
        left = [own.clone() for own in mask]
        left[layer][(torch.arange(3) == head) == (ablated == "head")] = 0
        rise, _ = compare(model(read, left, replaced), intact, targets)
        assert torch.allclose(effects, rise, atol=1e-10)


def test_batching_changes_nothing(monkeypatch):
    model, text = random_model(n_layers=3), tokens()
    ablations = [*FULL, Ablation("head", "resample", "frozen_patterns")]
    whole = ablate(model, text, ablations)
    monkeypatch.setattr(ablation, "ROWS", 1)
    monkeypatch.setattr(stream_losses, "LOGITS", 1)
    monkeypatch.setattr(stream_losses, "MIN_ROWS", 2)
    for kind, effects in ablate(model, text, ablations).items():
        for name, values in vars(effects).items():
            for a, b in zip(values, getattr(whole[kind], name), strict=True):
                assert torch.allclose(a, b, atol=1e-10)


def test_a_resampled_z_is_another_sequences_and_the_seed_decides_which():
    draws = other_sequences(11, 5, seed=0)
    assert len(draws) == 5
    for partner in draws:
        assert sorted(partner.tolist()) == list(range(11))
        assert not (partner == torch.arange(11)).any()
    assert all(map(torch.equal, draws, other_sequences(11, 5, seed=0)))
    assert not all(map(torch.equal, draws, other_sequences(11, 5, seed=1)))
    model, text = random_model(), tokens(n=1).expand(4, -1)
    kind = Ablation("head", "resample", "full")
    same = ablate(model, text, [kind])[kind]
    assert all(torch.allclose(own, torch.zeros_like(own), atol=1e-10) for own in same.loss_nats)


def test_a_single_sequence_has_no_other():
    model, text = random_model(), tokens(n=1)
    found = ablate(model, text)
    for kind, effects in found.items():
        assert all(own.isnan().all() == (kind.method == "resample") for own in effects.loss_nats)


@pytest.mark.parametrize("options", [{"n_layers": 0}, {"n_layers": 2, "n_heads": (0, 0)}])
def test_no_heads_no_effects(options):
    for effects in ablate(random_model(**options), tokens()).values():
        assert [len(own) for own in effects.loss_nats] == [0] * options["n_layers"]


def random_text(d_vocab, n_ctx, n=6):
    text = torch.randint(1, d_vocab, (n, n_ctx + 1), generator=torch.Generator().manual_seed(0))
    text[:, 0] = BOS
    return text


def test_a_head_that_writes_nothing_has_no_effect():
    model, text = copying_model(29, n_ctx=32), random_text(29, 32)
    mean = mean_z(model, random_text(29, 32))
    replacements = {
        "zero": [zero_z(model)],
        "mean": [mean],
        "position_mean": [mean_z(model, text, by_position=True)],
        "resample": other_sequences(len(text), 5, seed=0),
    }
    kinds = [Ablation("head", method, scope) for method in METHODS for scope in ("full", "frozen_patterns")]
    for effects in ablation_effects(model, text, kinds, replacements).values():
        assert (effects.loss_nats[0][2] == 0).all()
        assert (effects.kl_nats[0][2] == 0).all()
        assert (effects.kl_nats[0][:2] > 0).all()


def test_the_induction_circuit_is_all_that_matters():
    model = induction_model(61, n_ctx=64)
    text = torch.cat([text := random_text(61, 32), text[:, 1:]], dim=1)  # BOS, and 32 tokens twice
    full, frozen = (Ablation("head", "zero", scope) for scope in ("full", "frozen_patterns"))
    found = ablation_effects(model, text, [full, frozen], {"zero": [zero_z(model)]})
    first, second = (own.mean(1) for own in found[full].loss_nats)
    assert first[0] > 0.5
    assert second[1] > 0.5
    assert first[1] == second[0] == 0
    frozen_first = found[frozen].loss_nats[0].mean(1)
    assert frozen_first[0] == pytest.approx(0, abs=1e-6)  # all that it does is to move a later pattern


def test_one_of_two_equal_heads_seems_to_matter_less_than_both():
    model = blank_model((2,), 29, n_ctx=32)
    for head in range(2):
        plant_fixed_offset(model, layer=0, head=head, offset=1)
    pairs = random_text(29, 32)[:, 1:3].repeat(1, 16)
    text = torch.cat([torch.full_like(pairs[:, :1], BOS), pairs], dim=1)  # what comes next is what came before
    kind = Ablation("head", "zero", "full")
    (single,) = ablation_effects(model, text, [kind], {"zero": [zero_z(model)]})[kind].loss_nats
    both = sequence_losses(model, text, [torch.zeros(2)]) - sequence_losses(model, text)
    assert torch.allclose(single[0], single[1])
    assert (both > 10 * single.sum(0)).all()
