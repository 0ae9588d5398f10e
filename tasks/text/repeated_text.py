"""How much of a text repeats what came shortly before: what there is for an induction head to predict."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstream.tasks.text.bigram_counts import commonest_successors
from headstream.tasks.text.token_reading import Tokens

CONTEXTS = (16, 32, 64, 128, 256, 512, 1024, 2048)  # tokens looked back over, the current one included
MOST_TOKENS = 2**21  # of validation text that are looked at

Ids = NDArray[np.int64]


def repeat_shares(tokens: Tokens) -> list[dict[str, Any]]:
    """Rows of `corpus_repeats`, but for the key of the corpus: one for each of CONTEXTS, none without text to ask of.

    What followed the last earlier occurrence of the current token, or of the last two, is the prediction; where there
    is none in the context and the document, there is no prediction, which counts as wrong. Asked for is every token
    that two of its document precede.
    """
    stream = tokens.validation.read(0, min(MOST_TOKENS, len(tokens.validation))).astype(np.int64)
    document = np.searchsorted(tokens.document_starts("validation"), np.arange(len(stream)), side="right")
    current = 1 + np.flatnonzero(document[2:] == document[:-2])
    wanted = stream[current + 1]
    is_common = commonest_successors(tokens.train, tokens.counts)[stream[current]] == wanted
    pairs = stream[current - 1] * tokens.vocabulary + stream[current]
    by_token, by_pair = (_last_earlier(signs) for signs in (stream[current], pairs))

    def is_right(earlier: Ids, length: int, context: int) -> NDArray[np.bool_]:
        """Where the `length` current tokens came before, all in the context, and what followed is what is wanted."""
        first = current[earlier] - (length - 1)
        there = (earlier >= 0) & (current - first < context) & (document[first] == document[current])
        return there & (wanted[earlier] == wanted)

    rows = []
    for context in CONTEXTS if len(current) else ():
        pair_is_right = is_right(by_pair, 2, context)
        shares = {
            "token_share": is_right(by_token, 1, context),
            "pair_share": pair_is_right,
            "beyond_bigrams_share": pair_is_right & ~is_common,
        }
        rows.append({"context": context, **{name: float(right.mean()) for name, right in shares.items()}})
    return rows


def _last_earlier(signs: Ids) -> Ids:
    """The index of the last earlier one that equals each of `signs`; -1 of the first of a kind."""
    order = np.argsort(signs, kind="stable")
    again = signs[order[1:]] == signs[order[:-1]]
    earlier = np.full(len(signs), -1)
    earlier[order[1:][again]] = order[:-1][again]
    return earlier
