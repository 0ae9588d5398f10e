"""Pairs of prompts as a tokenizer reads them, or why a pair can't be measured with it."""

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from headstream.tasks.prompts.prompt_pair import PromptPair

TokenIds = tuple[int, ...]
Encode = Callable[[str], Sequence[int]]


class TokenisedPair(NamedTuple):
    """What a model reads, and the tokens that would be right or wrong to go on with."""

    clean: TokenIds
    corrupt: TokenIds
    answers: TokenIds
    wrong: TokenIds


def tokenised(pair: PromptPair, encode: Encode, opening: TokenIds, n_ctx: int) -> TokenisedPair | str:
    """A pair as tokens, after those that open every sequence; or the reason why it is dropped, in words.

    An answer is text that continues its prompt. Where all answers, right and wrong, begin with the same tokens, these
    belong to the prompts, and the first tokens that differ are compared; of several answers, those that begin with a
    token of the other side tell nothing, and are left out.
    """
    prompts = [tuple(encode(text)) for text in (pair.prompt, pair.corrupt)]
    clean, corrupt = prompts
    if clean == corrupt:
        return "the prompts are the same"
    if len(clean) != len(corrupt):
        return f"the prompts have {len(clean)} and {len(corrupt)} tokens"
    continued: list[list[TokenIds]] = []
    for answers in (pair.answers, pair.wrong):
        ends = [_continuation(pair.prompt, clean, answer, encode) for answer in answers]
        if None in ends or any(_continuation(pair.corrupt, corrupt, answer, encode) is None for answer in answers):
            return "an answer merges with the end of its prompt into other tokens"
        continued.append([end for end in ends if end])
    shared = _beginning([*continued[0], *continued[1]])
    firsts = [_first_tokens(ends, len(shared)) for ends in continued]
    if any(None in tokens for tokens in firsts) or not all(firsts):
        return "one answer is the beginning of another"
    both = set(firsts[0]) & set(firsts[1])
    right, wrong = (tuple(token for token in tokens if token is not None and token not in both) for tokens in firsts)
    if not right or not wrong:
        return "right and wrong answers begin with the same token"
    whole = TokenisedPair(opening + clean + shared, opening + corrupt + shared, right, wrong)
    if len(whole.clean) > n_ctx:
        return f"the prompt has {len(whole.clean)} tokens, and the context {n_ctx}"
    return whole


def _continuation(prompt: str, tokens: TokenIds, answer: str, encode: Encode) -> TokenIds | None:
    """The tokens of an answer after its prompt; None if the prompt's own tokens change."""
    both = tuple(encode(prompt + answer))
    return both[len(tokens) :] if both[: len(tokens)] == tokens and len(both) > len(tokens) else None


def _beginning(ends: Sequence[TokenIds]) -> TokenIds:
    """The tokens that all ends begin with."""
    alike = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*ends, strict=False))
    return tuple(tokens[0] for tokens in alike)


def _first_tokens(ends: Iterable[TokenIds], start: int) -> tuple[int | None, ...]:
    """The first token of each end after those that all share, each once; None for an end that is over there."""
    return tuple(dict.fromkeys(end[start] if len(end) > start else None for end in ends))
