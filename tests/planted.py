"""Transformers with hand-written weights and known circuits: what a metric must find, it must find here.

The residual stream is cut into named subspaces of d_vocab dimensions, one a token: `token` (what is here, from
W_E), `previous` (what was one before) and `next_token` (what W_U reads). A model starts with every weight zero; each
`plant_*` writes one head. Heads move tokens between subspaces, so d_head = d_value = d_vocab. No norms, no
feed-forward, relative positions: path expansion is exact. To plant a new circuit, write its head and, if it needs
one, a subspace.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from models.architecture import Architecture
from models.transformer import Attention, Transformer

SUBSPACES = ("token", "previous", "next_token")
BOS = 0
SHARP = 50.0  # a score so far above 0 that softmax leaves nothing to the others
CONFIDENT = 10.0  # logit of the predicted token


def blank_model(heads_per_layer: tuple[int, ...], d_vocab: int, n_ctx: int) -> Transformer:
    """W_E writes one-hot tokens to `token`, W_U reads `next_token`; heads attend evenly and write nothing."""
    architecture = Architecture(
        n_layers=len(heads_per_layer),
        n_heads=heads_per_layer,
        d_model=len(SUBSPACES) * d_vocab,
        d_head=d_vocab,
        n_ctx=n_ctx,
    )
    model = Transformer(architecture, d_vocab).requires_grad_(False)
    for parameter in model.parameters():
        parameter.zero_()
    model.W_E[:, dimensions(model, "token")] = torch.eye(d_vocab)
    model.W_U[dimensions(model, "next_token")] = CONFIDENT * torch.eye(d_vocab)
    return model


def dimensions(model: Transformer, subspace: str) -> slice:
    """Where a subspace lies in the residual stream."""
    start = SUBSPACES.index(subspace) * model.d_vocab
    return slice(start, start + model.d_vocab)


def attention_of(model: Transformer, layer: int) -> Attention:
    """The heads of a layer."""
    return model.layers[layer].attention


def plant_fixed_offset(
    model: Transformer, layer: int, head: int, offset: int, into: str = "next_token", of: str = "token"
) -> None:
    """A head that attends `offset` positions back, whatever is there, and moves what one subspace has into another.

    Queries nearer to the start than that attend evenly.
    """
    attention = attention_of(model, layer)
    attention.position_bias[head, offset] = SHARP
    _move(model, layer, head, into, of)


def plant_previous_token(model: Transformer, layer: int, head: int) -> None:
    """The first half of an induction circuit: writes the token before into `previous`."""
    plant_fixed_offset(model, layer, head, offset=1, into="previous")


def plant_induction(model: Transformer, layer: int, head: int) -> None:
    """Attends to positions whose `previous` is the query's token (K-composition), predicts what is there.

    Where there is none it rests on BOS, whose value is nothing. Needs a previous-token head in an earlier layer.
    """
    attention, d_vocab = attention_of(model, layer), model.d_vocab
    scale = SHARP * d_vocab**0.5  # undoes the division by sqrt(d_head)
    attention.W_Q[head, dimensions(model, "token")] = scale * torch.eye(d_vocab)
    attention.W_K[head, dimensions(model, "previous")] = torch.eye(d_vocab)
    attention.W_K[head, dimensions(model, "token")][BOS] = 0.5  # half a match, for every query
    _move(model, layer, head, "next_token")


def induction_model(d_vocab: int = 97, n_ctx: int = 128) -> Transformer:
    """2 layers x 2 heads: L0H0 previous token, L1H1 induction; L0H1 and L1H0 attend evenly and write nothing."""
    model = blank_model((2, 2), d_vocab, n_ctx)
    plant_previous_token(model, layer=0, head=0)
    plant_induction(model, layer=1, head=1)
    return model


def query_composed_model(d_vocab: int = 97, n_ctx: int = 128) -> Transformer:
    """The induction model with the queries and keys of L1H1 exchanged: it looks for the token before its own."""
    model = induction_model(d_vocab, n_ctx)
    attention = attention_of(model, 1)
    attention.W_Q[1], attention.W_K[1] = attention.W_K[1].clone(), attention.W_Q[1].clone()
    return model


def chained_model(d_vocab: int = 97, n_ctx: int = 128) -> Transformer:
    """2 layers x 2 heads: L1H1 moves what L0H0 wrote (V-composition), so that together they look two back."""
    model = blank_model((2, 2), d_vocab, n_ctx)
    plant_previous_token(model, layer=0, head=0)
    plant_fixed_offset(model, layer=1, head=1, offset=1, of="previous")
    return model


def fixed_offset_model(offset: int, d_vocab: int = 97, n_ctx: int = 128) -> Transformer:
    """One head that predicts the token `offset` positions back.

    Where the period is offset + 1 that looks like induction.
    """
    model = blank_model((1,), d_vocab, n_ctx)
    plant_fixed_offset(model, layer=0, head=0, offset=offset)
    return model


def _move(model: Transformer, layer: int, head: int, into: str, of: str = "token") -> None:
    """The head's value circuit: what a subspace has where the head attends, BOS left out, goes `into` another."""
    attention = attention_of(model, layer)
    content = torch.eye(model.d_vocab)
    content[BOS, BOS] = 0
    attention.W_V[head, dimensions(model, of)] = content
    attention.W_O[head][:, dimensions(model, into)] = torch.eye(model.d_vocab)


def plant_copying(model: Transformer, layer: int, head: int, sign: float = 1.0) -> None:
    """Attends evenly, raises the logits of what it sees; a sign of -1 lowers them."""
    _move(model, layer, head, "next_token")
    attention_of(model, layer).W_O[head] *= sign


def copying_model(d_vocab: int = 97, n_ctx: int = 128) -> Transformer:
    """One layer: head 0 copies, head 1 anti-copies, head 2 writes nothing."""
    model = blank_model((3,), d_vocab, n_ctx)
    plant_copying(model, layer=0, head=0)
    plant_copying(model, layer=0, head=1, sign=-1.0)
    return model


def plant_skip_trigrams(
    model: Transformer, layer: int, head: int, source: int, destinations: tuple[int, ...], outputs: tuple[int, ...]
) -> None:
    """Every one of the destinations attends to the source, and the source predicts every one of the outputs."""
    attention, token = attention_of(model, layer), dimensions(model, "token").start
    scale = SHARP * model.d_vocab**0.5
    for destination in destinations:
        attention.W_Q[head, token + destination, 0] = scale
    attention.W_K[head, token + source, 0] = 1
    attention.W_V[head, token + source, 0] = 1
    for output in outputs:
        attention.W_O[head, 0, dimensions(model, "next_token").start + output] = 1


def skip_trigram_model(
    source: int, destinations: tuple[int, ...], outputs: tuple[int, ...], d_vocab: int = 97, n_ctx: int = 128
) -> Transformer:
    """One layer: head 1 has the skip-trigrams, heads 0 and 2 attend evenly and write nothing."""
    model = blank_model((3,), d_vocab, n_ctx)
    plant_skip_trigrams(model, 0, 1, source, destinations, outputs)
    return model


def composed_model(kind: str, heads_per_layer: tuple[int, ...] = (3, 3), d_vocab: int = 13) -> Transformer:
    """Random heads, but L1H2 reads by `kind` (Q, K or V) what L0H1 writes into `previous`, and nothing else does."""
    model = blank_model(heads_per_layer, d_vocab, n_ctx=32)
    generator = torch.Generator().manual_seed(0)
    for layer in model.layers:
        for weight in (layer.attention.W_Q, layer.attention.W_K, layer.attention.W_V, layer.attention.W_O):
            weight.normal_(0, 0.1, generator=generator)
    first, second = attention_of(model, 0), attention_of(model, 1)
    first.W_O[1] = 0
    first.W_O[1][:, dimensions(model, "previous")] = torch.eye(d_vocab)
    reads = {"Q": second.W_Q, "K": second.W_K, "V": second.W_V}
    for name, weight in reads.items():
        weight[2] = 0
        weight[2, dimensions(model, "previous" if name == kind else "token")] = torch.eye(d_vocab)
    return model


def erasing_model(d_vocab: int = 97, n_ctx: int = 128) -> Transformer:
    """2 layers x 2 heads: L0H0 writes what it sees into `previous`, L1H0 erases what `previous` has, L1H1 doubles it.

    L0H1 writes into `next_token`, where nobody reads it.
    """
    model = blank_model((2, 2), d_vocab, n_ctx)
    plant_fixed_offset(model, layer=0, head=0, offset=0, into="previous")
    plant_fixed_offset(model, layer=0, head=1, offset=0)
    for head, sign in ((0, -1.0), (1, 1.0)):
        attention, previous = attention_of(model, 1), dimensions(model, "previous")
        attention.position_bias[head, 0] = SHARP
        attention.W_V[head, previous] = torch.eye(d_vocab)
        attention.W_O[head][:, previous] = sign * torch.eye(d_vocab)
    return model


def bigram_model(
    log_probability: Float[Tensor, "d_vocab d_vocab"], by_head: Float[Tensor, "d_vocab d_vocab"] | None = None
) -> Transformer:
    """Predicts the bigrams: by the direct path alone, or one head that attends to itself takes over a part."""
    model = blank_model(() if by_head is None else (1,), len(log_probability), n_ctx=32)
    model.W_U[dimensions(model, "token")] = log_probability
    if by_head is not None:
        model.W_U[dimensions(model, "token")] -= by_head
        model.W_U[dimensions(model, "next_token")] = by_head
        plant_fixed_offset(model, layer=0, head=0, offset=0)
    return model
