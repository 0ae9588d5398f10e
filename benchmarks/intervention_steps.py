"""What a training step costs with an intervention, beside one without: python -m benchmarks.intervention_steps.

All take turns in one process, compiled as trainings are; the ratio is of medians.
"""

import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.training import MODEL, TRAINING
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.study.training_interventions import InterventionConfig
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.token_writing import write_tokens
from headstream.tasks.training.device import prepare_process
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.numerics import Numerics, fastest_precision

INTERVENTIONS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "silence": {"kind": "silence", "heads": ["L0H1"]},
    "clamp to previous": {"kind": "clamp", "heads": ["L0H1"], "pattern": "previous"},
    "clamp to copies": {"kind": "clamp", "heads": ["L1H1"], "pattern": "copies"},
    "cut a layer": {"kind": "cut", "edges": ["L0 -> L1.K"]},
    "freeze": {"kind": "freeze", "heads": ["L0H1"]},
    "unlearn": {"kind": "unlearn", "which": "token"},
    "not yet begun": {"kind": "silence", "heads": ["L0H1"], "from": 4_000_000},
}
WARM_STEPS, ROUNDS = 5, 60


def main() -> None:
    """Print milliseconds a step, and the ratio to a step without interventions; at most 1.3 is aimed at."""
    prepare_process(1)
    with TemporaryDirectory() as folder:
        text, tokens = Path(folder, "text"), Path(folder, "tokens")
        for path in (text, tokens):
            path.mkdir()
        write_corpus(CorpusConfig(), text)
        write_tokens(TokenizerConfig(vocabulary=512), text, tokens)
        runs = {name: _run(given, tokens) for name, given in INTERVENTIONS.items()}
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(WARM_STEPS):
            for run in runs.values():
                run.take_step()
        for _ in range(ROUNDS):
            for name, run in runs.items():
                started = time.perf_counter()
                run.take_step()
                seconds[name].append(time.perf_counter() - started)
    without = statistics.median(seconds["none"])
    for name, own in seconds.items():
        median = statistics.median(own)
        print(f"{name:<18} {1000 * median:7.1f} ms a step, {median / without:.2f} of one without")


def _run(given: dict[str, Any] | None, tokens: Path) -> TrainingRun:
    interventions = (InterventionConfig.model_validate(given),) if given else ()
    config = TRAINING.model_copy(update={"interventions": interventions})
    numerics = Numerics("cpu", fastest_precision("cpu"), 1, compiled=True)
    return TrainingRun(MODEL, config, numerics, Tokens.open(tokens), tokens)


if __name__ == "__main__":
    main()
