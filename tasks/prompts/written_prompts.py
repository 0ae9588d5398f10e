"""The prompt sets of a study as they were written, as text."""

import json
from pathlib import Path

from headstream.tasks.prompts.prompt_pair import PromptPair

PROMPTS = "prompts.json"


def read_written(folder: Path) -> dict[str, list[PromptPair]]:
    """The sets that `write_prompts` wrote, by name."""
    sets = json.loads((folder / PROMPTS).read_text(encoding="utf-8"))
    return {
        name: [PromptPair(pair[0], pair[1], tuple(pair[2]), tuple(pair[3]), *pair[4:]) for pair in pairs]
        for name, pairs in sets.items()
    }
