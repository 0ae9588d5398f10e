"""What decides the artifact of each step, so that `plan` can ask for it without making anything."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel

from tasks.measuring import (
    activation_circuits,
    behaviour,
    feed_forward,
    importance,
    probes,
    pruning,
    redundancy,
    weight_circuits,
)
from tasks.storage.artifact import Artifact, Request
from tasks.storage.code_version import code_version
from tasks.study.analysis_config import AnalysisConfig, Stage
from tasks.study.cells import Cell
from tasks.study.costs_config import CostsConfig
from tasks.text.corpus import CorpusConfig, corpus_fingerprint
from tasks.text.tokens import TokenizerConfig
from tasks.training.device import Numerics, resolve_numerics


@dataclass(frozen=True)
class Analysis:
    """A stage that measures a trained model, the part of [analysis] that it reads, and its files that time things."""

    measure: Callable[..., dict[str, Any]]
    part: str
    timed: tuple[str, ...] = ()


ANALYSES: dict[Stage, Analysis] = {
    "behaviour": Analysis(behaviour.measure_behaviour, "behaviour"),
    "weight-circuits": Analysis(weight_circuits.measure_weight_circuits, "circuits"),
    "activation-circuits": Analysis(activation_circuits.measure_activation_circuits, "circuits"),
    "importance": Analysis(importance.measure_importance, "importance"),
    "pruning": Analysis(pruning.measure_pruning, "pruning", timed=pruning.TIMED_FILES),
    "redundancy": Analysis(redundancy.measure_redundancy, "redundancy"),
    "probes": Analysis(probes.measure_probes, "probes"),
    "feed-forward": Analysis(feed_forward.measure_feed_forward, "feed_forward"),
}


def corpus_request(config: CorpusConfig) -> Request:
    """Decided by the config and by the bytes of every source file."""
    slice_ = {"corpus": config.model_dump(mode="json"), "files": corpus_fingerprint(config)}
    return Request("corpus", code_version("tasks.text.corpus"), slice_, {}, {})


def tokens_request(config: TokenizerConfig, text: Artifact) -> Request:
    """Decided by the config and the text."""
    return Request("tokens", code_version("tasks.text.tokens"), config.model_dump(mode="json"), {"corpus": text}, {})


def training_request(cell: Cell, encoded: Artifact, numerics: Numerics | None = None) -> Request:
    """Decided by architecture, training, tokens, and by what the device changes in the numbers."""
    numerics = numerics or numerics_of(cell, encoded)[0]
    slice_ = {
        "architecture": cell.architecture.model_dump(mode="json"),
        "training": cell.training.model_dump(mode="json", exclude={"device", "precision", "compile", "threads"}),
    }
    return Request(
        "training", code_version("tasks.training.model_training"), slice_, {"tokens": encoded}, asdict(numerics)
    )


def analysis_request(stage: Stage, config: AnalysisConfig, model: Artifact, encoded: Artifact) -> Request:
    """Decided by that stage's part of the config, the checkpoints and the tokens."""
    inputs = {"training": model, "tokens": encoded}
    module = ANALYSES[stage].measure.__module__
    return Request(stage, code_version(module), part_of(config, stage).model_dump(mode="json"), inputs, {})


def part_of(config: AnalysisConfig, stage: Stage) -> BaseModel:
    """The part of [analysis] that a stage reads."""
    return getattr(config, ANALYSES[stage].part)


def costs_request(config: CostsConfig, study: str) -> Request:
    """Decided by the config, and by the study, whose name is in the rows."""
    slice_ = {"costs": config.model_dump(mode="json"), "study": study}
    return Request("costs", code_version("tasks.measuring.costs"), slice_, {}, {})


def model_id(cell: Cell, request: Request) -> str:
    """What tables call a model: readable first, unique at the end."""
    return f"{cell.architecture.name}-s{cell.training.seed}-{request.key[:8]}"


def numerics_of(cell: Cell, encoded: Artifact) -> tuple[Numerics, str]:
    """What the device changes in the numbers of a cell's training, and in words why it is that device."""
    return resolve_numerics(cell.architecture, cell.training, encoded.manifest.facts["vocabulary"])
