"""Neurons replaced: as if their rows of W_out were edited, whatever the layer around them is."""

import copy

import pytest
import torch
from random_models import D_VOCAB, random_model

from headstream.models.feed_forward_ablation import (
    activations,
    losses_without_feed_forward,
    mean_activations,
    neuron_ablations,
    neuron_parts,
    residual_without,
)
from headstream.models.losses import sequence_losses

D_MLP = 11
ARCHITECTURES = [
    {"feed_forward": "gelu"},
    {"feed_forward": "relu", "biases": True, "normalization": "layernorm"},
    {"feed_forward": "gelu", "normalization": "rmsnorm", "normalization_place": "post", "n_layers": 3},
    {"feed_forward": "gelu", "normalization": "layernorm", "normalization_place": "both"},
    {"feed_forward": "gelu", "logit_cap": 1.5, "score_cap": 2.0, "biases": True},
    {"feed_forward": "relu", "n_heads": (2, 0, 3), "n_layers": 3, "output_biases": True, "positions": "learned"},
    {"feed_forward": "gelu", "n_heads": 1, "n_layers": 1, "positions": "shortformer", "tied_embeddings": True},
]


def model_of(options: dict):
    return random_model(scale=0.3, d_mlp=D_MLP, **options)


def tokens(n: int = 5, length: int = 13, seed: int = 1) -> torch.Tensor:
    return torch.randint(D_VOCAB, (n, length), generator=torch.Generator().manual_seed(seed))


def edited(model, layer: int, neurons: slice, fill: torch.Tensor):
    """The model with those neurons cut out of W_out, and what they are replaced by in the output bias."""
    model = copy.deepcopy(model)
    own = model.layers[layer].feed_forward
    constant = fill[neurons] @ own.W_out[neurons]
    own.W_out[neurons] = 0
    own.b_out = torch.nn.Parameter(constant if own.b_out is None else own.b_out + constant, requires_grad=False)
    return model


def watched(model, layer: int, text: torch.Tensor) -> torch.Tensor:
    """What the activation function of a layer puts out, seen in passing."""
    own, seen = model.layers[layer].feed_forward, []
    function = own.activation
    own.activation = lambda x: seen.append(function(x)) or seen[-1]
    model(text)
    own.activation = function
    return seen[0]


def kl(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """KL divergence of each sequence, by torch's own distributions."""
    p, q = torch.distributions.Categorical(logits=before), torch.distributions.Categorical(logits=after)
    return torch.distributions.kl_divergence(p, q).mean(1)


@pytest.mark.parametrize("options", ARCHITECTURES)
def test_activations_are_what_the_function_puts_out(options):
    model, text = model_of(options), tokens()
    for i, trace in enumerate(model.trace(text).layers):
        assert torch.allclose(activations(model.layers[i], trace), watched(model, i, text), atol=1e-12)


@pytest.mark.parametrize("options", ARCHITECTURES)
def test_ablation_is_editing_the_weights(options):
    model, text = model_of(options), tokens()
    means = mean_activations(model, tokens(seed=2))
    fills = {"zero": [torch.zeros_like(mean) for mean in means], "mean": means}
    found = neuron_ablations(model, text, fills, n_groups=3)
    assert len(found) == len(model.layers) * 2 * 4
    intact, logits = sequence_losses(model, text), model(text[:, :-1])
    for ablation in found:
        fill = fills[ablation.method][ablation.layer]
        without = edited(model, ablation.layer, ablation.neurons, fill)
        effects = sequence_losses(without, text) - intact
        assert torch.allclose(ablation.loss_effects_nats, effects, atol=1e-10)
        assert torch.allclose(ablation.kl_nats, kl(logits, without(text[:, :-1])), atol=1e-10)


@pytest.mark.parametrize("options", ARCHITECTURES)
def test_all_layers_go_at_once(options):
    model, text = model_of(options), tokens()
    means = mean_activations(model, tokens(seed=2))
    without = model
    for layer, mean in enumerate(means):
        without = edited(without, layer, slice(None), mean)
    found = losses_without_feed_forward(model, text, means)
    assert torch.allclose(found, sequence_losses(without, text), atol=1e-10)


def test_means_are_over_sequences_and_all_that_is_read():
    model, text = model_of(ARCHITECTURES[1]), tokens(n=7)
    for i, mean in enumerate(mean_activations(model, text)):
        one_by_one = torch.stack([watched(model, i, sequence[None, :-1])[0] for sequence in text])
        assert torch.allclose(mean, one_by_one.mean((0, 1)), atol=1e-12)


def test_neurons_that_do_nothing_have_no_effect_and_the_rest_has_all():
    model, text = model_of({"feed_forward": "relu", "normalization": "rmsnorm"}), tokens()
    mute, deaf = neuron_parts(D_MLP, 3)["group 1"], neuron_parts(D_MLP, 3)["group 2"]
    model.layers[0].feed_forward.W_out[mute] = 0
    model.layers[0].feed_forward.W_in[:, deaf] = 0
    zeros = [torch.zeros(D_MLP, dtype=torch.float64) for _ in model.layers]
    found = {(a.layer, a.part): a for a in neuron_ablations(model, text, {"zero": zeros}, n_groups=3)}
    for part in ("group 1", "group 2"):
        assert found[0, part].loss_effects_nats.abs().max() < 1e-12
        assert found[0, part].kl_nats.max() < 1e-12
    assert torch.allclose(found[0, "group 0"].loss_effects_nats, found[0, "all"].loss_effects_nats, atol=1e-12)
    assert found[0, "all"].kl_nats.min() > 0


@pytest.mark.parametrize(("n_neurons", "n_groups", "sizes"), [(11, 3, [4, 4, 3]), (3, 8, [1, 1, 1]), (5, 1, [5])])
def test_groups_together_are_the_layer(n_neurons, n_groups, sizes):
    parts = neuron_parts(n_neurons, n_groups)
    neurons = list(range(n_neurons))
    assert neurons[parts.pop("all")] == neurons
    groups = [neurons[part] for part in parts.values()]
    assert [len(group) for group in groups] == sizes
    assert [neuron for group in groups for neuron in group] == neurons


def test_what_the_groups_write_adds_up_to_the_layer():
    model, text = model_of(ARCHITECTURES[1]), tokens()
    layer, mean = model.layers[1], mean_activations(model, text)[1]
    trace = model.trace(text).layers[1]
    hidden = activations(layer, trace)
    written = {
        part: trace.residual_out - residual_without(layer, trace, hidden, neurons, mean)
        for part, neurons in neuron_parts(D_MLP, 3).items()
    }
    assert torch.allclose(written.pop("all"), sum(written.values()), atol=1e-12)


def test_a_single_sequence_gives_what_it_gives_among_others():
    model, text = model_of(ARCHITECTURES[0]), tokens()
    means = mean_activations(model, text[:1])
    alone = neuron_ablations(model, text[2:3], {"mean": means}, n_groups=2)
    among = neuron_ablations(model, text, {"mean": means}, n_groups=2)
    for one, other in zip(alone, among, strict=True):
        assert torch.allclose(one.loss_effects_nats, other.loss_effects_nats[2:3], atol=1e-12)
