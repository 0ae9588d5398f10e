"""Floating-point operations of a model's matrix products, by formula: all that the code multiplies on a CPU.

An addition and a multiplication count as two. Softmax, norms and activation functions are not matrix products.
"""

from headstream.models.architecture import Architecture
from headstream.models.blocks import query_block, window_block


def forward_flops(architecture: Architecture, d_vocab: int, n_tokens: int) -> int:
    """Floating-point operations of the forward pass of one sequence of `n_tokens`."""
    a = architecture
    n_heads, widths = sum(a.heads_per_layer), a.head_width + a.value_width
    n_maps = n_heads + sum(map(a.key_value_heads, a.heads_per_layer))  # of queries and outputs, of keys and values
    by_token = n_maps * a.d_model * widths + a.n_layers * a.mlp_maps * a.d_model * a.mlp_width + a.d_model * d_vocab
    by_token += n_heads * a.d_model if a.gates == "dynamic" else 0
    pairs = sum(heads * scored_pairs(a.of_layer(i), n_tokens) for i, heads in enumerate(a.heads_per_layer))
    return 2 * (n_tokens * by_token + widths * pairs)


def forward_backward_flops(architecture: Architecture, d_vocab: int, n_tokens: int) -> int:
    """Floating-point operations of the forward and backward pass of one sequence of `n_tokens`."""
    return 3 * forward_flops(architecture, d_vocab, n_tokens)  # a gradient of each factor is a product as large


def scored_pairs(architecture: Architecture, n_tokens: int) -> int:
    """Pairs of a query and a key that a head scores, with the window if there is one: those seen, and some others."""
    if architecture.attention == "top_k" or architecture.score_cap is not None:
        return n_tokens**2
    if architecture.attention == "full":
        block = query_block(n_tokens)
        ends = [min(start + block, n_tokens) for start in range(0, n_tokens, block)]
        return sum((end - start) * end for start, end in zip([0, *ends], ends, strict=False))
    seen = architecture.visible_distances
    block = window_block(len(seen), seen.step, n_tokens)
    n_blocks = -(-n_tokens // (seen.step * block))
    return seen.step * block**2 * (2 * n_blocks - 1)
