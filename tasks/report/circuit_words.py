"""What a study found of circuits, in words with numbers."""

from collections.abc import Mapping
from typing import Any

from headstream.tasks.report.model_choice import best_label_of_each_depth, measured_groups
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed
from headstream.tasks.words.markdown import MISSING, short_count

ORDINALS = ("first", "second", "third")
_SIDES = {"K": "keys", "Q": "queries"}
_SCORES = {"K": "previous_token", "Q": "duplicate_token"}  # that make an earlier head a writer

Circuit = Mapping[str, Any]  # a row of reports/queries/induction_circuits.sql


def induction_paragraphs(results: StudyResults) -> list[tuple[str | None, str]]:
    """For the best kinds of model with two layers or more, the circuit that does induction, or why there is none.

    With each paragraph comes the label of the model that it is about. Where no model's behaviour was measured there are
    no paragraphs.
    """
    if not measured_groups(results):
        return []
    circuits = {circuit["label"]: circuit for circuit in results.rows("induction_circuits")}
    if not circuits:
        none = "No model has two layers, so none can have an induction circuit: keys need an earlier head to read."
        return [(None, none)]
    described, n_more = best_label_of_each_depth(results, circuits)
    paragraphs: list[tuple[str | None, str]] = [(label, _paragraph(circuits[label])) for label in described]
    more = f"{n_more} more kinds of model are not described: see the SQL."
    return [*paragraphs, (None, more)] if n_more else paragraphs


def skip_trigram_sentence(results: StudyResults) -> str:
    """How many skip-trigrams are right, bugs or copies, in the model whose strongest are listed."""
    listed = results.rows("skip_trigrams")
    if not listed:
        has_heads = any(row["total_heads"] for row in results.rows("answer"))
        return "Skip-trigrams are missing." if has_heads else "No model has heads, so there are no skip-trigrams."
    label = listed[0]["model"]
    heads = [head for head in results.rows("skip_trigram_counts") if head["label"] == label]
    n_kept, n_right, n_bugs, n_copies = (
        sum(head[name] for head in heads) for name in ("n_kept", "n_right", "n_bugs", "n_copies")
    )
    with_bugs = sum(head["n_bugs"] > 0 for head in heads)
    return (
        f"Of {n_kept} skip-trigrams of {label}, the strongest of each head, {n_right} are right and {n_bugs} are bugs,"
        f" which {with_bugs} of its {len(heads)} heads have; {n_copies} copy their source."
    )


def circuit_line(circuit: Circuit, seed: int | None) -> str | None:
    """The circuit in one line, of the model of that seed; None if no induction head depends on its writers."""
    if not circuit["is_circuit"]:
        return None
    what, them = _SIDES[circuit["kind"]], "it" if circuit["n_writers"] == 1 else "them"
    where = what.capitalize() if seed is None else f"In seed {seed}, {what}"
    return (
        f"{where} of {circuit['reader']} read {_writers(circuit)} by {circuit['kind']}-composition: without {them} "
        f"there, prefix_matching is {circuit['prefix_matching_without']:.2f} instead of "
        f"{circuit['prefix_matching']:.2f}."
    )


def looks_hardest(circuit: Circuit, offset: int | None) -> str:
    """Of a previous-token head, how far back it most often looks hardest, where that isn't one token."""
    return "" if circuit["kind"] == "Q" or offset in (None, 1) else f", though it looks hardest {offset} tokens back"


def _paragraph(circuit: Circuit) -> str:
    if circuit["reader"] is None:
        return (
            f"Whether {circuit['label']} has an induction circuit is missing: no head's induction_random_period was"
            " measured."
        )
    return " ".join([_role(circuit), *_circuit(circuit), *_otherwise(circuit), *_other_seeds(circuit)])


def _role(circuit: Circuit) -> str:
    """What the reader is, by its attention and what it does to the logit of what follows."""
    label, reader, score, logit = (
        circuit[name] for name in ("label", "reader", "induction_random_period", "induction_copying_logit")
    )
    seed = f"seed {circuit['seed']} of " if circuit["n_models"] > 1 else ""
    of = f"{seed}{label}"
    if circuit["reader_role"] not in ("induction", "anti-induction"):
        return (
            f"{seed.capitalize()}{label} has no induction head: the nearest to one is {reader} "
            f"(induction_random_period {score:z.2f}, induction_copying_logit {_number(logit)})."
        )
    raises = "raises" if circuit["reader_role"] == "induction" else "lowers"
    return (
        f"{reader} of {of} is an {circuit['reader_role']} head: on repeated random tokens, {score:.2f} of its "
        "attention, beyond what places alone earn, goes to what followed earlier copies of the current token "
        "(induction_random_period), "
        f"whose logit it itself {raises} by {abs(logit):.2f} (induction_copying_logit)."
    )


def _circuit(circuit: Circuit) -> list[str]:
    """Which heads the reader reads, what it is without them, and what it does with what it finds."""
    if not circuit["n_earlier"]:
        return ["It is in layer 0, so it has no earlier head to read: there is no induction circuit."]
    if circuit["n_writers"] is None:
        return ["Whether its keys or queries read earlier heads was not measured."]
    if not circuit["n_writers"]:
        return [
            f"Of {circuit['n_earlier']} earlier heads, its keys read none that attends to the token before, and by its "
            "queries it depends on none that attends to earlier copies of the current token: no induction circuit was "
            "found."
        ]
    sentences = [_reading(circuit), _without(circuit)]
    if circuit["kind"] == "K" and (circuit["reader_role"] == "induction" or circuit["depends"]):
        sentences.append(_eigenvalues(circuit))
    if circuit["reader_role"] not in ("induction", "anti-induction") and circuit["is_complete"]:
        sentences.append("So all of an induction circuit is there, only weak.")
    if circuit["formed_tokens"] is not None:
        sentences.append(f"It reached half of its score by {short_count(circuit['formed_tokens'])} tokens.")
    return sentences


def _otherwise(circuit: Circuit) -> list[str]:
    """How a model predicts repeats in which no head was found to do so by a circuit."""
    if not circuit["predicts_repeats"] or circuit["is_circuit"] or circuit["is_complete"]:
        return []
    gain = f"repeat_gain {circuit['repeat_gain_nats']:.2f} nats"
    if circuit["virtual_head"] is None:
        return [f"It predicts repeats all the same ({gain}): no circuit that was looked for explains how."]
    score, logit = circuit["virtual_induction_random_period"], circuit["virtual_copying_logit"]
    return [
        f"It predicts repeats ({gain}) by a virtual head, {circuit['virtual_head']} in a row: {score:.2f} of its "
        f"attention, beyond what places alone earn, goes to what followed earlier copies, whose logit it raises by "
        f"{logit:.2f}."
    ]


def _other_seeds(circuit: Circuit) -> list[str]:
    if circuit["n_models"] == 1 or (circuit["n_earlier"] and circuit["n_writers"] is None):
        return []
    return [f"An induction circuit was found in {circuit['n_found']} of {circuit['n_models']} seeds."]


def _writers(circuit: Circuit) -> str:
    """The writers with what they attend to: `L0H0 (previous_token 0.64, z = 36.1) and L0H2 (0.50, z = 20.0)`."""
    name = f"{_SCORES[circuit['kind']]} "
    columns = ("writers", "writer_attention", "writer_offsets", "writer_z")
    told = []
    for writer, attention, offset, z in zip(*(circuit[column] for column in columns), strict=True):
        told.append(f"{writer} ({name}{_number(attention)}{looks_hardest(circuit, offset)}, z = {_number(z, 1)})")
        name = ""
    return listed(told)


def _others(circuit: Circuit) -> str:
    """Heads that compose so and aren't writers: what they attend to, and what the reader is without them."""
    columns = ("also_compose", "also_compose_attention", "also_compose_without")
    told = []
    for head, attention, without in zip(*(circuit[column] for column in columns), strict=True):
        alone = "" if without is None else f"; without it alone, prefix_matching is {without:.2f}"
        told.append(f"{head} ({_SCORES[circuit['kind']]} {_number(attention)}{alone})")
    return listed(told)


def _reading(circuit: Circuit) -> str:
    """Which heads the reader's keys or queries read, more than by chance."""
    start = f"Its {_SIDES[circuit['kind']]} read {_writers(circuit)} by {circuit['kind']}-composition"
    rank, share = circuit["z_rank"], circuit["score_share"]
    if rank is not None:
        place = f"{ORDINALS[rank - 1]}" if rank <= len(ORDINALS) else f"number {rank}"
        start += f"; by z, {circuit['writers'][0]} is {place} of {circuit['n_earlier']} earlier heads"
    if circuit["also_compose"]:
        compose = "composes" if len(circuit["also_compose"]) == 1 else "compose"
        start += f"; not counted among them, {_others(circuit)} also {compose} so"
    return (
        f"{start}."
        if share is None
        else f"{start}; {share:.2f} of the variance of its attention scores comes from there."
    )


def _without(circuit: Circuit) -> str:
    """What becomes of the reader when its keys or queries read none of the writers."""
    before, without, each, effect, kind = (
        circuit[name]
        for name in (
            "prefix_matching", "prefix_matching_without", "prefix_matching_without_each", "loss_effect_nats", "kind"
        )
    )  # fmt: skip
    n = circuit["n_writers"]
    one = n == 1
    if without is None or before is None:
        return f"Whether it needs {'that head' if one else 'those heads'} is missing."
    loss = "what that does to the loss is missing"
    if effect is not None:
        loss = f"validation loss {'rises' if effect >= 0 else 'falls'} by {abs(effect):.3f} nats"
    removed = circuit["writers"][0] if one else "both" if n == 2 else f"all {n}"
    known = {writer: alone for writer, alone in zip(circuit["writers"], each, strict=True) if alone is not None}
    alone = ""
    if known and not one:
        needed = min(known, key=known.__getitem__)
        most = "the larger effect of the two" if n == 2 else "the largest effect of a single one"
        alone = f" ({known[needed]:.2f} without {needed} alone, {most})"
    numbers = (
        f"Without {removed} in its {_SIDES[kind]}, prefix_matching is {without:.2f} instead of {before:.2f}{alone}"
    )
    return f"{numbers}, and {loss}." if circuit["depends"] else f"{numbers}, more than half: it can do without; {loss}."


def _eigenvalues(circuit: Circuit) -> str:
    """What the composed QK circuit looks for, and what the OV circuit does with it."""
    writer, matching, copying = (
        circuit["writers"][0], circuit["matching_eigenvalues"], circuit["copying_eigenvalues"]
    )  # fmt: skip
    looks = f"its QK circuit {'looks' if circuit['matches'] else 'does not clearly look'} for the query's own token"
    copies = f"its OV circuit {'copies what it finds' if circuit['copies'] else 'does not clearly copy'}"
    return (
        f"{_scored(f'Reading {writer} alone, {looks}', 'matching_eigenvalues', matching)}; "
        f"{_scored(copies, 'copying_eigenvalues', copying)}{_carried(circuit)}."
    )


def _carried(circuit: Circuit) -> str:
    """Which heads wrote what the reader copies, where it depends on that."""
    if not circuit["is_carried"]:
        return ""
    carriers, together = circuit["carriers"], circuit["carried_copying_eigenvalues"]
    score = "" if together is None else f"; of {carriers[0]} and it in a row, copying_eigenvalues is {together:.2f}"
    return (
        f", but it moves what {listed(carriers)} wrote there: without that in its values, it adds "
        f"{circuit['copying_logit_without_carriers']:z.2f} to the logit of what follows instead of "
        f"{circuit['induction_copying_logit']:.2f}{score}"
    )


def _scored(claim: str, name: str, score: float | None) -> str:
    return f"{name} is missing" if score is None else f"{claim} ({name} {score:.2f})"


def _number(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:z.{digits}f}"
