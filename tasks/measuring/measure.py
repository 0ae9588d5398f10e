"""One analysis of one model: what a child process does for it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analysis_config import AnalysisConfig
from headstream.tasks.study.stage import resolve
from headstream.tasks.training.device import keep_freed_memory


def measure(
    stage: str,
    config: AnalysisConfig,
    model_id: str,
    inputs: Mapping[str, Path],
    folder: Path,
    on_progress: Callable[[float], None],
    threads: int = 1,
) -> dict[str, Any]:
    """Write the tables of one analysis of one model into `folder`; models are measured side by side.

    `inputs` are the folders of what the stage reads, by role. Each operation runs on one thread, and a stage that works
    on batches may have several side by side.

    Raises:
        UserError: the text is too short for one sequence.
        WorkError: the model can't be measured so.
    """
    torch.set_num_threads(1)
    keep_freed_memory()
    others = {role: given for role, given in inputs.items() if role not in ("model", "tokens")}
    trained = TrainedModel(
        model_id, inputs["model"], inputs["tokens"], folder, on_progress, config.device, others, threads
    )
    resolve(ANALYSES[stage].work)(ANALYSES[stage].part_of(config), trained)
    on_progress(1.0)
    return {"model_id": model_id}
