"""Scores of importance: against finite differences and loops, on paper, and on heads known to matter or not."""

import math

import pytest
import torch
from planted import BOS, attention_of, skip_trigram_model
from random_models import D_HEAD, D_MODEL, D_VOCAB, random_model

from headstream.models import batching
from headstream.models.heads import gradient_importance, scoring_inputs
from headstream.models.heads.ablation import Ablation, ablation_effects, other_sequences
from headstream.models.heads.importance_methods import METHODS, head_scores, normalise
from headstream.models.heads.references import mean_z
from headstream.models.heads.scoring_inputs import ScoringInputs
from headstream.models.losses import sequence_losses

GRADIENTS = ("michel_paper", "michel_code", "hf_bertology", "taylor_signed")
ARCHITECTURES = [
    {},
    {"n_layers": 3, "n_heads": (2, 0, 3), "output_biases": True},
    {"positions": "rotary", "d_head": 6, "normalization": "rmsnorm", "feed_forward": "gelu", "biases": True},
    {"normalization": "layernorm", "normalization_place": "post", "positions": "learned", "n_heads": 1},
    {"gates": "hard_concrete", "attention": "local", "attention_window": 4},
]


def tokens(n=5, length=13, seed=1):
    return torch.randint(D_VOCAB, (n, length), generator=torch.Generator().manual_seed(seed))


def evidence_of(model, text, head_mask=None):
    return ScoringInputs(model, text, mean_z(model, tokens(length=text.shape[1], seed=2)), head_mask)


def everything(model):
    return [torch.ones(n, dtype=torch.float64) for n in model.architecture.heads_per_layer]


def heads_of(model):
    return [(layer, head) for layer, n in enumerate(model.architecture.heads_per_layer) for head in range(n)]


def slopes_in_the_mask(model, text, layer, head, mask, fill, step=1e-6):
    """Of each sequence's loss, by differences; without the head its z is 0."""
    fill = [own.clone() for own in fill]
    fill[layer][head] = 0
    losses = []
    for value in (1 + step, 1 - step):
        moved = [own.clone() for own in mask]
        moved[layer][head] = value
        losses.append(sequence_losses(model, text, moved, fill))
    return (losses[0] - losses[1]) / (2 * step)


@pytest.mark.parametrize("pruned", [None, (0, 1)])
@pytest.mark.parametrize("options", ARCHITECTURES)
def test_gradients_are_finite_differences_of_the_head_mask(options, pruned):
    model, text, mask = random_model(**options), tokens(n=11), everything(random_model(**options))
    if pruned and len(mask[0]) > 1:
        mask[pruned[0]][pruned[1]] = 0
    inputs = evidence_of(model, text, mask)
    found = {method: head_scores(method, inputs) for method in GRADIENTS}
    for layer, head in heads_of(model):
        scores = {method: own[layer][head].item() for method, own in found.items()}
        if not mask[layer][head]:
            assert all(map(math.isnan, scores.values()))
            continue
        slopes = slopes_in_the_mask(model, text, layer, head, mask, inputs.fill)
        assert scores["michel_paper"] == pytest.approx(slopes.abs().mean().item(), abs=1e-7)
        assert scores["taylor_signed"] == pytest.approx(-slopes.mean().item(), abs=1e-7)
        in_batches = slopes[:8].sum().abs() + slopes[8:].sum().abs()
        assert scores["hf_bertology"] == pytest.approx(in_batches.item() / 11, abs=1e-7)
        assert scores["michel_code"] >= scores["michel_paper"]


def test_slopes_by_position_are_finite_differences():
    model, text, step = random_model(), tokens(n=2, length=6), 1e-6
    found = evidence_of(model, text).slopes
    z = [seen.z for seen in model.trace(text[:, :-1]).layers]
    mask = everything(model)
    mask[0][2] = 0
    for position in range(5):
        losses = []
        for sign in (1, -1):
            moved = [own.clone() for own in z]
            moved[0][:, 2, position] *= 1 + sign * step
            logits = model(text[:, :-1], mask, moved)
            losses.append(torch.nn.functional.cross_entropy(logits.mT, text[:, 1:], reduction="none").mean(1))
        assert torch.allclose(found[0][:, 2, position], (losses[0] - losses[1]) / (2 * step), atol=1e-7)


def test_gradient_scores_differ_in_what_is_summed_before_the_sign_goes(monkeypatch):
    slopes = torch.tensor([[3.0, -1.0], [-4.0, 1.0], [5.0, 0.0]], dtype=torch.float64)  # [sequence, position]
    monkeypatch.setattr(scoring_inputs, "loss_slopes", lambda *inputs: [slopes[:, None]])
    monkeypatch.setattr(gradient_importance, "BERTOLOGY_BATCH", 2)
    model = random_model(n_layers=1, n_heads=1)
    subject = evidence_of(model, tokens(n=3))
    scores = {method: head_scores(method, subject)[0].item() for method in GRADIENTS}
    assert scores == pytest.approx(
        {
            "michel_code": (3 + 1 + 4 + 1 + 5 + 0) / 3,
            "michel_paper": (2 + 3 + 5) / 3,
            "hf_bertology": (1 + 5) / 3,
            "taylor_signed": -(2 - 3 + 5) / 3,
        }
    )


def test_norms_are_those_of_whole_matrices():
    model = random_model(n_layers=2, n_heads=(3, 1))
    inputs = evidence_of(model, tokens())
    for layer, own in enumerate(head_scores("weight_norm", inputs)):
        a = attention_of(model, layer)
        assert own.tolist() == pytest.approx([torch.linalg.norm(a.W_V[h] @ a.W_O[h]).item() for h in range(len(own))])
    for layer, own in enumerate(head_scores("qkv_norm", inputs)):
        a = attention_of(model, layer)
        for head, score in enumerate(own.tolist()):
            numbers = [x for weight in (a.W_Q, a.W_K, a.W_V) for x in weight[head].flatten().tolist()]
            assert len(numbers) == D_MODEL * (2 * D_HEAD + 7)
            assert score == pytest.approx(math.sqrt(sum(x * x for x in numbers)))


@pytest.mark.parametrize("options", [{}, {"attention": "local", "attention_window": 3, "positions": "none"}])
def test_pattern_scores_are_those_of_loops_over_pairs(options):
    model, text = random_model(**options), tokens()
    inputs = evidence_of(model, text)
    variances, confidences = (head_scores(method, inputs) for method in ("attention_variance", "confidence"))
    for layer, seen in enumerate(model.trace(text[:, :-1]).layers):
        for head in range(3):
            pattern = seen.pattern[:, head]
            first = {q: max(0, q - 2) if options else 0 for q in range(1, 12)}
            pairs = [pattern[:, q, k].var().item() for q in first for k in range(first[q], q + 1)]
            assert variances[layer][head].item() == pytest.approx(sum(pairs) / len(pairs))
            largest = [pattern[i, q].max().item() for i in range(5) for q in range(1, 12)]
            assert confidences[layer][head].item() == pytest.approx(sum(largest) / len(largest))


def test_ablation_scores_are_mean_effects():
    model, text = random_model(), tokens()
    inputs = evidence_of(model, text)
    losses = sequence_losses(model, text)
    found = {method: head_scores(f"ablation_{method}", inputs) for method in ("zero", "mean", "resample")}
    for layer, head in heads_of(model):
        mask = everything(model)
        mask[layer][head] = 0
        zero, mean = (sequence_losses(model, text, mask, fill) - losses for fill in (None, inputs.fill))
        assert found["zero"][layer][head].item() == pytest.approx(zero.mean().item(), abs=1e-10)
        assert found["mean"][layer][head].item() == pytest.approx(mean.mean().item(), abs=1e-10)
    kind, partners = Ablation("head", "resample", "full"), other_sequences(5, 5, 0)
    effects = ablation_effects(model, text, [kind], {"resample": partners})[kind].loss_nats
    assert all(torch.allclose(a, b.mean(1)) for a, b in zip(found["resample"], effects, strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_batching_changes_no_score(monkeypatch, method):
    inputs = evidence_of(random_model(feed_forward="relu"), tokens())
    whole = head_scores(method, inputs)
    monkeypatch.setattr(batching, "BATCH_NUMBERS", 1)
    assert all(torch.allclose(a, b) for a, b in zip(whole, head_scores(method, inputs), strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_every_score_is_one_number_a_head(method):
    for options in ({"n_layers": 0}, {"n_layers": 3, "n_heads": (1, 0, 2)}):
        model = random_model(**options)
        for mask in (None, everything(model)):
            scores = head_scores(method, evidence_of(model, tokens(), mask))
            assert [own.shape for own in scores] == [(n,) for n in model.architecture.heads_per_layer]
            assert all(own.dtype == torch.float64 and own.isfinite().all() for own in scores)
    model = random_model(n_layers=1)
    (single,) = head_scores(method, evidence_of(model, tokens(n=1)))
    assert single.isnan().all() == (method in ("attention_variance", "ablation_resample"))


@pytest.mark.parametrize("method", METHODS)
def test_what_a_pruned_head_would_do_changes_no_score(method):
    mask, scores = [torch.tensor([1.0, 0.0, 1.0]), torch.ones(3)], []
    for scale in (1, 2):
        model = random_model()
        attention_of(model, 0).W_V[1] *= scale
        fill = mean_z(random_model(), tokens(seed=2))
        scores.append(head_scores(method, ScoringInputs(model, tokens(), fill, mask)))
    for a, b, own in zip(*scores, mask, strict=True):
        assert torch.equal(a.isnan(), own == 0)
        assert torch.allclose(a, b, equal_nan=True)


SOURCE, DESTINATION, OUTPUT = 5, 7, 11


def skip_trigram_text(d_vocab=29, n_ctx=32, n=8):
    """BOS, then at random places a source, and after it destinations, each with the output after it."""
    generator = torch.Generator().manual_seed(0)
    text = torch.randint(12, d_vocab, (n, n_ctx + 1), generator=generator)
    text[:, 0] = BOS
    for row in text:
        first, second, third = (3 * torch.randperm(10, generator=generator)[:3].sort().values + 1).tolist()
        row[first] = SOURCE
        for place in (second, third):
            row[place : place + 2] = torch.tensor([DESTINATION, OUTPUT])
    return text


@pytest.mark.parametrize("method", METHODS)
def test_a_head_that_does_all_the_work_comes_first_and_idle_ones_have_nothing(method):
    model, text = skip_trigram_model(SOURCE, (DESTINATION,), (OUTPUT,), 29, 32), skip_trigram_text()
    model.W_U_free.mul_(0.3)  # sure of what it predicts, it would have no slopes
    (scores,) = head_scores(method, ScoringInputs(model, text, mean_z(model, text)))
    assert scores[1] > scores[0]
    assert scores[1] > scores[2]
    if method not in ("attention_variance", "confidence"):
        assert scores[0] == scores[2] == 0


@pytest.mark.parametrize("method", sorted({*METHODS} - {"qkv_norm", "attention_variance", "confidence"}))
def test_a_head_whose_output_nobody_gets_has_nothing(method):
    model = random_model(n_layers=3)
    attention_of(model, 1).W_O[2] = 0
    scores = head_scores(method, evidence_of(model, tokens()))
    assert scores[1][2].item() == pytest.approx(0, abs=1e-12)
    assert (torch.cat([scores[0], scores[1][:2], scores[2]]).abs() > 1e-3).all()


def test_layers_are_normalised_to_length_one():
    nan = torch.nan
    scores = [torch.tensor([3.0, -4.0]), torch.tensor([2.0, nan]), torch.tensor([0.0, 0.0]), torch.empty(0)]
    found = [own.tolist() for own in normalise(scores)]
    assert found[0] == pytest.approx([0.6, -0.8])
    assert found[1] == pytest.approx([1, nan], nan_ok=True)
    assert found[2] == pytest.approx([nan, nan], nan_ok=True)
    assert found[3] == []


def test_gradients_are_had_inside_inference_mode():
    model = random_model()
    inputs = evidence_of(model, tokens())
    outside = head_scores("michel_paper", inputs)
    with torch.inference_mode():
        inside = head_scores("michel_paper", inputs)
    assert all(map(torch.equal, inside, outside))
