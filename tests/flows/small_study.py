"""A study of two tiny models, for flows to run."""

from little_analysis import CONFIG
from tiny import tiny_text

from headstream.tasks.study.schema import Study, parse_study

ANALYSIS = CONFIG.model_dump(mode="json", exclude_unset=True)
BEHAVIOUR = ANALYSIS | {"stages": ["behaviour"]}


def small_study(**changes: object) -> Study:
    """Every stage on little text, but for what is changed."""
    content = {
        "name": "tiny",
        "question": "Does it run?",
        "corpus": {"paths": [str(tiny_text())], "validation_fraction": 0.2},
        "tokenizer": {"vocabulary": 270},
        "grid": {"n_layers": [0, 1]},
        "model": {"d_model": 16, "n_heads": 2, "n_ctx": 16},
        "training": {"tokens": 4000, "batch_size": 8, "warmup_steps": 5, "checkpoints": 3},
        "analysis": ANALYSIS,
    }
    return parse_study("tiny.toml", content | changes)
