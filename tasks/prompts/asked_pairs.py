"""What a model makes of a prompt set: the log-odds of each pair, and whether it can do what is asked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.transformer import Transformer
from headstream.tasks.prompts.kept_pairs import KeptPairs, kept_of_text, kept_repeats
from headstream.tasks.prompts.prompt_pair import PromptPair
from headstream.tasks.prompts.shipped_prompts import REPEATS
from headstream.tasks.text.vocabulary import Vocabulary

PAIRS_AT_ONCE = 16


def kept_pairs(
    name: str, candidates: Sequence[PromptPair], tokens: Vocabulary, n_ctx: int, most: int, seed: int
) -> KeptPairs:
    """The pairs of a set that a model can be measured on, at most so many: of repeats drawn, of text the first ones."""
    if name != REPEATS:
        return kept_of_text(candidates, tokens, n_ctx, most)
    counts = torch.from_numpy(np.asarray(tokens.counts, dtype=np.int64))
    return kept_repeats(tokens, counts, n_ctx, most, seed)


@torch.inference_mode()
def log_odds(model: Transformer, kept: KeptPairs) -> Float[Tensor, "2 pair"]:
    """Log-odds of the answers, in nats, at the clean and at the corrupt prompt of every pair that is kept."""
    odds = torch.empty(2, len(kept.kept), dtype=torch.float64)
    for places, pairs in kept.by_length():
        for some in torch.arange(len(places)).split(PAIRS_AT_ONCE):
            batch = pairs[some].to(model.W_E.device)
            for side, prompts in enumerate((batch.clean, batch.corrupt)):
                odds[side, places[some]] = batch.log_odds(last_logits(model, prompts)).double().cpu()
    return odds


def last_logits(model: Transformer, tokens: Int[Tensor, "pair pos"]) -> Float[Tensor, "pair d_vocab"]:
    """Logits after the last token."""
    x = model.embed(tokens)
    for layer in model.layers:
        x = layer(x)
    return model.unembed(model.final_norm(x[:, -1]))


def pair_rows(kept: KeptPairs, odds: Float[Tensor, "2 pair"] | None) -> list[dict[str, Any]]:
    """A row for each pair that was tried: its texts, and its log-odds, or why it is dropped."""
    rows, n_kept = [], 0
    for number, tried in enumerate(kept.tried):
        pair = tried.pair
        row: dict[str, Any] = {"pair": number, "template": pair.template, "prompt": pair.prompt}
        row |= {"corrupt": pair.corrupt, "answers": list(pair.answers), "wrong": list(pair.wrong)}
        if isinstance(tried.tokens, str):
            row["why_dropped"] = tried.tokens
        elif odds is not None:
            row |= {"n_tokens": len(tried.tokens.clean), "clean_nats": odds[0, n_kept].item()}
            row["corrupt_nats"] = odds[1, n_kept].item()
            n_kept += 1
        rows.append(row)
    return rows


def score_row(odds: Float[Tensor, "2 pair"], clusters: Int[Tensor, "pair"]) -> dict[str, Any]:
    """Means over pairs with their 95 % intervals, and whether the model can do it.

    It can if the interval of the difference between the prompts is above 0, and that of accuracy above a half.
    """
    row: dict[str, Any] = {"n_pairs": odds.shape[1]}
    parts = {"accuracy": (odds[0] > 0).double(), "clean": odds[0], "corrupt": odds[1], "difference": odds[0] - odds[1]}
    for name, values in parts.items():
        found = clustered_mean(values, clusters)
        low, high = found.interval()
        if name == "accuracy":
            low, high = low.clamp(min=0), high.clamp(max=1)  # Student's t knows of no bounds
        unit = "" if name == "accuracy" else "_nats"
        ends = {f"{name}_low{unit}": low.item(), f"{name}_high{unit}": high.item()}
        row |= {f"{name}{unit}": found.mean.item(), **ends}
    if row["accuracy"] in (0.0, 1.0):  # no pair differs, so that its error is not 0 but unknown
        row |= {"accuracy_low": None, "accuracy_high": None}
    accurate = row["accuracy"] == 1 or (row["accuracy_low"] or 0) > 0.5
    return row | {"can_do_it": bool(accurate and row["difference_low_nats"] > 0)}
