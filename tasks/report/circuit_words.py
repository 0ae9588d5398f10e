"""What a study found of circuits, in words with numbers."""

from collections.abc import Mapping
from typing import Any

from tasks.markdown import MISSING, short_count
from tasks.report.model_choice import best_label_of_each_depth
from tasks.results.study_results import StudyResults

ORDINALS = ("first", "second", "third")

Circuit = Mapping[str, Any]  # a row of reports/queries/induction_circuits.sql


def induction_paragraphs(results: StudyResults) -> list[str]:
    """For the best kinds of model with two layers or more, the circuit that does induction, or why there is none."""
    circuits = {circuit["label"]: circuit for circuit in results.rows("induction_circuits")}
    if not circuits:
        return ["No model has two layers, so none can have an induction circuit: keys need an earlier head to read."]
    described, n_more = best_label_of_each_depth(results, circuits)
    paragraphs = [_paragraph(circuits[label]) for label in described]
    return [*paragraphs, f"{n_more} more kinds of model are not described: see the SQL."] if n_more else paragraphs


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
        f"Of the {n_kept} strongest skip-trigrams of {label}, {n_right} are right and {n_bugs} are bugs, which "
        f"{with_bugs} of its {len(heads)} heads have; {n_copies} copy their source."
    )


def circuit_line(circuit: Circuit, seed: int | None) -> str | None:
    """The circuit in one line, of the model of that seed; None if the reader was not tried without the writer."""
    score, without = circuit["induction_random_period"], circuit["induction_random_period_without"]
    if without is None:
        return None
    where = "Keys" if seed is None else f"In seed {seed}, keys"
    by_chance = "" if circuit["k_significant"] else ", which may be chance"
    return (
        f"{where} of {circuit['reader']} read {_writer(circuit)} by K-composition (z = {_number(circuit['k_z'], 1)}"
        f"{by_chance}): without it there, induction_random_period is {without:.2f} instead of {score:.2f}."
    )


def _paragraph(circuit: Circuit) -> str:
    label, reader, score = circuit["label"], circuit["reader"], circuit["induction_random_period"]
    if reader is None:
        return f"Whether {label} has an induction circuit is missing: no head's induction_random_period was measured."
    if circuit["reader_role"] == "induction":
        start = (
            f"{reader} of {label} is an induction head: on repeated random tokens, {score:.2f} of its attention goes "
            "to what followed earlier copies of the current token (induction_random_period)."
        )
    else:
        start = f"{label} has no induction head: the nearest to one is {reader} (induction_random_period {score:.2f})."
    if circuit["writer"] is None:
        return f"{start} It is in layer 0, so its keys have no earlier head to read: there is no induction circuit."
    formed = circuit["formed_tokens"]
    sentences = [start, _reading(circuit), _without(circuit)]
    if circuit["reader_role"] == "induction" or circuit["depends"]:
        sentences.append(_eigenvalues(circuit))
    if circuit["reader_role"] != "induction" and circuit["is_complete"]:
        sentences.append("So all of an induction circuit is there, only weak.")
    if formed is not None:
        sentences.append(f"It reached half of its score at about {short_count(formed)} tokens.")
    return " ".join(sentences)


def _writer(circuit: Circuit) -> str:
    """The earlier head and what it is."""
    if circuit["previous_token"] is None:
        return f"{circuit['writer']}, whose previous_token is missing,"
    score = _number(circuit["previous_token"])
    if circuit["writer_role"] == "previous token":
        return f"{circuit['writer']}, a previous-token head ({score}),"
    return f"{circuit['writer']}, which gives the token before only {score} of its attention,"


def _reading(circuit: Circuit) -> str:
    """Whether the reader's keys read the writer."""
    writer, z, rank, share = _writer(circuit), circuit["k_z"], circuit["k_rank"], circuit["key_share"]
    if z is None:
        return f"Of the earlier heads its keys should read {writer} but K-composition is missing."
    place = ORDINALS[rank - 1] if rank <= len(ORDINALS) else f"number {rank}"
    numbers = f"score {circuit['k_score']:.3f}, z = {z:.1f}, {place} of {circuit['n_earlier']} earlier heads"
    from_there = "" if share is None else f"; {share:.2f} of the variance of its attention scores comes from there"
    if circuit["k_significant"]:
        return f"Its keys read {writer} by K-composition ({numbers}){from_there}."
    return f"Its keys read {writer} no more than by chance (K-composition: {numbers}){from_there}."


def _without(circuit: Circuit) -> str:
    """What becomes of the reader when its keys don't read the writer."""
    writer, without, effect = (
        circuit[name] for name in ("writer", "induction_random_period_without", "loss_effect_nats")
    )
    if without is None:
        return "Whether it needs that head is missing."
    loss = "what that does to the loss is missing"
    if effect is not None:
        loss = f"validation loss {'rises' if effect >= 0 else 'falls'} by {abs(effect):.3f} nats"
    if circuit["depends"]:
        return f"Without {writer} in its keys the score falls to {without:.2f}, and {loss}."
    return f"It can do without: with {writer} out of its keys the score is {without:.2f}, and {loss}."


def _eigenvalues(circuit: Circuit) -> str:
    """What the composed QK circuit looks for, and what the OV circuit does with it."""
    writer, matching, copying = (circuit[name] for name in ("writer", "matching_eigenvalues", "copying_eigenvalues"))
    looks = f"its QK circuit {'looks' if circuit['matches'] else 'does not clearly look'} for the query's own token"
    copies = f"its OV circuit {'copies what it finds' if circuit['copies'] else 'does not clearly copy'}"
    return (
        f"{_scored(f'Reading {writer} alone, {looks}', 'matching_eigenvalues', matching)}; "
        f"{_scored(copies, 'copying_eigenvalues', copying)}."
    )


def _scored(claim: str, name: str, score: float | None) -> str:
    return f"{name} is missing" if score is None else f"{claim} ({name} {score:.2f})"


def _number(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"
