"""Attention as a part of a page, for notebooks: a table that any page shows, and data that a script draws."""

import base64
import html
import json
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headstream.tasks.report.sentences import counted

MAX_WEIGHTS = 1_500_000  # that one drawing holds, about half as many bytes
FOLDER = Path(__file__).parent


def attention_html(
    tokens: Sequence[str],
    heads: Sequence[str],
    patterns: Sequence[Float[Tensor, "head query key"]],
    shares: Mapping[str, Sequence[str]],
    first: str | None,
) -> str:
    """Attention drawn, as HTML without anything from elsewhere; of long texts, the beginning.

    `shares` are columns of a table by their heading, with a row for each head; `first` is the head that is large.
    """
    title = f"Attention on {counted(len(tokens), 'token')}"
    if not heads:
        return f"<p>{title}: the model has no heads.</p>"
    n = _drawn_tokens(len(tokens), len(heads))
    if n < len(tokens):
        title += f", of which the first {n} are drawn"
    data = {
        "tokens": json.dumps([*tokens[:n]], ensure_ascii=False),
        "heads": json.dumps([*heads]),
        "weights": packed([pattern[:, :n, :n] for pattern in patterns]),
        "first": str(heads.index(first) if first else 0),
    }
    attributes = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in data.items())
    style, script = (_shipped(f"attention_drawing.{kind}") for kind in ("css", "js"))
    return (
        f'<div class="headstream-attention" {attributes}><style>{style}</style><p class="title">{title}</p>'
        f"{_table(heads, shares)}<script>{script}</script></div>"
    )


def packed(patterns: Sequence[Float[Tensor, "head query key"]]) -> str:
    """Weights in thousandths, by head, query and key up to the query: 16 bits each, deflated, in base64."""
    parts = []
    for pattern in patterns:
        rows, columns = np.tril_indices(pattern.shape[1])
        thousandths = (pattern.detach() * 1000).round().clamp(0, 1000).to(torch.int32).numpy()
        parts.append(thousandths[:, rows, columns].astype("<u2").tobytes())
    return base64.b64encode(zlib.compress(b"".join(parts), 9)).decode()


def _drawn_tokens(n_tokens: int, n_heads: int) -> int:
    """The number of tokens of which a drawing can hold the weights of all heads, at most all, at least one."""
    most = int(np.sqrt(2 * MAX_WEIGHTS / n_heads + 0.25) - 0.5)
    return max(1, min(n_tokens, most))


def _table(heads: Sequence[str], shares: Mapping[str, Sequence[str]]) -> str:
    """Where heads look, in numbers: all that is left where scripts don't run."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in ("mean share", *shares))
    rows = [
        f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{html.escape(each)}</td>' for each in row)}</tr>"
        for name, row in zip(heads, zip(*shares.values(), strict=True), strict=True)
    ]
    return f"<details open><summary>In numbers</summary><table><tr>{head}</tr>{''.join(rows)}</table></details>"


@cache
def _shipped(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
