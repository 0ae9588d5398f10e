"""Numbers of writers and edges of a model's graph by formula, and the sizes of circuits that are tried."""

from headstream.models.architecture import Architecture

FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of all edges


def count_writers(architecture: Architecture) -> int:
    """The embedding, every head and every feed-forward layer."""
    has_feed_forward = architecture.feed_forward != "none"
    return 1 + sum(architecture.heads_per_layer) + architecture.n_layers * has_feed_forward


def count_edges(architecture: Architecture) -> int:
    """Queries of heads, keys and values of groups, feed-forward layers and logits, by the writers before them."""
    a, before, edges = architecture, 1, 0
    for n_heads in a.heads_per_layer:
        edges += (n_heads + 2 * a.key_value_heads(n_heads)) * before
        if a.feed_forward != "none":
            edges += before if a.parallel_sublayers else before + n_heads
            before += 1
        before += n_heads
    return edges + before
