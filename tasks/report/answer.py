"""What a study found, in up to five lines of plain words, and two more of behaviours that it asked for."""

from collections.abc import Sequence

from headstream.tasks.report.behaviour_words import behaviour_lines
from headstream.tasks.report.circuit_words import circuit_line
from headstream.tasks.report.differences import ValueBySeed, extreme
from headstream.tasks.report.imported_words import importance_line, role_line
from headstream.tasks.report.intervention_words import intervention_lines
from headstream.tasks.report.model_choice import measured_groups
from headstream.tasks.report.over_seeds import Group, mean_of, values_of
from headstream.tasks.report.pruning_words import head_count_lines, pruning_line
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.little_to_induce import LITTLE_TO_INDUCE, little_to_induce
from headstream.tasks.words.markdown import short_count

MAX_LINES = 5
FIGURES_OF_THE_ANSWER = ("heads_that_matter", "context_over_training", "induction_circuit", "learning_curves")
N_FIGURES_OF_THE_ANSWER = 2  # the first of these that a study has
SCORE = "best_induction_random_period"
GAIN = "repeat_gain (by how much loss falls where random tokens come again)"


def answer_lines(results: StudyResults) -> list[str]:
    """The lines that open a report, the most important first; a group is a row of reports/queries/answer.sql."""
    study, groups = results.rows("study")[0], _as_trained(results.rows("answer"))
    lines = _failures(results, study["n_models"]) if study["n_failed"] else []
    if not groups:
        return [*lines, "No model is there to be measured, so there is nothing to say yet."]
    behaviours = behaviour_lines(results)
    if behaviours and not measured_groups(results):
        return [*lines, *behaviours]
    best = _best(groups)
    head_counts = head_count_lines(results)
    lines += [*head_counts, _induction(best, groups), *intervention_lines(results)]
    if best["imported_as"]:
        told = role_line(results, best["label"]), importance_line(results, best["label"])
        lines += [line for line in told if line]
    if best["n_with_induction_head"] and not (best["imported_as"] and best["checkpoints"] == 1):
        lines.append(_formation(best))
    lines.append(" ".join([*_compared(best, groups), _losses(groups)]))
    if not head_counts and (line := pruning_line(results, best["label"])):
        lines.append(line)
    if best["total_heads"]:
        circuits = {circuit["label"]: circuit for circuit in results.rows("induction_circuits")}
        circuit = circuits.get(best["label"])
        seed = best["typical_seed"] if best["n_models"] > 1 else None
        line = circuit_line(circuit, seed) if circuit else None
        lines += [line] if line else _previous_token(best)
    return [*lines[:MAX_LINES], *behaviours]


def _failures(results: StudyResults, n_models: int) -> list[str]:
    """Which models failed, the first of them with the reason: it says what to do."""
    failed = results.rows("failures")
    first = " ".join((failed[0]["failure"] or "").split()).rstrip(".")
    if len(failed) == n_models == 1:
        return [f"{failed[0]['cell']} failed: {first}."]
    others = "; the others are under Failed" if len(failed) > 1 else ""
    return [f"{len(failed)} of {n_models} models failed, the first, {failed[0]['cell']}, since {first}{others}."]


def answered_by(results: StudyResults) -> str | None:
    """The label of the model whose heads the answer names."""
    groups = _as_trained(results.rows("answer"))
    return _best(groups)["label"] if groups else None


def _as_trained(groups: Sequence[Group]) -> Sequence[Group]:
    """Those to which nothing was done in training, beside which the others are told; all, if there are no such."""
    return [group for group in groups if not group["is_intervened"]] or groups


def _best(groups: Sequence[Group]) -> Group:
    return next((group for group in groups if group["n_with_induction_head"]), groups[0])


def _induction(best: Group, groups: Sequence[Group]) -> str:
    label, score, gain = best["label"], mean_of(best, SCORE), mean_of(best, "repeat_gain_nats", 2, " nats")
    n_with, n, head, before = (
        best[name] for name in ("n_with_induction_head", "n_models", "best_induction_head", "untrained_induction")
    )
    start = "" if before is None else f"; {before:.2f} before training"
    if not best["total_heads"]:
        return f"No model has attention heads, so none can have an induction head; {GAIN} is {gain}."
    if n_with is None:
        return f"Whether a head does induction was not measured: its score is missing; {GAIN} is {gain}."
    if not n_with:
        trained = "" if best["tokens"] is None else f", trained on {short_count(best['tokens'])} tokens"
        if best["learned"] is False:
            trained += (
                ", too few to predict better than bigrams do" if trained else ", which predicts worse than bigrams"
            )
        return (
            f"No model has an induction head. The nearest to one is in {label}{trained}: induction_random_period of its"
            f" best head is {score} ({_example(best)}{start}); {GAIN} is {gain}.{_little_to_induce(best)}"
        )
    if n == 1:
        of_seed = "" if best["imported_as"] else ", of one seed,"
        return (
            f"{label}{of_seed} has an induction head, {head}: on repeated random tokens, {score} of its "
            "attention, beyond what places alone earn, goes to what followed earlier copies of the current token "
            f"(induction_random_period{start}); {GAIN} is {gain}."
        )
    highest = extreme(_scores(groups), highest=True)
    place = ""
    if highest and highest.label == label and len(_scores(groups)) > 1 and highest.says_something:
        place = f", the highest of {len(_scores(groups))} kinds of model{highest.reservation}"
    return (
        f"{label} has an induction head in {n_with} of {n} seeds: induction_random_period of the best head is {score}"
        f"{place} ({_example(best)}{start}); {GAIN} is {gain}."
    )


def _little_to_induce(group: Group) -> str:
    """A sentence if the text of these models hardly repeats itself."""
    share = group["repeats_beyond_bigrams"]
    if share is None or share >= LITTLE_TO_INDUCE:
        return ""
    return f" {little_to_induce(share)}"


def _scores(groups: Sequence[Group]) -> dict[str, ValueBySeed]:
    """Induction scores of each kind of model that has any."""
    return {group["label"]: values for group in groups if (values := values_of(group, SCORE))}


def _example(group: Group) -> str:
    """The head that has the score and, where there are several seeds, in which of them."""
    seed = f"in seed {group['typical_seed']}, it is " if group["n_models"] > 1 else ""
    return f"{seed}{group['best_induction_head']}"


def _formation(best: Group) -> str:
    label, n, n_formed = best["label"], best["n_models"], best["n_formed"]
    if not n_formed and best["n_unresolved"]:
        of_seeds = f" in {best['n_unresolved']} of {n} seeds" if n > 1 else ""
        return (
            f"Whether prefix_matching of the best head of {label} rose abruptly or steadily can't be told{of_seeds}: "
            "checkpoints are too few, or errors too large. `checkpoints = 12` or more in [training] are enough to tell "
            "how an induction head forms."
        )
    if n_formed is None:
        return f"When heads of {label} formed is missing."
    if not n_formed:
        how = {"gradual": "rises gradually", "none": "doesn't rise"}.get(best["formation"], "rises abruptly in no seed")
        return f"There is no phase change in {label}: prefix_matching of its best head {how}."
    first, last = short_count(best["formed_from_tokens"]), short_count(best["formed_by_tokens"])
    where, its, of_seed = f"between the checkpoints at {first} and {last} tokens", "that", ""
    if n > 1:
        each = "in each " * (n_formed > 1)
        where = f"in {n_formed} of {n} seeds, {each}at some time between {first} and {last} tokens"
        its, of_seed = "its own", f"in seed {best['typical_seed']}, "
    share = best["in_context_learning_share"]
    rising, more = best["n_still_rising"], ""
    if rising:
        of_seeds = f"in {'all' if rising == n_formed else rising} of these seeds, " if n_formed > 1 else ""
        more = f"; {of_seeds}its rise had not ended when training did"
    if share is not None:
        more += f"; {of_seed}{100 * share:.0f}\u00a0% of what training gains in context falls into {its} window"
    return f"It formed abruptly, {where}: prefix_matching of its best head jumps{more}."


def _compared(best: Group, groups: Sequence[Group]) -> list[str]:
    """Beside the best kind of model of every other depth or, within one depth, beside the lowest score."""
    others = {group["n_layers"]: group for group in reversed(groups) if group["n_layers"] != best["n_layers"]}
    if others:
        kinds = sum(group["n_layers"] in others for group in groups)
        which = ", by that score the best kind of each" if kinds > len(others) else ""
        return [f"Other depths{which}: {'; '.join(_briefly(others[depth]) for depth in sorted(others, reverse=True))}."]
    lowest = extreme(_scores(groups)) if len(groups) > 1 else None
    if not lowest or not lowest.says_something:
        return []
    group = next(group for group in groups if group["label"] == lowest.label)
    return [f"The lowest induction score{lowest.reservation}: {_briefly(group)}."]


def _briefly(group: Group) -> str:
    gain = f"repeat_gain {mean_of(group, 'repeat_gain_nats', 2, ' nats')}"
    if not group["total_heads"]:
        return f"{group['label']} has no heads ({gain})"
    n_with, n = group["n_with_induction_head"], group["n_models"]
    found = f"has an induction head in {n_with} of {n} seeds" if n_with else "has no induction head"
    return f"{group['label']} {found} (best head {mean_of(group, SCORE)}, {gain})"


def _losses(groups: Sequence[Group]) -> str:
    """The lowest loss of each depth."""
    measured = [group for group in groups if group["validation_loss_nats_mean"] is not None]
    lowest = {g["n_layers"]: g for g in sorted(measured, key=lambda g: -g["validation_loss_nats_mean"])}
    by_depth = [f"{mean_of(lowest[n], 'validation_loss_nats')} ({lowest[n]['label']})" for n in sorted(lowest)]
    which = ", lowest of each depth" if len(measured) > len(lowest) > 1 else ""
    return f"Validation loss, nats per token{which}: {'; '.join(by_depth) or 'missing'}."


def _previous_token(best: Group) -> list[str]:
    """The best previous-token head, if there is one."""
    if not best["has_previous_token_head"]:
        return []
    score, label = mean_of(best, "best_previous_token_layer_0"), best["label"]
    name = f", {best['best_previous_token_head_layer_0']}," if best["n_models"] == 1 else ""
    return [
        f"The best previous-token head in layer 0 of {label}{name} gives the token before {score} of its attention."
    ]
