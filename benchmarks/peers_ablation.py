"""Every head zero-ablated here and in TransformerLens, with one hook a head: equal effects, and how fast.

It needs an environment of its own: pip install transformer-lens==4.3 torch==2.13.0

python -m benchmarks.peers_ablation
"""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformer_lens import TransformerBridge

from benchmarks.ablation import N_CTX, SEQUENCES, TOLERANCE, one_pass, random_model, random_text
from benchmarks.circuits import in_turns
from benchmarks.peers_circuits import compare, there
from headstream.models.losses import token_losses

BATCH = 16  # sequences; TransformerLens was slower with 4 and with 64


def without_head(z: Float[Tensor, "batch pos head d_head"], hook: object, head: int) -> Tensor:
    """The hook that takes a head's output away."""
    z = z.clone()
    z[:, :, head] = 0
    return z


@torch.inference_mode()
def peer_effects(peer: TransformerBridge, text: Int[Tensor, "sequence pos"]) -> Float[Tensor, "head sequence"]:
    """Rise of the loss without each head, by a run with a hook for each."""

    def losses(hooks: list[tuple[str, object]]) -> Tensor:
        parts = text.split(BATCH)
        return torch.cat(
            [token_losses(peer.run_with_hooks(x[:, :-1], fwd_hooks=hooks), x[:, 1:]).mean(1) for x in parts]
        )

    places = [(layer, head) for layer in range(peer.cfg.n_layers) for head in range(peer.cfg.n_heads)]
    hooks = [(f"blocks.{layer}.attn.hook_z", partial(without_head, head=head)) for layer, head in places]
    return torch.stack([losses([hook]) for hook in hooks]) - losses([])


def main() -> None:
    """Compare, then print the ratios."""
    torch.set_num_threads(1)  # as in the stage: models are measured side by side
    for shape, n_sequences in SEQUENCES.items():
        model, text = random_model(*shape), random_text(n_sequences)
        peer = there(model)
        print(f"{'x'.join(map(str, shape))}, {n_sequences} sequences of {N_CTX}")
        compare("zero-ablation effects", one_pass(model, text), peer_effects(peer, text).double(), TOLERANCE)
        ours, theirs = in_turns(partial(one_pass, model, text), partial(peer_effects, peer, text))
        print(f"  all heads: {ours:.2f} s, TransformerLens {theirs:.2f} s: {theirs / ours:.1f} times")


if __name__ == "__main__":
    main()
