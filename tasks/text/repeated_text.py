"""Shares of a text that repeat what came shortly before, and that an induction head could therefore predict."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstream.tasks.text.bigram_counts import commonest_successors
from headstream.tasks.text.token_reading import Tokens

CONTEXTS = (16, 32, 64, 128, 256, 512, 1024, 2048)  # tokens looked back over, the current one included
MAX_TOKENS = 2**21  # of validation text that are examined

Ids = NDArray[np.int64]


def repeat_shares(tokens: Tokens) -> list[dict[str, Any]]:
    """Rows of `corpus_repeats`, without the corpus's key: one for each of CONTEXTS, or none if there is no text.

    The prediction is the token after the last earlier occurrence of the current token, or of the current two, in the
    context and the document; if there is none, it counts as wrong. Every token is predicted that is preceded by two of
    its document.
    """
    stream = tokens.validation.read(0, min(MAX_TOKENS, len(tokens.validation))).astype(np.int64)
    document = np.searchsorted(tokens.document_starts("validation"), np.arange(len(stream)), side="right")
    current = 1 + np.flatnonzero(document[2:] == document[:-2])
    wanted = stream[current + 1]
    is_common = commonest_successors(tokens.train, tokens.counts)[stream[current]] == wanted
    pairs = stream[current - 1] * tokens.vocabulary + stream[current]
    by_token, by_pair = (_last_earlier(signs) for signs in (stream[current], pairs))

    def is_right(earlier: Ids, length: int, context: int) -> NDArray[np.bool_]:
        """True where the `length` current tokens occurred before within the context, with the same successor."""
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
    """The index of the last earlier occurrence of each of `signs`; -1 for a first occurrence."""
    order = np.argsort(signs, kind="stable")
    again = signs[order[1:]] == signs[order[:-1]]
    earlier = np.full(len(signs), -1)
    earlier[order[1:][again]] = order[:-1][again]
    return earlier
