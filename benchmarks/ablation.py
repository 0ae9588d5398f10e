"""Every head ablated in one pass over the text, against a full forward pass for each head.

python -m benchmarks.ablation
"""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmarks.circuits import in_turns
from headstream.models.architecture import Architecture
from headstream.models.heads.ablation import Ablation, ablation_effects, zero_z
from headstream.models.losses import sequence_losses
from headstream.models.transformer import Transformer

SEQUENCES = {(2, 8, 256): 64, (4, 8, 256): 64, (12, 12, 768): 2}  # by layers, heads, d_model
N_CTX, VOCABULARY = 128, 512
ZERO = Ablation("head", "zero", "full")
TOLERANCE = 1e-5


def random_model(n_layers: int, n_heads: int, d_model: int) -> Transformer:
    """A model before training, whose positions TransformerLens knows as well."""
    architecture = Architecture(n_layers=n_layers, n_heads=n_heads, d_model=d_model, n_ctx=N_CTX, positions="learned")
    model = Transformer(architecture, VOCABULARY).initialize(torch.Generator().manual_seed(0))
    return model.requires_grad_(False)


def random_text(n_sequences: int) -> Int[Tensor, "sequence pos"]:
    """What losses are measured on."""
    return torch.randint(VOCABULARY, (n_sequences, N_CTX + 1), generator=torch.Generator().manual_seed(1))


def one_pass(model: Transformer, text: Int[Tensor, "sequence pos"]) -> Float[Tensor, "head sequence"]:
    """Rise of the loss without each head, the heads of all layers in a row."""
    return torch.cat(ablation_effects(model, text, [ZERO], {"zero": [zero_z(model)]})[ZERO].loss_nats)


@torch.inference_mode()
def pass_by_pass(model: Transformer, text: Int[Tensor, "sequence pos"]) -> Float[Tensor, "head sequence"]:
    """The same from a forward pass with each head masked."""
    intact, heads_per_layer = sequence_losses(model, text), model.architecture.heads_per_layer
    masks = torch.ones(sum(heads_per_layer)) - torch.eye(sum(heads_per_layer))
    return torch.stack([sequence_losses(model, text, mask.split(heads_per_layer)) - intact for mask in masks])


def main() -> None:
    """Print the ratios."""
    torch.set_num_threads(1)  # as in the stage: models are measured side by side
    for shape, n_sequences in SEQUENCES.items():
        model, text = random_model(*shape), random_text(n_sequences)
        found, expected = one_pass(model, text), pass_by_pass(model, text)
        torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)
        ours, plain = in_turns(partial(one_pass, model, text), partial(pass_by_pass, model, text))
        print(
            f"zero ablation of every head {'x'.join(map(str, shape))}, {n_sequences} sequences of {N_CTX}:"
            f" {ours:.2f} s, a pass a head {plain:.2f} s: {plain / ours:.1f} times"
        )


if __name__ == "__main__":
    main()
