"""What planted circuits score, and what a model's behaviour is where something has no value."""

import math
from dataclasses import replace

import pytest
import torch
from planted import BOS, attention_of, blank_model, fixed_offset_model, induction_model, planted_induction, rotated
from random_models import initial_model, random_model

from headstream.models import batching
from headstream.models.architecture import Architecture
from headstream.models.frozen import freeze_trace
from headstream.models.heads.attended_keys import attention_on, previous_token_keys
from headstream.models.heads.head_behaviour import model_behaviour
from headstream.models.losses import next_token_losses
from headstream.models.repeats import fixed_period_repeats, random_period_repeats
from headstream.models.stimuli import Stimuli
from headstream.models.transformer import Transformer

D_VOCAB, N_CTX = 97, 128


def build_stimuli(d_vocab=D_VOCAB, n_ctx=N_CTX, n_windows=5):
    generator = torch.Generator().manual_seed(0)
    counts = torch.randint(1, 1000, (d_vocab,), generator=generator)
    text = torch.randint(1, d_vocab, (n_windows + 2, n_ctx + 1), generator=generator)
    text[:, 0] = BOS
    repeats = counts, BOS, n_ctx
    return Stimuli(
        bos=BOS,
        text=text[:n_windows],
        more_text=text[n_windows:],
        fixed_period=fixed_period_repeats(*repeats, 10, generator),
        random_period=random_period_repeats(*repeats, 64, generator),
        documents=torch.arange(n_windows + 2),
    )


@pytest.fixture(scope="module")
def stimuli():
    return build_stimuli()


def test_a_planted_induction_circuit_scores_near_1(stimuli):
    measured = model_behaviour(induction_model(D_VOCAB, N_CTX), stimuli)
    first, second = measured.layers
    assert first["previous_token"][0] > 0.99
    assert first["positional_offset"][0] == 1
    assert first["positional_share"][0] > 0.99
    assert second["prefix_matching"][1] > 0.99
    assert second["induction_random_period"][1] > 0.99
    assert second["induction_natural"][1] > 0.95
    # Where there is nothing to match it rests on BOS.
    assert second["bos_attention"][1] > 0.3
    # Without context it guesses evenly; then only the first token of the second period surprises.
    assert measured.repeats["first_occurrence_loss_nats"] == pytest.approx(math.log(D_VOCAB), abs=1e-3)
    assert measured.repeats["repeat_gain_nats"] > 4
    assert measured.repeats["occurrence_losses_nats"][2] < 0.1
    # The other two attend evenly.
    for scores, head in ((first, 1), (second, 0)):
        assert scores["entropy"][head] == pytest.approx(1, abs=1e-5)
        assert scores["entropy_without_bos"][head] == pytest.approx(1, abs=1e-5)
        assert scores["induction_random_period"][head] < 0.1


def test_ablating_the_previous_token_head_breaks_induction(stimuli):
    model = induction_model(D_VOCAB, N_CTX)
    attention_of(model, 0).W_O[0] = 0
    measured = model_behaviour(model, stimuli)
    assert measured.layers[1]["induction_random_period"][1] < 0.1
    assert abs(measured.repeats["repeat_gain_nats"]) < 0.1


def test_a_fixed_offset_is_no_induction(stimuli):
    """24 back is right after the last occurrence at a period of 25, and nowhere in particular at others."""
    measured = model_behaviour(fixed_offset_model(24, D_VOCAB, N_CTX), stimuli)
    (scores,) = measured.layers
    assert scores["prefix_matching"][0] > 0.95
    assert scores["induction_random_period"][0] < 0.05
    assert measured.repeats["repeat_gain_nats"] < 0.5
    assert scores["positional_offset"][0] == 24
    assert scores["positional_share"][0] == pytest.approx((N_CTX - 24) / (N_CTX - 1), abs=0.02)


def test_batching_changes_nothing(monkeypatch):
    model, stimuli = induction_model(41, n_ctx=32), build_stimuli(41, n_ctx=32)
    whole = model_behaviour(model, stimuli)
    monkeypatch.setattr(batching, "BATCH_NUMBERS", 1)
    one_by_one = model_behaviour(model, stimuli)
    for a, b in zip(whole.layers, one_by_one.layers, strict=True):
        for name, values in a.items():
            torch.testing.assert_close(values, b[name], equal_nan=True, msg=name)
    assert whole.text["validation_loss_nats"] == pytest.approx(one_by_one.text["validation_loss_nats"])
    assert whole.repeats["repeat_gain_nats"] == pytest.approx(one_by_one.repeats["repeat_gain_nats"])


def test_losses_are_those_of_the_true_next_tokens(stimuli):
    model = induction_model(D_VOCAB, N_CTX)
    sequence = stimuli.more_text[0]
    log_probabilities = model(sequence[None, :-1])[0].log_softmax(-1)
    expected = [-log_probabilities[i, sequence[i + 1]].item() for i in range(N_CTX)]
    assert next_token_losses(model, sequence[None])[0].tolist() == pytest.approx(expected, abs=1e-5)
    measured = model_behaviour(model, stimuli)
    assert len(measured.text["position_losses_nats"]) == N_CTX
    every = next_token_losses(model, torch.cat([stimuli.text, stimuli.more_text])).double()
    assert measured.text["validation_loss_nats"] == pytest.approx(every.mean().item())


def test_what_can_not_be_measured_is_nan_and_never_0():
    """8 positions hold no four repeats, and a vocabulary of one token has no period."""
    small = build_stimuli(d_vocab=2, n_ctx=8)
    assert small.fixed_period is None
    assert small.random_period is None
    measured = model_behaviour(blank_model((2,), d_vocab=2, n_ctx=8), small)
    (scores,) = measured.layers
    assert scores["prefix_matching"].isnan().all()
    assert scores["induction_random_period"].isnan().all()
    assert math.isnan(measured.repeats["repeat_gain_nats"])
    assert len(measured.repeats["occurrence_losses_nats"]) == 0
    assert scores["previous_token"].isfinite().all()


def test_models_without_layers_or_heads_have_losses_alone(stimuli):
    generator = torch.Generator().manual_seed(0)
    bare = Transformer(Architecture(n_layers=0, d_model=5, n_heads=1), D_VOCAB).initialize(generator)
    assert model_behaviour(bare, stimuli).layers == []
    assert model_behaviour(bare, stimuli).text["validation_loss_nats"] > 4
    pruned = Architecture(n_layers=2, n_heads=(0, 3), d_model=5, d_head=2)
    layers = model_behaviour(Transformer(pruned, D_VOCAB).initialize(generator), stimuli).layers
    assert [len(scores["entropy"]) for scores in layers] == [0, 3]
    assert [len(scores["positional_share"]) for scores in layers] == [0, 3]


def test_scores_on_text_have_errors_over_documents(stimuli):
    """Queries of a document are one cluster; a document counts by its sequences."""
    model = initial_model(d_vocab=D_VOCAB, n_layers=1, n_heads=2, d_model=10, n_ctx=N_CTX)
    documents = torch.tensor([4, 4, 1, 1, 2, 9, 9])
    (scores, *_) = model_behaviour(model, replace(stimuli, documents=documents)).layers
    tokens = stimuli.text[:, :-1]
    attention = attention_on(model.trace(tokens).layers[0].pattern.float(), previous_token_keys(tokens, BOS))
    for head in range(len(scores["previous_token"])):
        values = [[v for v in row if v == v] for row in attention[:, head].double().tolist()]
        n = sum(map(len, values))
        mean = sum(map(sum, values)) / n
        variance = 0
        for document, share in ((4, 0.4), (1, 0.4), (2, 0.2)):
            own = [v - mean for row, of in zip(values, documents.tolist(), strict=False) if of == document for v in row]
            variance += (sum(own) / n) ** 2 / (1 - share)
        assert scores["previous_token_sem"][head].item() == pytest.approx(variance**0.5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"positions": "rotary", "biases": True},
        {"normalization": "rmsnorm", "feed_forward": "gelu", "qk_normalization": True},
        {"normalization": "layernorm", "positions": "shortformer"},
        {"normalization": "layernorm", "normalization_place": "post", "tied_embeddings": True, "positions": "learned"},
    ],
)
def test_no_untrained_head_has_induction_or_another_role(options):
    """Roles by what heads attend to: of 96 random heads none comes near a threshold of data/schema.sql."""
    stimuli = build_stimuli(n_windows=3)
    highest = {"induction_random_period": 0.1, "previous_token": 0.2, "duplicate_token": 0.15, "bos_attention": 0.25}
    for seed in range(2):
        architecture = Architecture(n_layers=3, n_heads=16, d_model=64, d_head=4, n_ctx=N_CTX, **options)
        model = Transformer(architecture, D_VOCAB).initialize(torch.Generator().manual_seed(seed))
        for layer in model_behaviour(model, stimuli).layers:
            for name, bound in highest.items():
                assert layer[name].max() < bound, name
            assert layer["positional_share_without_bos"].max() < 0.7


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_logit_of_what_follows_is_that_which_goes_without_the_head(stimuli, sign):
    """Without norms and in the last layer, what a head adds to centred logits is what zeroing it takes away."""
    model = rotated(planted_induction((2, 2), (1, 0), ((0, 1),), sign=sign, d_vocab=D_VOCAB, n_ctx=N_CTX))
    found = model_behaviour(model, stimuli).layers[1]
    sequences, occurrence = stimuli.random_period.tokens, stimuli.random_period.occurrence[:, :-1]
    tokens, targets = sequences[:, :-1], sequences[:, 1:, None]
    masks = [torch.ones(2), torch.ones(2)]
    logits = model(tokens)
    masks[1][0] = 0
    added = logits - model(tokens, masks)
    centred = (added - added.mean(-1, keepdim=True)).gather(2, targets)[..., 0].double()
    expected = centred[occurrence > 1].mean().item()
    assert found["induction_copying_logit"][0].item() == pytest.approx(expected, rel=1e-4)
    assert sign * expected > 8
    assert found["induction_copying_logit_sem"][0] < 0.1 * abs(expected)


@pytest.mark.parametrize("place", ["pre", "post", "output", "both"])
@pytest.mark.parametrize("normalization", ["rmsnorm", "layernorm"])
def test_direct_logits_are_those_of_what_heads_write_carried_forward(place, normalization):
    options = {"normalization": normalization, "normalization_place": place, "feed_forward": "gelu"}
    model = random_model(n_layers=3, **options)
    tokens = torch.randint(0, model.d_vocab, (3, 11), generator=torch.Generator().manual_seed(0))
    targets = tokens.roll(-1, 1)
    run = freeze_trace(model, tokens, model.trace(tokens))
    for i, found in enumerate(run.direct_logits(targets)):
        direct = run.carry(run.layers[i].written(), i) @ model.W_U
        expected = (direct - direct.mean(-1, keepdim=True)).gather(3, targets[None, :, :, None].expand(3, -1, -1, -1))
        torch.testing.assert_close(found, expected[..., 0].transpose(0, 1))


def test_direct_logits_are_those_of_the_frozen_norm():
    """Under a final LayerNorm: z W_O, centred, times the scale that the run had, times centred W_U."""
    model = random_model(n_layers=2, normalization="layernorm", feed_forward="gelu", biases=True)
    tokens = torch.randint(0, model.d_vocab, (3, 11), generator=torch.Generator().manual_seed(0))
    targets = tokens.roll(-1, 1)
    trace = model.trace(tokens)
    found = freeze_trace(model, tokens, trace).direct_logits(targets)
    stream, norm = trace.layers[1].residual_out, model.final_norm
    scale = (stream.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
    for layer, logits in zip(trace.layers, found, strict=True):
        for head in range(3):
            written = layer.head_outputs[:, head]
            direct = (written - written.mean(-1, keepdim=True)) * scale * norm.weight @ model.W_U
            expected = (direct - direct.mean(-1, keepdim=True)).gather(2, targets[..., None])[..., 0]
            torch.testing.assert_close(logits[:, head], expected)
