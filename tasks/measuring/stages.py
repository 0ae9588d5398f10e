"""The analyses: stages that measure one trained model, each in a module of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import BaseModel

from headstream.tasks.measuring import (
    activation_circuits,
    behaviour,
    feed_forward,
    importance,
    probes,
    pruning,
    redundancy,
    weight_circuits,
)
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analysis_config import AnalysisConfig, Stage
from headstream.tasks.training.device import keep_freed_memory


class Analysis(NamedTuple):
    """A stage that measures a trained model, and which of its files record the clock."""

    measure: Callable[[Any, TrainedModel], None]
    incidental: tuple[str, ...] = ()


ANALYSES: dict[Stage, Analysis] = {
    "behaviour": Analysis(behaviour.measure_behaviour),
    "weight-circuits": Analysis(weight_circuits.measure_weight_circuits),
    "activation-circuits": Analysis(activation_circuits.measure_activation_circuits),
    "importance": Analysis(importance.measure_importance),
    "pruning": Analysis(pruning.measure_pruning, pruning.INCIDENTAL_FILES),
    "redundancy": Analysis(redundancy.measure_redundancy),
    "probes": Analysis(probes.measure_probes),
    "feed-forward": Analysis(feed_forward.measure_feed_forward),
}


def part_of(config: AnalysisConfig, stage: Stage) -> BaseModel:
    """The part of [analysis] that a stage reads."""
    return getattr(config, stage.replace("-", "_"))


def measure(
    stage: Stage,
    config: BaseModel,
    model_id: str,
    training_folder: Path,
    tokens_folder: Path,
    folder: Path,
    on_progress: Callable[[float], None],
    device: str = "cpu",
) -> dict[str, Any]:
    """Write the tables of one analysis of one model into `folder`, on one thread: models are measured side by side.

    Raises:
        UserError: the text is too short for one sequence.
        WorkError: the model can't be measured so.
    """
    torch.set_num_threads(1)
    keep_freed_memory()
    trained = TrainedModel(model_id, training_folder, tokens_folder, folder, on_progress, device)
    ANALYSES[stage].measure(config, trained)
    on_progress(1.0)
    return {"model_id": model_id}
