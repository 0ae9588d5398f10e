"""Rows of results about heads, whichever stage scored them."""

from collections.abc import Callable, Mapping, Sequence, Sized
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from headstream.models.heads.head import HeadSet
from headstream.models.heads.importance_methods import normalise
from headstream.models.heads.scoring_inputs import HeadScores
from headstream.tasks.results.tables import Table


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


def without_rows_on(frame: pd.DataFrame, table: Table, removed_at: Callable[[int | None], HeadSet]) -> pd.DataFrame:
    """Rows of a table, those left out that are about heads removed by their step, or by the end if they have none."""
    steps = frame["step"].unique().tolist() if "step" in frame else [None]
    removed = {step: removed_at(step) for step in steps}
    if not any(removed.values()):
        return frame
    parts = [(frame if step is None else frame[frame["step"] == step], heads) for step, heads in removed.items()]
    return pd.concat([part[~_are_about(part, table, heads)] for part, heads in parts], ignore_index=True)


def _are_about(frame: pd.DataFrame, table: Table, heads: HeadSet) -> Bool[np.ndarray, "row"]:
    """A mask of the rows that name one of these heads."""
    about, labels = np.zeros(len(frame), dtype=bool), [str(head) for head in heads]
    for place in map(list, table.heads):
        if set(place) <= set(frame):
            about |= pd.MultiIndex.from_frame(frame[place]).isin(list(heads))
    for column in set(table.labels) & set(frame):
        named = frame[column].explode()  # of lists, one by one
        about |= named.isin(labels).groupby(level=0).any().to_numpy()
    return about
