"""Interventions in training: what is done to a model's heads, or to its loss, while it trains."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headstream.models.architecture import Architecture
from headstream.models.interventions import Interventions, PatternRule
from headstream.models.nodes import HEAD_LABEL, MLP, Edge, Head, Port, parse_node
from headstream.tasks.study.field_types import ListOf

STAGES_OF_ROLES = {"induction": ("behaviour",), "writer": ("behaviour", "activation-circuits")}
"""For each role by which a head can be named the stages that tell which head has it."""
MAX_TRAINED_TOKENS = 10**12
Which = Literal["token", "pair", "beyond_bigrams"]  # of the tokens that induction predicts
_EACH = re.compile(r"each of layer (\d{1,2})")
_EDGE = re.compile(r"L(\d{1,2})(?:H(\d{1,4})|(MLP))? -> L(\d{1,2})(?:H(\d{1,4}))?\.(Q|K|V)")
_Labels = Annotated[ListOf[str], Field(min_length=1, max_length=1024)]
_NEEDS = {
    "silence": ("heads",),
    "clamp": ("heads", "pattern"),
    "cut": ("edges",),
    "freeze": ("heads",),
    "unlearn": ("which",),
}


class InterventionConfig(BaseModel):
    """An intervention in training, from one number of tokens to another."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_by_name=True, serialize_by_alias=True
    )

    kind: Literal["silence", "clamp", "cut", "freeze", "unlearn"] = Field(
        description="silence: heads write nothing; clamp: they attend by a rule; cut: a head's queries, keys or values"
        " don't see what another wrote; freeze: their weights stay as they are; unlearn: tokens that induction"
        " predicts have no loss."
    )
    heads: _Labels | str | None = Field(
        None,
        description='Heads, like ["L0H1"]; "each of layer 0": a model for each head of it; "induction" or "writer": the'
        " induction head, or the head that it reads most by its keys, of the same model without interventions.",
    )
    pattern: PatternRule | None = Field(
        None,
        description="Rule of a clamp: what all attention goes to. previous: the token before; self: the query's own;"
        " first: the first position; uniform: all keys alike; copies: what followed earlier copies of the token.",
    )
    edges: _Labels | None = Field(
        None, description='Edges of a cut, like ["L0H0 -> L1H0.K"] or, of whole layers, ["L0 -> L1.K"].'
    )
    which: Which | None = Field(
        None,
        description="Tokens that are not learned: those that followed the last copy in the sequence of the current"
        " token, or of the current two; beyond_bigrams: the latter where the bigram's commonest successor is another.",
    )
    since: int = Field(0, alias="from", ge=0, le=MAX_TRAINED_TOKENS, description="Tokens trained on when it begins.")
    until: int | None = Field(
        None, ge=1, le=MAX_TRAINED_TOKENS, description="Tokens trained on when it ends; default: it doesn't."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        needs = _NEEDS[self.kind]
        for name in ("heads", "pattern", "edges", "which"):
            given = getattr(self, name)
            if name in needs and given is None:
                raise ValueError(f"{self.kind} needs {name}. Add it.")
            if name not in needs and given is not None:
                raise ValueError(f"{self.kind} has no {name}. Remove it.")
        if isinstance(self.heads, str) and self.heads not in STAGES_OF_ROLES and not _EACH.fullmatch(self.heads):
            known = ", ".join(f"'{role}'" for role in STAGES_OF_ROLES)
            raise ValueError(
                f"heads must be a list like ['L0H1'], 'each of layer 0', or {known}, got {self.heads!r}. Choose one."
            )
        for label in self.heads if isinstance(self.heads, tuple) else ():
            if not HEAD_LABEL.fullmatch(label):
                raise ValueError(f"heads must be like 'L0H1', got {label!r}. Correct it.")
        for edge in self.edges or ():
            found = _EDGE.fullmatch(edge)
            if not found:
                raise ValueError(f"edges must be like 'L0H0 -> L1H0.K' or 'L0 -> L1.K', got {edge!r}. Correct it.")
            if int(found[1]) >= int(found[4]):
                raise ValueError(f"an edge must lead to a later layer, got {edge!r}. Correct it.")
        if self.until is not None and self.until <= self.since:
            raise ValueError(
                f"until must be after from, got from = {self.since} and until = {self.until}. Correct one."
            )
        return self

    @property
    def each_of_layer(self) -> int | None:
        """The layer for each of whose heads there is a model; None if heads are named."""
        each = _EACH.fullmatch(self.heads) if isinstance(self.heads, str) else None
        return int(each[1]) if each else None

    @property
    def role(self) -> str | None:
        """The role in the model without interventions by which its head is named; None if it isn't."""
        return self.heads if isinstance(self.heads, str) and self.heads in STAGES_OF_ROLES else None

    @property
    def named_heads(self) -> list[Head]:
        """Its heads, if it names them one by one."""
        nodes = map(parse_node, self.heads if isinstance(self.heads, tuple) else ())
        return [node for node in nodes if isinstance(node, Head)]  # which all are: others are refused

    @property
    def in_words(self) -> str:
        """What it does, like `clamp L0H0 to previous from 1000000`."""
        heads = self.heads if isinstance(self.heads, str) else ", ".join(self.heads or ())
        what = {
            "silence": heads,
            "freeze": heads,
            "clamp": f"{heads} to {self.pattern}",
            "cut": ", ".join(self.edges or ()),
            "unlearn": self.which,
        }[self.kind]
        since = f" from {self.since}" if self.since else ""
        return f"{self.kind} {what}{since}" + ("" if self.until is None else f" until {self.until}")

    def with_heads(self, *heads: Head) -> "InterventionConfig":
        """The same with these heads."""
        return self.model_copy(update={"heads": tuple(map(str, heads))})

    def edges_of(self, architecture: Architecture) -> Iterator[Edge]:
        """The edges of a cut, head by head."""
        for edge in self.edges or ():
            found = _EDGE.fullmatch(edge)
            assert found
            layer, head, mlp, reader_layer, reader, port = found.groups()
            writers: list[Head | MLP] = []
            if not mlp:
                writers += _heads(architecture, int(layer), head)
            if mlp or (head is None and architecture.feed_forward != "none"):
                writers.append(MLP(int(layer)))
            for writer in writers:
                for read_by in _heads(architecture, int(reader_layer), reader):
                    yield Edge(writer, read_by, cast("Port", port))

    def acts_at(self, tokens: int) -> bool:
        """True if it acts once a model has been trained on so many tokens."""
        return self.since <= tokens and (self.until is None or tokens < self.until)


def passes_at(
    interventions: tuple[InterventionConfig, ...], architecture: Architecture, tokens: int, bos: int
) -> Interventions:
    """What is done to a model's passes after so many tokens."""
    acting = [own for own in interventions if own.acts_at(tokens)]
    return Interventions(
        silenced=frozenset(head for own in acting if own.kind == "silence" for head in own.named_heads),
        clamped={head: own.pattern for own in acting if own.pattern for head in own.named_heads},
        cut=frozenset(edge for own in acting if own.kind == "cut" for edge in own.edges_of(architecture)),
        bos=bos,
    )


def in_words(interventions: tuple[InterventionConfig, ...]) -> str:
    """What all of them do; `none` without any."""
    return "; ".join(own.in_words for own in interventions) or "none"


def require_possible(interventions: tuple[InterventionConfig, ...], a: Architecture, tokens: int) -> None:
    """Raises ValueError when a model of this architecture, trained on so many tokens, can't have the interventions."""
    clamped: list[Head] = []
    for own in interventions:
        _require_nodes(own, a)
        if own.since >= tokens:
            raise ValueError(f"{own.in_words}: it must begin before the end of training, at {tokens}. Lower from.")
        if own.kind == "clamp" and a.attention != "full":
            raise ValueError(f"{own.in_words}: it needs attention = 'full', got {a.attention!r}. Remove one of them.")
        if own.kind == "clamp":
            clamped += own.named_heads
        if own.kind == "cut" and a.normalization != "none" and a.normalization_place != "pre":
            raise ValueError(
                f"{own.in_words}: it needs normalization_place = 'pre', got {a.normalization_place!r}, with which what"
                " a head wrote isn't a part of the stream any more. Remove one of them."
            )
        if own.kind == "freeze" and any(a.key_value_heads(n) < n for n in a.heads_per_layer):
            raise ValueError(
                f"{own.in_words}: it needs keys and values of the head's own. Leave n_key_value_heads out."
            )
    if twice := next((head for head in clamped if clamped.count(head) > 1), None):
        raise ValueError(f"{twice} is clamped twice. Remove one clamp.")


def _require_nodes(own: InterventionConfig, a: Architecture) -> None:
    """Raises ValueError when a head, or a layer, that an intervention names doesn't exist."""
    heads = [(head.layer, head.head) for head in own.named_heads]
    if own.each_of_layer is not None:
        heads.append((own.each_of_layer, 0))
    for edge in own.edges or ():
        found = _EDGE.fullmatch(edge)
        assert found
        heads += [(int(found[1]), int(found[2] or 0)), (int(found[4]), int(found[5] or 0))]
        if found[3] and a.feed_forward == "none":
            raise ValueError(f"{own.in_words}: the model has no feed-forward layers. Correct it, or set feed_forward.")
    for layer, head in heads:
        if layer >= a.n_layers or head >= a.heads_per_layer[layer]:
            raise ValueError(
                f"{own.in_words}: there must be such a head, but n_layers = {a.n_layers} and n_heads = {a.n_heads}."
                " Correct it."
            )


def _heads(a: Architecture, layer: int, head: Any) -> list[Head]:
    """A head of a layer, or all of them."""
    return [Head(layer, own) for own in (range(a.heads_per_layer[layer]) if head is None else [int(head)])]
