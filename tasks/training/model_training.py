"""The training stage: trains one model into a folder of checkpoints and tables."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from filelock import FileLock

from headstream.models.architecture import Architecture
from headstream.models.parameters import count_parameters
from headstream.tasks.results.model_columns import model_row
from headstream.tasks.results.tables import write_table
from headstream.tasks.storage.sealing import RESUME
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.token_reading import Tokens, require_context
from headstream.tasks.training.checkpoints import weights_sha256
from headstream.tasks.training.device import prepare_process
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.numerics import Numerics, training_flops
from headstream.tasks.training.trained_columns import model_columns
from headstream.tasks.training.training_progress import Progress


def train_model(
    architecture: Architecture,
    config: TrainingConfig,
    numerics: Numerics,
    tokens_folder: Path,
    folder: Path,
    *,
    cell_id: str,
    corpus_id: str,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, object]:
    """Train one model into `folder`: checkpoints/, models.parquet and training.parquet. Returns facts about it.

    An interrupted earlier call in the folder is resumed, and ends with the same weights (on a CPU). The model's id is
    made from its cell's and its weights, so that other code that trains the same weights changes nothing.

    Raises:
        UserError: the corpus is too short for one sequence.
        WorkError: the loss became NaN or diverged; says at which step, and what to try.
    """
    prepare_process(numerics.threads)
    tokens = Tokens.open(tokens_folder)
    require_context(tokens, architecture.n_ctx)
    (folder / RESUME).mkdir(exist_ok=True)
    with FileLock(folder / RESUME / "lock"):  # a killed parent's child may take a moment to end
        run = TrainingRun(architecture, config, numerics, tokens, folder)
        run.train(on_progress)
    seconds = run.log[-1]["seconds"]
    digest = hashlib.sha256(f"{cell_id} {weights_sha256(folder)}".encode()).hexdigest()
    model_id = f"{architecture.name}-s{config.seed}-{digest[:8]}"
    facts: dict[str, object] = {
        "model_id": model_id,
        "corpus_id": corpus_id,
        "name": architecture.name,
        "vocabulary": tokens.vocabulary,
        "parameters": count_parameters(run.model),
        "steps": run.n_steps,
        "seconds": seconds,
        "tokens_per_second": run.tokens_per_second(),
        "flops": training_flops(architecture, tokens.vocabulary, run.n_steps * run.tokens_per_step),
        "final_train_loss_nats": float(np.mean([row["loss_nats"] for row in run.log[-10:]])),
        "heads_left": [int(left.sum()) for left in run.pruning.left.split(architecture.heads_per_layer)],
    }
    write_table(folder, "training", [{"model_id": model_id, **row} for row in run.log])
    if config.interventions:
        write_table(folder, "interventions", [{"model_id": model_id, **row} for row in _intervention_rows(config)])
    known = {**model_columns(architecture, config), **asdict(numerics), "compile": numerics.compiled, **facts}
    write_table(folder, "models", [model_row(known)])
    return facts


def _intervention_rows(config: TrainingConfig) -> Iterator[dict[str, object]]:
    for place, own in enumerate(config.interventions, 1):
        given = own.model_dump()
        given |= {"place": place, "from_tokens": given.pop("from"), "until_tokens": given.pop("until")}
        yield {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
