"""The same weights here and in TransformerLens: equal logits, patterns, composition and eigenvalues, and how fast.

It needs an environment of its own: pip install transformer-lens==4.3 torch==2.13.0

python -m benchmarks.peers_circuits
"""

from functools import partial

import torch
from torch import Tensor
from transformer_lens import TransformerBridge, TransformerBridgeConfig
from transformer_lens.model_bridge.sources import boot_native

from benchmarks.circuits import SHAPES, VOCABULARY, in_turns
from headstream.models.architecture import Architecture
from headstream.models.circuits.composition import composition, head_pairs
from headstream.models.circuits.eigenvalues import copying_eigenvalues
from headstream.models.circuits.head_weights import circuit_weights
from headstream.models.nodes import HEAD_PORTS
from headstream.models.transformer import Transformer

N_CTX = 64
TOLERANCE = 1e-5


def here(n_layers: int, n_heads: int, d_model: int, d_vocab: int) -> Transformer:
    """A random model whose positions TransformerLens knows as well."""
    architecture = Architecture(n_layers=n_layers, n_heads=n_heads, d_model=d_model, n_ctx=N_CTX, positions="learned")
    model = Transformer(architecture, d_vocab).initialize(torch.Generator().manual_seed(0))
    return model.requires_grad_(False)


def there(model: Transformer) -> TransformerBridge:
    """The same model in TransformerLens."""
    a = model.architecture
    config = TransformerBridgeConfig(
        n_layers=a.n_layers,
        n_heads=a.heads_per_layer[0],
        d_model=a.d_model,
        d_head=a.head_width,
        d_vocab=model.d_vocab,
        n_ctx=a.n_ctx,
        attn_only=True,
        normalization_type=None,
        init_weights=False,
        architecture="TransformerLensNative",
    )
    peer = boot_native(config).requires_grad_(False)
    assert model.W_pos is not None
    weights = {"tok_embed": model.W_E, "pos": model.W_pos, "head": model.W_U.T}
    for i, layer in enumerate(model.layers):
        own = layer.attention
        for name, weight in (("q", own.W_Q), ("k", own.W_K), ("v", own.W_V)):
            weights[f"layers.{i}.attn.{name}"] = weight.mT.flatten(0, 1)
        weights[f"layers.{i}.attn.o"] = own.W_O.flatten(0, 1).T
    for name, parameter in peer.named_parameters():
        place, _, kind = name.replace("._original_component", "").rpartition(".")
        parameter.copy_(weights[place] if kind == "weight" else torch.zeros_like(parameter))
    return peer


def peer_composition(peer: TransformerBridge) -> list[Tensor]:
    """All three kinds, [writer layer, writer, reader layer, reader] each."""
    return [peer.all_composition_scores(kind).scores for kind in HEAD_PORTS]


def peer_eigenvalues(peer: TransformerBridge) -> Tensor:
    """Of every head's full OV circuit, [layer, head, d_head]."""
    return (peer.W_E @ peer.OV @ peer.W_U).eigenvalues


def compare(name: str, found: Tensor, expected: Tensor, tolerance: float = TOLERANCE) -> None:
    """Print the largest difference; a larger one than the tolerance is an error."""
    difference = (found - expected).abs().max().item()
    print(f"  {name}: largest difference {difference:.1e} (largest value {expected.abs().max():.3g})")
    if not difference <= tolerance:
        raise SystemExit(f"{name} must agree to {tolerance}, got {difference}.")


def main() -> None:
    """Compare, then print the ratios."""
    torch.set_num_threads(1)  # as in the stage: models are measured side by side
    for shape in SHAPES:
        name = "x".join(map(str, shape))
        model = here(*shape, d_vocab=VOCABULARY)
        peer, weights = there(model), circuit_weights(model)
        print(f"{name}, vocabulary {VOCABULARY:,}")

        tokens = torch.randint(VOCABULARY, (2, N_CTX), generator=torch.Generator().manual_seed(1))
        logits, cache = peer.run_with_cache(tokens, names_filter=lambda hook: hook.endswith("hook_pattern"))
        trace = model.trace(tokens)
        compare("logits", trace.logits, logits)
        patterns = torch.stack([cache["pattern", layer] for layer in range(shape[0])])
        compare("patterns", torch.stack([layer.pattern for layer in trace.layers]), patterns)

        scores, pairs = composition(weights).score, head_pairs(weights.heads_per_layer)
        for kind, (found, expected) in zip(HEAD_PORTS, zip(scores.T, peer_composition(peer), strict=True), strict=True):
            compare(f"{kind}-composition", found, expected[tuple(pairs.T)].double())

        found, expected = torch.stack(copying_eigenvalues(weights)), peer_eigenvalues(peer)
        nearest = expected.gather(-1, (found[..., None] - expected[..., None, :]).abs().argmin(-1))
        compare("OV eigenvalues, over the largest", found / found.abs().max(), nearest / found.abs().max())

        ours, theirs = in_turns(partial(composition, weights), partial(peer_composition, peer))
        print(f"  composition: {1e3 * ours:.1f} ms, TransformerLens {1e3 * theirs:.0f} ms: {theirs / ours:.1f} times")
        ours, theirs = in_turns(partial(copying_eigenvalues, weights), partial(peer_eigenvalues, peer))
        print(
            f"  OV eigenvalues: {1e3 * ours:.0f} ms, TransformerLens {1e3 * theirs:.0f} ms: {theirs / ours:.1f} times"
        )


if __name__ == "__main__":
    main()
