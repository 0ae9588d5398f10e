"""Transformers with hand-written weights and known circuits: what a metric must find, it must find here.

The residual stream is cut into named subspaces of d_vocab dimensions, one a token: `token` (what is here, from
W_E), `previous` (what was one before) and `next_token` (what W_U reads). A model starts with every weight zero; each
`plant_*` writes one head. Heads move tokens between subspaces, so d_head = d_value = d_vocab. No norms, no
feed-forward, relative positions: path expansion is exact. To plant a new circuit, write its head and, if it needs
one, a subspace.

`planted_induction`, `pointer_model` and `induction_through_values` plant whole circuits in any layers and heads, for
the power of detectors; `rotated` hides one behind a random choice of bases, and `shuffled` breaks it. What composes is
significant only against an initialisation: take `initial_like`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.attention_heads import Attention
from headstream.models.nodes import Head
from headstream.models.transformer import Transformer

SUBSPACES = ("token", "previous", "next_token")
MORE_SUBSPACES = (*SUBSPACES, "carried")  # of models that need room for something that is no token to predict

READER, WRITER, CARRIER = Head(1, 2), Head(0, 1), Head(0, 2)  # of planted circuits, by default
BOS = 0
SHARP = 50.0  # a score so far above 0 that softmax leaves nothing to the others
BLURRED = 5.0  # a score that leaves something to the others
CONFIDENT = 10.0  # logit of the predicted token
NOISE = 0.1  # of random heads beside the planted ones: how large what they write is, roughly


def blank_model(
    heads_per_layer: tuple[int, ...],
    d_vocab: int,
    n_ctx: int,
    subspaces: tuple[str, ...] = SUBSPACES,
    **options: object,
) -> Transformer:
    """W_E writes one-hot tokens to `token`, W_U reads `next_token`; heads attend evenly and write nothing."""
    shape = {"n_layers": len(heads_per_layer), "n_heads": heads_per_layer, "d_head": d_vocab, "n_ctx": n_ctx}
    architecture = Architecture(**{"d_model": len(subspaces) * d_vocab} | shape | options)
    model = Transformer(architecture, d_vocab).requires_grad_(False)
    for parameter in model.parameters():
        parameter.zero_()
    model.W_E[:, dimensions(model, "token")] = torch.eye(d_vocab)
    model.W_U[dimensions(model, "next_token")] = CONFIDENT * torch.eye(d_vocab)
    return model


def dimensions(model: Transformer, subspace: str) -> slice:
    """Where a subspace lies in the residual stream."""
    start = MORE_SUBSPACES.index(subspace) * model.d_vocab
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


def only_places(d_vocab: int = 97, n_ctx: int = 128) -> Transformer:
    """One layer that sees no content: for each offset a head that looks so far back, for each position one that looks
    there."""
    model = blank_model(
        (2 * n_ctx,), d_vocab, n_ctx, positions="learned", d_head=n_ctx + 1, d_model=3 * d_vocab + n_ctx
    )
    attention, here = attention_of(model, 0), 3 * d_vocab + torch.arange(n_ctx)
    model.W_pos[:, here] = torch.eye(n_ctx)
    scale = SHARP * (n_ctx + 1) ** 0.5
    for offset in range(n_ctx):
        attention.W_Q[offset, here[offset:], here[: n_ctx - offset] - here[0]] = scale
        attention.W_K[offset, here, here - here[0]] = 1
        attention.W_Q[n_ctx + offset, here, n_ctx] = scale
        attention.W_K[n_ctx + offset, here[offset], n_ctx] = 1
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


# Whole circuits, in any layers and heads


def planted_induction(
    heads_per_layer: tuple[int, ...] = (3, 3),
    reader: Head = READER,
    writers: tuple[Head, ...] = (WRITER,),
    decoys: tuple[Head, ...] = (),
    sign: float = 1.0,
    d_vocab: int = 61,
    n_ctx: int = 64,
    seed: int = 0,
) -> Transformer:
    """Induction by K-composition: `reader` matches what the `writers`, previous-token heads, share in writing.

    Each writer alone writes as much as the match needs, so that the reader can do without any one of several; they are
    a bit blurred. Each of `decoys` looks sharper at the token before, and writes it where nobody reads. A sign of -1
    makes an anti-induction head. All other heads are small random ones.
    """
    model = blank_model(heads_per_layer, d_vocab, n_ctx, MORE_SUBSPACES)
    circuit = {reader, *writers, *decoys}
    _plant_noise(model, seed, circuit)
    for layer, head in writers:
        plant_fixed_offset(model, layer, head, offset=1, into="previous")
        attention_of(model, layer).position_bias[head, 1] = BLURRED
    for layer, head in decoys:
        plant_fixed_offset(model, layer, head, offset=1, into="carried")
    plant_induction(model, *reader)
    attention_of(model, reader[0]).W_O[reader[1]] *= sign
    return model


def pointer_model(
    heads_per_layer: tuple[int, ...] = (3, 3),
    reader: Head = READER,
    writers: tuple[Head, ...] = (WRITER,),
    decoy: Head | None = None,
    d_vocab: int = 97,
    n_ctx: int = 32,
    seed: int = 0,
) -> Transformer:
    """Induction by Q-composition: `writers` look at earlier copies of the token and write their positions; the queries
    of `reader` look one position further.

    Learned positions are one-hot in the first n_ctx dimensions of `previous`, pointers to them in those of `carried`.
    A `decoy` is a previous-token head whose tokens the keys of `reader` weigh four times as much, for queries that
    nothing ever asks.
    """
    model = blank_model(heads_per_layer, d_vocab, n_ctx, MORE_SUBSPACES, positions="learned")
    _plant_noise(model, seed, {reader, *writers} | ({decoy} if decoy else set()))
    one_hot = torch.eye(n_ctx)
    starts = (dimensions(model, subspace).start for subspace in ("previous", "carried"))
    position, pointer = (slice(start, start + n_ctx) for start in starts)
    model.W_pos[:, position] = one_hot
    scale = SHARP * d_vocab**0.5
    for layer, head in writers:
        attention = attention_of(model, layer)
        attention.W_Q[head, dimensions(model, "token")] = scale * torch.eye(d_vocab)
        attention.W_K[head, dimensions(model, "token")] = torch.eye(d_vocab)
        attention.W_V[head, position, :n_ctx] = one_hot
        attention.W_O[head, :n_ctx, pointer] = one_hot
    layer, head = reader
    attention = attention_of(model, layer)
    attention.W_Q[head, pointer, :n_ctx] = scale * one_hot.roll(1, dims=1)  # to the position after
    attention.W_K[head, position, :n_ctx] = one_hot
    _move(model, layer, head, "next_token")
    if decoy:
        _plant_idle_keys(model, decoy, reader, 4 * scale)
    return model


def _plant_idle_keys(model: Transformer, decoy: Head, reader: Head, scale: float) -> None:
    """The reader's keys read the token before from a decoy, for queries from dimensions where nothing is written."""
    n_ctx, d_vocab = model.architecture.n_ctx, model.d_vocab
    inner = torch.arange(n_ctx, d_vocab)
    positions = dimensions(model, "previous").start + torch.arange(n_ctx)
    written, asked = (dimensions(model, subspace).start + inner for subspace in ("previous", "carried"))
    attention = attention_of(model, decoy.layer)
    attention.W_Q[decoy.head, positions[1:], torch.arange(n_ctx - 1)] = scale  # one position back
    attention.W_K[decoy.head, positions, torch.arange(n_ctx)] = 1
    attention.W_V[decoy.head, dimensions(model, "token").start + inner, inner] = 1
    attention.W_O[decoy.head, inner, written] = 1
    attention = attention_of(model, reader.layer)
    attention.W_K[reader.head, written, inner] = 1
    attention.W_Q[reader.head, asked, inner] = scale


def induction_through_values(
    heads_per_layer: tuple[int, ...] = (3, 3),
    reader: Head = READER,
    writer: Head = WRITER,
    carrier: Head = CARRIER,
    d_vocab: int = 61,
    n_ctx: int = 64,
    seed: int = 0,
) -> Transformer:
    """Induction whose reader copies through another head: its values read (V-composition) what `carrier` wrote."""
    model = planted_induction(heads_per_layer, reader, (writer,), (carrier,), d_vocab=d_vocab, n_ctx=n_ctx, seed=seed)
    bias = attention_of(model, carrier[0]).position_bias
    bias[carrier[1], :2] = torch.tensor([SHARP, 0.0])  # it looks at itself
    return _copying_what_was_carried(model, reader)


def virtual_induction_model(
    heads_per_layer: tuple[int, ...] = (3, 3),
    reader: Head = READER,
    writer: Head = WRITER,
    carrier: Head = CARRIER,
    d_vocab: int = 61,
    n_ctx: int = 64,
    seed: int = 0,
) -> Transformer:
    """Induction by a virtual head: `reader` looks two past an earlier copy, where `carrier` wrote the token before.

    What tells it where is `writer`, which looks two back. No head attends to what followed an earlier copy.
    """
    model = planted_induction(heads_per_layer, reader, (writer,), (carrier,), d_vocab=d_vocab, n_ctx=n_ctx, seed=seed)
    attention_of(model, writer[0]).position_bias[writer[1], 1:3] = torch.tensor([0.0, SHARP])
    return _copying_what_was_carried(model, reader)


def _copying_what_was_carried(model: Transformer, reader: Head) -> Transformer:
    """The model, its reader moving what `carried` has instead of the token itself."""
    _move(model, *reader, "next_token", of="carried")
    attention_of(model, reader[0]).W_V[reader[1], dimensions(model, "token")] = 0
    return model


def rotated(model: Transformer, seed: int = 0) -> Transformer:
    """The same function in other bases: of the stream, and of each head's queries and keys, and of its values."""
    generator = torch.Generator().manual_seed(seed)

    def turn(n: int, *batch: int) -> Tensor:
        return torch.linalg.qr(torch.randn(*batch, n, n, generator=generator, dtype=torch.float64)).Q.float()

    stream = turn(model.architecture.d_model)
    for written in (model.W_E, model.W_pos):
        if written is not None:
            written.copy_(written @ stream)
    model.W_U.copy_(stream.T @ model.W_U)
    for layer in model.layers:
        a = layer.attention
        n_heads, _, d_head = a.W_Q.shape
        match, mix = turn(d_head, n_heads), turn(a.W_V.shape[2], n_heads)
        for weight, inner in ((a.W_Q, match), (a.W_K, match), (a.W_V, mix)):
            weight.copy_(stream.T @ weight @ inner)
        a.W_O.copy_(mix.mT @ a.W_O @ stream)
    return model


def shuffled(model: Transformer, seed: int = 0) -> Transformer:
    """The same weights with no head whole: each kind of matrix is dealt out anew among all heads of all layers."""
    generator = torch.Generator().manual_seed(seed)
    attentions = [layer.attention for layer in model.layers]
    for name in ("W_Q", "W_K", "W_V", "W_O", "position_bias"):
        weights = [getattr(attention, name) for attention in attentions]
        dealt = torch.cat([weight.clone() for weight in weights])
        dealt = dealt[torch.randperm(len(dealt), generator=generator)]
        for weight, own in zip(weights, dealt.split([len(weight) for weight in weights]), strict=True):
            weight.copy_(own)
    return model


def initial_like(model: Transformer, seed: int = 0) -> Transformer:
    """A model of the same shape before training."""
    initial = Transformer(model.architecture, model.d_vocab).initialize(torch.Generator().manual_seed(seed))
    return initial.requires_grad_(False)


def _plant_noise(model: Transformer, seed: int, planted: set[Head]) -> None:
    """Small random weights in all heads but those that are planted."""
    generator = torch.Generator().manual_seed(seed)
    for layer in range(len(model.layers)):
        attention = attention_of(model, layer)
        for weight in (attention.W_Q, attention.W_K, attention.W_V, attention.W_O):
            noise = torch.randn(weight.shape, generator=generator) * NOISE * weight.shape[1] ** -0.5
            for head in range(len(weight)):
                if (layer, head) not in planted:
                    weight[head] = noise[head]
