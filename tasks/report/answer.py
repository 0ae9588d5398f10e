"""What a study found, in up to five lines of plain words."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.markdown import short_count
from tasks.report.circuit_words import circuit_line
from tasks.report.pruning_words import head_count_lines, mean_of, pruning_line
from tasks.results.study_results import StudyResults

MAX_LINES = 5

Group = Mapping[str, Any]  # a row of reports/queries/answer.sql: models that differ only in their seed


def answer_lines(results: StudyResults) -> list[str]:
    """The lines that open a report, the most important first; error bars are 95 % intervals over seeds."""
    study, groups = results.rows("study")[0], results.rows("answer")
    lines = [f"{study['n_failed']} of {study['n_models']} models failed; why is below."] if study["n_failed"] else []
    if not groups:
        return [*lines, "No model was trained, so there is nothing to say yet."]
    best = next((group for group in groups if group["n_with_induction_head"]), groups[0])
    head_counts = head_count_lines(results)
    lines += [*head_counts, _induction(best)]
    if best["total_heads"]:
        lines.append(_formation(best))
    lines.append(" ".join([*_compared(best, groups), _losses(groups)]))
    if not head_counts and (line := pruning_line(results, best["label"])):
        lines.append(line)
    if best["total_heads"]:
        circuits = {circuit["label"]: circuit for circuit in results.rows("induction_circuits")}
        circuit = circuits.get(best["label"])
        lines.append((circuit and circuit_line(circuit, best["n_models"])) or _previous_token(best))
    return lines[:MAX_LINES]


def _induction(best: Group) -> str:
    score, gain = mean_of(best, "best_induction_random_period", 2), mean_of(best, "repeat_gain_nats", 2, " nats")
    label, head, n_with, n = best["label"], best["best_induction_head"], best["n_with_induction_head"], best["n_models"]
    before = best["untrained_induction"]
    start = "" if before is None else f", {before:.2f} before training"
    if not best["total_heads"]:
        return f"No model has attention heads, so none can have an induction head; repeat_gain is {gain}."
    if n_with is None:
        return f"Whether a head does induction was not measured: its score is missing; repeat_gain is {gain}."
    if not n_with:
        return (
            f"No model has an induction head: the best is {head} of {label} (induction_random_period {score}{start}); "
            f"repeat_gain is {gain}."
        )
    if n == 1:
        return (
            f"{label} has an induction head, {head}: on repeated random tokens, {score} of its attention goes to what "
            f"followed earlier copies of the current token (induction_random_period{start}); repeat_gain is {gain}."
        )
    return (
        f"{label} has an induction head in {n_with} of {n} seeds: the best head's induction_random_period is {score} "
        f"({head} in the best seed{start}); repeat_gain is {gain}."
    )


def _formation(best: Group) -> str:
    if best["occurred"] is None:
        return f"When heads of {best['label']} formed is missing."
    if not best["occurred"]:
        return f"There is no phase change in {best['label']}: prefix_matching of its best head never takes off."
    error_bar = best["formed_tokens_ci95"]
    formed = short_count(best["formed_tokens_mean"]) + (f" ± {short_count(error_bar)}" if error_bar is not None else "")
    window = f"between {short_count(best['window_start_tokens'] or 0)} and {short_count(best['window_end_tokens'])}"
    share = best["in_context_learning_share"]
    gained = "" if share is None else f"; {100 * share:.0f}\u00a0% of all in-context learning falls into that window"
    head = best["formed_head"] + (" in the best seed" if best["n_models"] > 1 else "")
    what = "It formed" if best["n_with_induction_head"] else "The nearest to one formed"
    return f"{what} at about {formed} tokens: prefix_matching of {head} rises {window} tokens{gained}."


def _compared(best: Group, groups: Sequence[Group]) -> list[str]:
    """Against the best model of every other depth or, within one depth, against the weakest."""
    others = {group["n_layers"]: group for group in reversed(groups) if group["n_layers"] != best["n_layers"]}
    if others:
        return [f"Other depths: {'; '.join(_briefly(others[depth]) for depth in sorted(others, reverse=True))}."]
    return [f"Weakest induction: {_briefly(groups[-1])}."] if len(groups) > 1 else []


def _briefly(group: Group) -> str:
    gain = f"repeat_gain {mean_of(group, 'repeat_gain_nats', 2, ' nats')}"
    if not group["total_heads"]:
        return f"{group['label']} has no heads ({gain})"
    score = mean_of(group, "best_induction_random_period", 2)
    found = "has an induction head" if group["n_with_induction_head"] else "has none"
    return f"{group['label']} {found} (best {score}, {gain})"


def _losses(groups: Sequence[Group]) -> str:
    """The lowest loss of each depth."""
    measured = [group for group in groups if group["validation_loss_nats_mean"] is not None]
    lowest = {g["n_layers"]: g for g in sorted(measured, key=lambda g: -g["validation_loss_nats_mean"])}
    by_depth = [f"{mean_of(lowest[n], 'validation_loss_nats', 2)} ({lowest[n]['label']})" for n in sorted(lowest)]
    which = ", best of each depth" if len(lowest) > 1 else ""
    return f"Validation loss, nats per token{which}: {', '.join(by_depth) or 'missing'}."


def _previous_token(best: Group) -> str:
    score, label = mean_of(best, "best_previous_token_layer_0", 2), best["label"]
    name = f", {best['best_previous_token_head_layer_0']}," if best["n_models"] == 1 else ""
    return f"The best previous-token head in layer 0 of {label}{name} gives the token before {score} of its attention."
