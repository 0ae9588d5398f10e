"""The pairs of a prompt set that a model is measured on, and those that its tokenizer can't tell apart."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.bos import NO_BOS
from headstream.models.prompts.pairs import Pairs, answer_rows
from headstream.models.repeats import middle_tokens
from headstream.tasks.prompts.prompt_pair import PromptPair
from headstream.tasks.prompts.tokenised_pairs import TokenIds, TokenisedPair, tokenised
from headstream.tasks.text.vocabulary import Vocabulary

MIN_PAIRS = 8
PERIODS = (6, 9, 12, 15)  # of repeats, in tokens


@dataclass(frozen=True)
class TriedPair:
    """A pair with what its tokens are, or why it is dropped."""

    pair: PromptPair
    tokens: TokenisedPair | str


@dataclass(frozen=True)
class KeptPairs:
    """Pairs that a model is measured on: those of as many tokens together, in an order of their own."""

    tried: Sequence[TriedPair]  # every pair, kept or not, in the order of the set

    @property
    def kept(self) -> list[TriedPair]:
        """The pairs that are measured."""
        return [each for each in self.tried if not isinstance(each.tokens, str)]

    @property
    def why_refused(self) -> str | None:
        """Why the whole set is refused: too few pairs are left, and the commonest reason for that."""
        n = len(self.kept)
        if n >= MIN_PAIRS:
            return None
        reasons = Counter(each.tokens for each in self.tried if isinstance(each.tokens, str))
        most = f"; most often, {reasons.most_common(1)[0][0]}" if reasons else ""
        return f"{n} of {len(self.tried)} pairs are left, and {MIN_PAIRS} are needed{most}"

    @property
    def templates(self) -> Int[Tensor, "pair"]:
        """The number of each kept pair's template."""
        numbers: dict[str, int] = {}
        return torch.tensor([numbers.setdefault(each.pair.template, len(numbers)) for each in self.kept])

    def by_length(self) -> Iterator[tuple[Int[Tensor, "chosen"], Pairs]]:
        """Kept pairs of each length that begin to differ at one position, with their places among all that are kept."""
        kept = [each.tokens for each in self.kept if not isinstance(each.tokens, str)]
        shapes = [(len(tokens.clean), _first_difference(tokens)) for tokens in kept]
        for shape in sorted(set(shapes)):
            places = [i for i, own in enumerate(shapes) if own == shape]
            own = [kept[i] for i in places]
            clean, corrupt = (torch.tensor([pair[side] for pair in own]) for side in (0, 1))
            rows = (answer_rows([pair[side] for pair in own]) for side in (2, 3))
            yield torch.tensor(places), Pairs(clean, corrupt, *rows)


def _first_difference(tokens: TokenisedPair) -> int:
    both = zip(tokens.clean, tokens.corrupt, strict=True)
    return next(i for i, (clean, corrupt) in enumerate(both) if clean != corrupt)


def kept_of_text(pairs: Sequence[PromptPair], tokens: Vocabulary, n_ctx: int, most: int) -> KeptPairs:
    """The first pairs of text that a tokenizer reads as they must be, at most so many."""
    opening: TokenIds = () if tokens.bos == NO_BOS else (tokens.bos,)
    tried: list[TriedPair] = []
    n_kept = 0
    for pair in pairs:
        if n_kept == most:
            break
        read = tokenised(pair, lambda text: tokens.tokenizer.encode(text, add_special_tokens=False).ids, opening, n_ctx)
        tried.append(TriedPair(pair, read))
        n_kept += not isinstance(read, str)
    return KeptPairs(tried)


def kept_repeats(tokens: Vocabulary, counts: Int[Tensor, "d_vocab"], n_ctx: int, n: int, seed: int) -> KeptPairs:
    """Pairs of random tokens that come again; corrupt, the earlier copy of the last one is another token.

    What followed it is the answer, and what followed another one wrong.
    """
    generator = torch.Generator().manual_seed(seed)
    pool = middle_tokens(counts, tokens.bos)
    opening: TokenIds = () if tokens.bos == NO_BOS else (tokens.bos,)
    periods = [period for period in PERIODS if len(opening) + 2 * period - 1 <= n_ctx and period < len(pool)]
    labels, tried = tokens.token_labels(), list[TriedPair]()
    for i in range(n if periods else 0):
        period = periods[i % len(periods)]
        drawn = pool[torch.randperm(len(pool), generator=generator)[: period + 1]].tolist()
        once, replacement = drawn[:period], drawn[period]
        again = int(torch.randint(period // 2, period - 1, (1,), generator=generator))  # the last token's place
        other = int(torch.randint(1, period, (1,), generator=generator))
        if other == again + 1:
            other = again
        replaced = [*once[:again], replacement, *once[again + 1 :]]
        ends = once[: again + 1]
        read = TokenisedPair((*opening, *once, *ends), (*opening, *replaced, *ends), (once[again + 1],), (once[other],))
        tried.append(TriedPair(_spelled(read, labels, f"pair {i + 1}"), read))
    return KeptPairs(tried)


def _spelled(read: TokenisedPair, labels: Sequence[str], template: str) -> PromptPair:
    """A pair of tokens in their labels."""
    clean, corrupt, answers, wrong = (" ".join(labels[token] for token in part) for part in read)
    return PromptPair(clean, corrupt, (answers,), (wrong,), template)
