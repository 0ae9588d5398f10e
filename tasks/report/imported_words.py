"""What a report's answer says of a model from elsewhere: how many heads have which role, and which of them matter."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from headstream.tasks.report.sentences import counted
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed

MAX_NAMED = 5  # heads in a sentence
DOES = {  # one of them, and several
    "induction": ("does induction", "do induction"),
    "anti-induction": ("does anti-induction", "do anti-induction"),
    "previous token": ("looks at the previous token", "look at the previous token"),
    "duplicate token": ("looks at earlier copies of its token", "look at earlier copies of their token"),
    "positional": ("looks at a fixed place", "look at a fixed place"),
}

_Heads = Sequence[Mapping[str, Any]]


def role_line(results: StudyResults, label: str) -> str | None:
    """How many heads of a model have each role; None if no head has a known role."""
    roles = [head["role"] for head in results.rows("head_scores") if head["label"] == label and head["role"]]
    if not roles:
        return None
    count = Counter(role for role in roles if role != "other")
    told = [f"{n} {_does(role, n)}" for role, n in count.most_common()]
    rest = len(roles) - count.total()
    told.append(f"{rest} {'has' if rest == 1 else 'have'} no role")
    return f"Of the {counted(len(roles), 'head')} of {label}, {listed(told)}."


def _does(role: str, n: int) -> str:
    one, several = DOES.get(role, (f"is {role}", f"are {role}"))
    return one if n == 1 else several


def importance_line(results: StudyResults, label: str) -> str | None:
    """Which heads of a model matter, as far as the text tells; None if none was ablated with an interval."""
    heads = [
        row
        for row in results.rows("ablations")
        if row["label"] == label and row["method"] == "mean" and row["ci_low_nats"] is not None
    ]
    if not heads:
        return None
    sure = sorted((row for row in heads if row["ci_low_nats"] > 0), key=lambda row: -row["loss_effect_nats"])
    if not sure or not _apart(sure[0], heads):
        clear = f"{len(sure)} of {len(heads)} surely cost anything, and the intervals of these overlap with others"
        return (
            f"Which heads of {label} matter most: too little text to rank them. With a head's mean in its place, "
            f"{clear if sure else f'none of {len(heads)} surely costs anything'}; more `windows` in"
            " [analysis.importance] tell more."
        )
    named = [f"{row['head_label']} ({row['loss_effect_nats']:.3f} nats)" for row in sure[:MAX_NAMED]]
    below = _apart(sure[0], heads)
    return (
        f"Without {listed(named)} {label} loses most, their means in their place; {len(sure)} of {len(heads)} heads"
        f" surely cost something, and {sure[0]['head_label']} more than {below} others by intervals that don't overlap."
    )


def _apart(head: Mapping[str, Any], heads: _Heads) -> int:
    """How many heads surely cost less: at least half must for a head to be called one of those that matter most."""
    n = sum(other["ci_high_nats"] < head["ci_low_nats"] for other in heads)
    return n if 2 * n >= len(heads) else 0
