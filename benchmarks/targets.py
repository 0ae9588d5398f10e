"""What `make bench` is held to: targets, how it was before they were set (2026-11-28), and what a run finds."""

from collections.abc import Mapping
from typing import NamedTuple


class Target(NamedTuple):
    """One line of the table."""

    what: str
    before: str
    wanted: str
    measured_by: str  # a module


TARGETS = {
    "cold": Target("run quick, nothing cached, over plain training of as many tokens", "1.8", "1.1", "study"),
    "warm": Target("the same, compiled code cached", "1.4", "0.9", "study"),
    "loaded": Target("the same beside a busy process, over plain training beside it", "not measured", "0.9", "study"),
    "rerun": Target("run quick with nothing to do", "11 to 15 s", "5 s", "study"),
    "analyses": Target("analyses of quick, processor seconds of all stages", "140 s", "60 s", "study"),
    "report": Target("report of quick", "10 s", "4 s", "study"),
    "deep": Target("analyses of 6 x 8, d_model 256, vocabulary 4,096, two at once", "over 18 min", "4 min", "analyses"),
    "pruning": Target("pruning of 12 x 12, d_model 768, vocabulary 512", "hours", "20 min", "analyses"),
    "shipped": Target("quick, heads and architecture", "over 67 min", "45 min", "shipped_studies"),
    "ablation": Target("zero-ablating every head of 4 x 8, TransformerLens over ours", "3.5", "at least 5", "peers"),
    "prompts": Target("effects of all nodes of 2 x 8 and SmolLM2, a run each over ours", "-", "at least 3", "prompts"),
    "index": Target("index of 5,000 models, built anew", "75 s", "15 s", "many_artifacts"),
    "views": Target("views over 10 M rows, over plain tables, the slowest", "not measured", "1.5", "many_rows"),
}


def table(found: Mapping[str, str]) -> str:
    """The table, with what was found."""
    rows = [
        f"| {target.what} | {target.before} | {target.wanted} | {found.get(name, f'`{target.measured_by}`')} |"
        for name, target in TARGETS.items()
    ]
    return "\n".join(["| what | before | target, at most | now |", "| --- | ---: | ---: | ---: |", *rows])
