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
from tasks.storage.artifact import Artifact, Spec
from tasks.storage.code_version import code_version
from tasks.study.analysis_config import AnalysisConfig, Stage
from tasks.study.cells import Cell
from tasks.study.corpus_config import CorpusConfig
from tasks.study.costs_config import CostsConfig
from tasks.study.tokenizer_config import TokenizerConfig
from tasks.text.corpus import corpus_fingerprint
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


def corpus_spec(config: CorpusConfig) -> Spec:
    """Decided by the config and by the bytes of every source file."""
    slice_ = {"corpus": config.model_dump(mode="json"), "files": corpus_fingerprint(config)}
    return Spec("corpus", code_version("tasks.text.corpus"), slice_, {}, {})


def tokens_spec(config: TokenizerConfig, text: Artifact) -> Spec:
    """Decided by the config and the text."""
    return Spec("tokens", code_version("tasks.text.tokens"), config.model_dump(mode="json"), {"corpus": text}, {})


def training_spec(cell: Cell, encoded: Artifact, numerics: Numerics | None = None) -> Spec:
    """Decided by architecture, training, tokens, and by what the device changes in the numbers."""
    numerics = numerics or numerics_of(cell, encoded)[0]
    slice_ = {
        "architecture": cell.architecture.model_dump(mode="json"),
        "training": cell.training.model_dump(mode="json", exclude={"device", "precision", "compile", "threads"}),
    }
    return Spec(
        "training", code_version("tasks.training.model_training"), slice_, {"tokens": encoded}, asdict(numerics)
    )


def analysis_spec(stage: Stage, config: AnalysisConfig, model: Artifact, encoded: Artifact) -> Spec:
    """Decided by that stage's part of the config, the checkpoints and the tokens."""
    inputs = {"training": model, "tokens": encoded}
    module = ANALYSES[stage].measure.__module__
    return Spec(stage, code_version(module), part_of(config, stage).model_dump(mode="json"), inputs, {})


def part_of(config: AnalysisConfig, stage: Stage) -> BaseModel:
    """The part of [analysis] that a stage reads."""
    return getattr(config, ANALYSES[stage].part)


def costs_spec(config: CostsConfig, study: str) -> Spec:
    """Decided by the config, and by the study, whose name is in the rows."""
    slice_ = {"costs": config.model_dump(mode="json"), "study": study}
    return Spec("costs", code_version("tasks.measuring.costs"), slice_, {}, {})


def model_id(cell: Cell, spec: Spec) -> str:
    """What tables call a model: readable first, unique at the end."""
    return f"{cell.architecture.name}-s{cell.training.seed}-{spec.key[:8]}"


def numerics_of(cell: Cell, encoded: Artifact) -> tuple[Numerics, str]:
    """What the device changes in the numbers of a cell's training, and in words why it is that device."""
    return resolve_numerics(cell.architecture, cell.training, encoded.manifest.facts["vocabulary"])
