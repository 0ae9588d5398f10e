"""A model asked by pairs of prompts: what it makes of a prompt set, and what each head is worth on one pair."""

import html
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from headstream.models.prompts.certainty import clusters_of
from headstream.models.prompts.exact_effects import exact_node_effects
from headstream.models.prompts.patched_runs import base_run, why_refused
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.prompts.asked_pairs import kept_pairs, log_odds, pair_rows, score_row
from headstream.tasks.prompts.kept_pairs import kept_of_text
from headstream.tasks.prompts.prompt_files import pairs_of_rows
from headstream.tasks.prompts.prompt_pair import PromptPair
from headstream.tasks.prompts.prompt_writing import candidates
from headstream.tasks.prompts.shipped_prompts import SHIPPED
from headstream.tasks.study.analyses.prompts_config import PromptSetConfig
from headstream.tasks.text.vocabulary import Vocabulary

SHOWN_PAIRS = 5  # in a notebook


class AskedPairs:
    """What a model makes of a prompt set: `pairs`, a row for each pair that was tried, and `scores` over all kept.

    >>> asked = model.prompts("repeats", pairs=16)
    >>> asked.pairs.head(), asked.scores.accuracy
    """

    def __init__(self, name: str, pairs: pd.DataFrame, scores: pd.Series, why_refused: str | None) -> None:
        self.name, self.pairs, self.scores, self.why_refused = name, pairs, scores, why_refused

    def __repr__(self) -> str:
        if self.why_refused:
            return f"{self.name}: not measured, {self.why_refused}"
        s = self.scores
        dropped = int(self.pairs.get("why_dropped", pd.Series(dtype=object)).notna().sum())
        interval = "" if s.accuracy_low is None else f" ({s.accuracy_low:.2f} to {s.accuracy_high:.2f})"
        return (
            f"{self.name}: {s.n_pairs:.0f} pairs, {dropped} dropped; right in {s.accuracy:.2f}{interval}\n"
            f"log-odds of the answer {s.clean_nats:.2f} ({s.clean_low_nats:.2f} to {s.clean_high_nats:.2f}), corrupt"
            f" {s.corrupt_nats:.2f} ({s.corrupt_low_nats:.2f} to {s.corrupt_high_nats:.2f}) nats\n"
            f"{'it can do it' if s.can_do_it else 'that it can do it is not shown'}"
        )

    def _repr_html_(self) -> str:
        """What is printed, and the first pairs as a table."""
        columns = [name for name in ("prompt", "corrupt", "clean_nats", "corrupt_nats") if name in self.pairs]
        pairs = self.pairs[columns].head(SHOWN_PAIRS).to_html(index=False, na_rep="", float_format="{:.2f}".format)
        return f"<p>{html.escape(repr(self)).replace(chr(10), '<br>')}</p>{pairs}"


def ask(model: Transformer, tokens: Vocabulary, prompts: str | Path | pd.DataFrame, most: int, seed: int) -> AskedPairs:
    """Measure a model on a prompt set that ships, on a file of pairs, or on a data frame with a file's columns.

    Raises:
        UserError: there is no such set or file, or it isn't as it must be.
    """
    if isinstance(prompts, pd.DataFrame):
        name, pairs = "prompts", pairs_of_rows("the frame", enumerate(prompts.to_dict("records"), 1))
    elif str(prompts) in SHIPPED:
        name, pairs = str(prompts), candidates(PromptSetConfig.model_validate({"set": str(prompts)}), seed)
    elif Path(prompts).suffix:
        name, pairs = Path(prompts).name, candidates(PromptSetConfig(name="own", path=str(prompts)), seed)
    else:
        raise UserError(f"prompts must be a file or one of {', '.join(SHIPPED)}, got {prompts!r}. Choose one.")
    kept = kept_pairs(name, pairs, tokens, model.architecture.n_ctx, most, seed)
    if kept.why_refused:
        return AskedPairs(name, pd.DataFrame(pair_rows(kept, None)), pd.Series(dtype=object), kept.why_refused)
    odds = log_odds(model, kept)
    scores = pd.Series(score_row(odds, clusters_of(kept.templates)), dtype=object)
    return AskedPairs(name, pd.DataFrame(pair_rows(kept, odds)), scores, None)


def patch(
    model: Transformer,
    tokens: Vocabulary,
    clean: str,
    corrupt: str,
    answer: str | Sequence[str],
    wrong: str | Sequence[str],
) -> pd.DataFrame:
    """The exact effect of every head and feed-forward layer on one pair of prompts, the largest first.

    Raises:
        UserError: the tokenizer reads the two prompts as different numbers of tokens, or an answer merges with them.
    """
    if why := why_refused(model.architecture):
        raise UserError(f"a model with {why} has no graph of nodes that could be patched. Choose another model.")
    if model.interventions:
        raise UserError("interventions act on this model, which has no graph of nodes then. Choose another checkpoint.")
    answers, wrongs = ((text,) if isinstance(text, str) else tuple(text) for text in (answer, wrong))
    pair = PromptPair(clean, corrupt, answers, wrongs, "")
    kept = kept_of_text([pair], tokens, model.architecture.n_ctx, 1)
    if isinstance(dropped := kept.tried[0].tokens, str):
        raise UserError(
            f"the pair can't be compared: {dropped}. Choose prompts and answers that differ in one word each."
        )
    ((_, pairs),) = kept.by_length()
    runs = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    whole = (pairs.log_odds(runs[0].logits) - pairs.log_odds(runs[1].logits)).item()
    noised, restored = (effects[1:, 0].tolist() for effects in exact_node_effects(*runs, pairs))
    frame = pd.DataFrame({"effect_nats": noised, "restored_nats": restored}, index=map(str, runs[0].graph.writers[1:]))
    frame["share"], frame["restored_share"] = frame.effect_nats / whole, frame.restored_nats / whole
    frame.attrs |= {"clean_nats": pairs.log_odds(runs[0].logits).item(), "difference_nats": whole}
    return frame.rename_axis("node").sort_values("effect_nats", key=abs, ascending=False, kind="stable")
