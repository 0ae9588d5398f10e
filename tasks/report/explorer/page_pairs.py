"""Pairs of prompts that an explorer's page shows of each model: their tokens, and the log-odds that were measured."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from headstream.models.bos import n_bos
from headstream.tasks.prompts.prompt_pair import PromptPair
from headstream.tasks.prompts.shipped_prompts import REPEATS
from headstream.tasks.prompts.tokenised_pairs import TokenisedPair, tokenised
from headstream.tasks.text.token_reading import Tokens

PAIRS_SHOWN = 8  # of each prompt set

_Rows = Sequence[Mapping[str, Any]]
_Pairs = dict[str, list[dict[str, Any]]]


def pairs_shown(rows: _Rows, tokens: Tokens, n_ctx: int) -> _Pairs:
    """Some pairs of each prompt set, evenly spread over it, from a model's rows of `measured_pairs`, by prompt set."""
    found: _Pairs = {}
    for prompts, of_set in groupby(rows, lambda row: row["prompts"]):
        own = list(of_set)
        n = min(PAIRS_SHOWN, len(own))
        some = [own[i * len(own) // n] for i in range(n)]
        read = _spelled(some, tokens) if prompts == REPEATS else _encoded(some, tokens, n_ctx)
        found[str(prompts)] = [_fields(row, pair) for row, pair in zip(some, read, strict=True) if pair]
    return found


def tokens_of(pairs: _Pairs) -> set[int]:
    """Every token of the pairs and of their answers."""
    sides = ("clean", "corrupt", "answers", "wrong")
    return {token for own in chain(*pairs.values()) for side in sides for token in own[side]}


def _fields(row: Mapping[str, Any], read: TokenisedPair) -> dict[str, Any]:
    """A pair as study.js reads it."""
    odds = {"cleanNats": round(row["clean_nats"], 4), "corruptNats": round(row["corrupt_nats"], 4)}
    return {"pair": row["pair"], "template": row["template"]} | read._asdict() | odds


def _spelled(rows: _Rows, tokens: Tokens) -> Iterator[TokenisedPair]:
    """Pairs of random tokens, which are told by their labels."""
    ids = {label: token for token, label in enumerate(tokens.token_labels())}
    for row in rows:
        prompts = (tuple(ids[label] for label in row[side].split(" ")) for side in ("prompt", "corrupt"))
        answers = (tuple(ids[label] for label in row[side]) for side in ("answers", "wrong"))
        yield TokenisedPair(*prompts, *answers)


def _encoded(rows: _Rows, tokens: Tokens, n_ctx: int) -> Iterator[TokenisedPair | None]:
    """Pairs of texts, as they were read when they were measured."""
    opening = (tokens.bos,)[: n_bos(tokens.bos)]
    for row in rows:
        pair = PromptPair(row["prompt"], row["corrupt"], tuple(row["answers"]), tuple(row["wrong"]), row["template"])
        read = tokenised(pair, lambda text: tokens.tokenizer.encode(text, add_special_tokens=False).ids, opening, n_ctx)
        yield None if isinstance(read, str) else read
