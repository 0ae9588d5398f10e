"""Probes of many sites at once against scipy, one at a time; features that were planted are found."""

import numpy as np
import pytest
import torch
from planted import BOS, attention_of, blank_model, fixed_offset_model
from random_models import D_VALUE, D_VOCAB, random_model
from scipy.optimize import minimize
from scipy.special import log_softmax

from headstream.models.bos import NO_BOS
from headstream.models.heads import linear_probes
from headstream.models.heads.linear_probes import control_labels, fit_probes, site_activations, standardise

PENALTY = 1e-3


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def noisy_problems(n_sites=3, n=211, d=5, n_labels=3):
    """Features, and labels that depend on them in part: of 2 problems, the second without the last label."""
    features = torch.randn(n_sites, n, d, generator=generator(), dtype=torch.float64) * torch.arange(1, d + 1)
    scores = features[0] @ torch.randn(d, n_labels, generator=generator(1), dtype=torch.float64)
    scores += torch.randn(n, n_labels, generator=generator(2), dtype=torch.float64)
    labels = torch.stack([scores.argmax(1), scores[:, :-1].argmax(1)])
    return standardise(features, features)[0], labels, n_labels


def scipy_weights(features, labels, n_labels, penalty):
    """The same optimum of a single probe."""
    n, d = features.shape

    def loss_and_gradient(flat):
        weights = flat.reshape(n_labels, d)
        log_p = log_softmax(features @ weights.T, axis=1)
        error = np.exp(log_p)
        error[np.arange(n), labels] -= 1
        loss = -log_p[np.arange(n), labels].mean() + penalty * (weights**2).sum()
        return loss, (error.T @ features / n + 2 * penalty * weights).ravel()

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    return minimize(loss_and_gradient, np.zeros(n_labels * d), jac=True, method="L-BFGS-B", options=options).x


@pytest.mark.parametrize("penalty", [1e-3, 0.1])
def test_every_probe_is_the_one_that_scipy_finds(penalty, monkeypatch):
    monkeypatch.setattr(linear_probes, "TOLERANCE", 1e-16)
    features, labels, n_labels = noisy_problems()
    probes = fit_probes(features, labels, n_labels, penalty=penalty, max_steps=10_000)
    assert probes.converged.all()
    for site in range(len(features)):
        for problem in range(len(labels)):
            expected = scipy_weights(features[site].numpy(), labels[problem].numpy(), n_labels, penalty)
            np.testing.assert_allclose(probes.weights[site, problem].flatten(), expected, atol=1e-5)


def test_single_precision_and_the_usual_tolerance_predict_the_same(monkeypatch):
    features, labels, n_labels = noisy_problems()
    usual = fit_probes(features.float(), labels, n_labels, penalty=PENALTY, max_steps=200)
    monkeypatch.setattr(linear_probes, "TOLERANCE", 1e-16)
    exact = fit_probes(features, labels, n_labels, penalty=PENALTY, max_steps=10_000)
    assert usual.converged.all()
    assert (usual.predict(features.float()) == exact.predict(features)).double().mean() > 0.99


def test_predictions_are_the_likeliest_labels():
    features, labels, n_labels = noisy_problems()
    probes = fit_probes(features, labels, n_labels, penalty=PENALTY, max_steps=100)
    scores = torch.einsum("pcf,nf->pnc", probes.weights[1], features[1])
    assert torch.equal(probes.predict(features)[1], scores.argmax(-1))


def test_too_few_steps_are_told():
    features, labels, n_labels = noisy_problems()
    assert not fit_probes(features, labels, n_labels, penalty=PENALTY, max_steps=2).converged.any()


def test_problems_are_fitted_alone_or_together_alike():
    features, labels, n_labels = noisy_problems()
    together = fit_probes(features, labels, n_labels, penalty=PENALTY, max_steps=200)
    for problem in (0, 1):
        alone = fit_probes(features, labels[[problem]], n_labels, penalty=PENALTY, max_steps=200)
        torch.testing.assert_close(alone.weights[:, 0], together.weights[:, problem])


def test_labels_that_are_told_apart_without_error_have_an_optimum():
    features = torch.tensor([[[1.0, 1.0], [-1.0, 1.0]]]).repeat(1, 7, 1)
    labels = torch.tensor([[0, 1] * 7])
    probes = fit_probes(features, labels, 2, penalty=PENALTY, max_steps=1000)
    assert probes.converged.all()
    assert torch.equal(probes.predict(features)[0], labels)


def test_features_are_standardised_by_training_alone():
    train, test = 3 + 2 * torch.randn(2, 97, 5, generator=generator()), torch.randn(2, 13, 5, generator=generator(1))
    train[:, :, 4] = 1.7  # never changes
    scaled, scaled_test = standardise(train, test)
    torch.testing.assert_close(scaled[:, :, :4].mean(1), torch.zeros(2, 4), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaled[:, :, :4].std(1, correction=0), torch.ones(2, 4))
    by_hand = (test - train.mean(1, keepdim=True)) / train.std(1, correction=0, keepdim=True)
    torch.testing.assert_close(scaled_test[:, :, :4], by_hand[:, :, :4])
    for features in (scaled, scaled_test):
        assert (features[:, :, 4] == 0).all()
        assert (features[:, :, 5] == 1).all()


@pytest.mark.parametrize(
    "options",
    [
        {"n_layers": 3, "n_heads": (2, 0, 3), "output_biases": True},
        {"n_layers": 1, "n_heads": 1, "positions": "learned"},
        {"normalization": "layernorm", "normalization_place": "post", "feed_forward": "gelu"},
    ],
)
def test_what_is_at_a_site_is_what_a_trace_has(options, monkeypatch):
    monkeypatch.setattr("headstream.models.batching.BATCH_NUMBERS", 1)
    model = random_model(**options)
    text = torch.randint(D_VOCAB, (3, 11), generator=generator())
    z, stream = zip(*site_activations(model, text, BOS), strict=True)
    trace = model.trace(text)
    heads = [layer.z[:, head, 1:].flatten(0, 1) for layer in trace.layers for head in range(layer.z.shape[1])]
    torch.testing.assert_close(torch.cat(z), torch.stack(heads))
    places = [*(layer.residual_in for layer in trace.layers), trace.layers[-1].residual_out]
    torch.testing.assert_close(list(stream), [place[:, 1:].flatten(0, 1) for place in places])


def test_without_bos_the_first_token_counts():
    model, text = random_model(), torch.randint(D_VOCAB, (3, 11), generator=generator())
    _, stream = next(site_activations(model, text, NO_BOS))
    torch.testing.assert_close(stream, model.embed(text).flatten(0, 1))


def test_without_layers_there_is_the_embedding_alone():
    model, text = random_model(n_layers=0), torch.randint(D_VOCAB, (2, 7), generator=generator())
    ((z, stream),) = site_activations(model, text, BOS)
    assert z.shape == (0, 12, D_VALUE)
    torch.testing.assert_close(stream, model.W_E[text[:, 1:].flatten()])


def test_a_probe_of_z_is_a_probe_of_what_the_head_writes(monkeypatch):
    monkeypatch.setattr(linear_probes, "TOLERANCE", 1e-13)
    model, text = random_model(n_layers=1), torch.randint(D_VOCAB, (17, 13), generator=generator())
    z, _ = next(site_activations(model, text, BOS))
    labels = torch.randint(3, (1, z.shape[1]), generator=generator(1))
    scores = []
    for features in (z, z @ model.layers[0].attention.W_O):
        features, _ = standardise(features, features)
        probes = fit_probes(features, labels, 3, penalty=1e-9, max_steps=10_000)
        scores.append(torch.einsum("scf,snf->snc", probes.weights[:, 0], features).log_softmax(-1))
    torch.testing.assert_close(*scores, atol=1e-4, rtol=0)


# What is there is found, and nothing else.

N_TOKENS = 23


def accuracies(model, labels_of):
    """Accuracy of each head in telling labels of [sequence, token], and its selectivity."""
    text = torch.randint(1, N_TOKENS, (300, 16), generator=generator())
    text[:, 0] = 0
    read, labels = text[:, 1:].flatten(), labels_of(text)[:, 1:].flatten()
    control = control_labels(labels, 2, N_TOKENS, 1, generator(1))[0, read]
    z = torch.cat([of_layer for of_layer, _ in site_activations(model, text, BOS)])
    half = z.shape[1] // 2
    train, test = standardise(z[:, :half], z[:, half:])
    problems = torch.stack([labels, control])
    probes = fit_probes(train, problems[:, :half], 2, penalty=PENALTY, max_steps=200)
    accuracy, control_accuracy = (probes.predict(test) == problems[:, half:]).double().mean(2).T
    return accuracy, accuracy - control_accuracy


def parity_of_token_before(text):
    return text.roll(1, 1) % 2


def test_a_planted_feature_is_found():
    accuracy, selectivity = accuracies(fixed_offset_model(1, N_TOKENS, 16), parity_of_token_before)
    assert accuracy.item() > 0.99
    assert selectivity.item() > 0.35


def test_a_head_that_knows_the_token_has_no_selectivity_for_what_the_token_decides():
    accuracy, selectivity = accuracies(fixed_offset_model(0, N_TOKENS, 16), lambda text: text % 2)
    assert accuracy.item() > 0.99
    assert abs(selectivity.item()) < 0.01


def test_random_labels_are_not_found():
    def random_labels(text):
        return torch.randint(2, text.shape, generator=generator(3))

    accuracy, selectivity = accuracies(fixed_offset_model(1, N_TOKENS, 16), random_labels)
    assert accuracy.item() == pytest.approx(0.5, abs=0.05)
    assert abs(selectivity.item()) < 0.06


def test_a_head_that_writes_nothing_tells_the_commonest_label():
    model = blank_model((2,), N_TOKENS, 16)
    assert not attention_of(model, 0).W_V.any()
    labels = None

    def rare(text):
        nonlocal labels
        labels = (text % 5 == 0).long()
        return labels

    accuracy, _ = accuracies(model, rare)
    test_labels = labels[:, 1:].flatten()[len(labels) * 15 // 2 :]
    assert accuracy.tolist() == pytest.approx([(test_labels == 0).double().mean().item()] * 2)


def test_control_labels_come_as_often_as_the_task_s_and_are_the_same_for_a_seed():
    labels = torch.tensor([0] * 70 + [2] * 30)
    drawn = control_labels(labels, 4, 10_007, 2, generator())
    share = torch.bincount(drawn[1], minlength=4) / 10_007
    torch.testing.assert_close(share, torch.tensor([0.7, 0, 0.3, 0]), atol=0.02, rtol=0)
    assert not torch.equal(*drawn)
    assert torch.equal(drawn, control_labels(labels, 4, 10_007, 2, generator()))
    assert not torch.equal(drawn, control_labels(labels, 4, 10_007, 2, generator(1)))
