"""Rows of results about heads, whichever stage scored them."""

from collections.abc import Mapping, Sequence, Sized
from math import isfinite
from typing import Any

from models.heads.evidence import HeadScores
from models.heads.importance_methods import normalise


def head_rows(layers: Sequence[Sized], columns: Mapping[str, Sequence[Any]], **same: Any) -> list[dict[str, Any]]:
    """One row a head, given something of each head a layer, columns of all heads, and what is the same in all rows."""
    heads = [{"layer": layer, "head": head} for layer, own in enumerate(layers) for head in range(len(own))]
    values = [dict(zip(columns, own, strict=True)) for own in zip(*columns.values(), strict=True)]
    return [{**head, **same, **own} for head, own in zip(heads, values, strict=True)]


def importance_rows(method: str, scores: HeadScores) -> list[dict[str, Any]]:
    """Rows of `importance`, one a head."""
    score, normalised = ([value for own in layers for value in own.tolist()] for layers in (scores, normalise(scores)))
    by_score = sorted((i for i in range(len(score)) if isfinite(score[i])), key=lambda i: -score[i])
    place = {i: rank for rank, i in enumerate(by_score)}
    columns = {"score": score, "normalised": normalised, "rank": [place.get(i) for i in range(len(score))]}
    return head_rows(scores, columns, method=method)
