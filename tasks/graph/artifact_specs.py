"""The specs that decide the artifact of each stage, so that `plan` can ask for it without making anything."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from headstream.models.architecture import Architecture
from headstream.tasks.graph.step import Inputs
from headstream.tasks.places import ROOT
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.code_version import code_version
from headstream.tasks.study.analysis_config import AnalysisConfig
from headstream.tasks.study.cells import Cell
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.costs_config import CostsConfig
from headstream.tasks.study.stage import Stage, resolve
from headstream.tasks.study.stages import STAGES
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.corpus_files import corpus_fingerprint
from headstream.tasks.training.numerics import Numerics, resolve_numerics

if TYPE_CHECKING:
    from headstream.tasks.importing.imported_cell import ImportedCell, ModelCell
    from headstream.tasks.results.study_record import ModelOutcome

RESOURCES = (
    "tasks/report/sections/**/*.jinja",
    "tasks/report/sections/**/*.sql",
    "reports/glossary.toml",
    "reports/queries/*",
    "reports/claims/*",
    "data/views/*",
    "data/schema.sql",
    "tasks/report/explorer/page/*",
)


def corpus_spec(config: CorpusConfig) -> Spec:
    """Decided by the config, and by the names and bytes of every source file."""
    return _spec("corpus", {"corpus": config.model_dump(mode="json"), "files": corpus_fingerprint(config)})


def tokens_spec(config: TokenizerConfig, corpus: Artifact) -> Spec:
    """Decided by the config and the documents."""
    return _spec("tokens", config.model_dump(mode="json"), {"corpus": corpus})


def given_tokens_spec(cell: "ImportedCell", corpus: Artifact) -> Spec:
    """Decided by the model's tokenizer, its BOS and its vocabulary, and the documents."""
    tokenizer = hashlib.sha256(cell.tokenizer.json.encode()).hexdigest()
    return _spec("tokens", {"tokenizer": tokenizer, "bos": cell.bos, "vocabulary": cell.d_vocab}, {"corpus": corpus})


def import_spec(cell: "ImportedCell", tokens: Artifact) -> Spec:
    """Decided by the bytes of the model's files, wherever they lie, by the n_ctx it is measured on, and the tokens."""
    return _spec("import", cell.imported_as, {"tokens": tokens})


def training_spec(cell: Cell, tokens: Artifact, numerics: Numerics | None = None) -> Spec:
    """Decided by architecture, training, tokens, and by what the device changes in the numbers."""
    numerics = numerics or resolve_numerics(cell.architecture, cell.training, tokens.manifest.facts["vocabulary"])[0]
    return _spec("training", cell.trained_as, {"tokens": tokens}, asdict(numerics))


def analysis_spec(stage: Stage, config: AnalysisConfig, inputs: Inputs, part: str = "") -> Spec:
    """Decided by that stage's section of [analysis], by what it reads, and by the model's id, which is in rows.

    And by the device, if it isn't the CPU, which rounds differently.
    """
    model_id = inputs["model"].manifest.facts["model_id"]
    slice_ = {"analysis": stage.part_of(config).model_dump(mode="json"), "model_id": model_id, **_of(part)}
    numerics = {} if config.device == "cpu" else {"device": config.device}
    return _spec(stage.name, slice_, inputs, numerics)


def shared_input_spec(stage: Stage, config: BaseModel, part: str = "") -> Spec:
    """Decided by the stage's section of [analysis], or a part of it, and by the files that it names."""
    files = resolve(stage.fingerprint)(config) if stage.fingerprint else {}
    return _spec(stage.name, {"analysis": config.model_dump(mode="json"), "files": files, **_of(part)})


def _of(part: str) -> dict[str, str]:
    return {"part": part} if part else {}


def costs_spec(config: CostsConfig, study: str) -> Spec:
    """Decided by the config, what else architectures are by default, and the study, whose name is in the rows."""
    defaults = Architecture().as_kept()
    return _spec("costs", {"costs": config.model_dump(mode="json"), "defaults": defaults, "study": study})


def record_spec(
    config: Mapping[str, Any], outcomes: Sequence["ModelOutcome"], shared: Sequence[Artifact], latest: Artifact | None
) -> Spec:
    """Decided by the study's config and the artifacts that it names, so that a run which finds nothing new adds none.

    A record names the one it supersedes: going back to an earlier config makes a new record, not that of then.
    """
    inputs = {artifact.named: artifact for artifact in shared}
    for outcome in outcomes:
        inputs |= {f"{artifact.named}/{outcome.model_id}": artifact for artifact in outcome.artifacts}
    slice_ = {
        "study": dict(config),
        "failures": {outcome.cell: outcome.failure for outcome in outcomes if outcome.failure},
        "artifacts": {role: artifact.manifest.key for role, artifact in inputs.items()},
    }

    def superseding(record: str | None) -> Spec:
        return _spec("study", slice_ | {"supersedes": record}, inputs)

    if latest is None:
        return superseding(None)
    same = superseding(latest.manifest.config.get("supersedes"))
    return same if same.key == latest.manifest.key else superseding(latest.manifest.key)


def report_spec(record: Artifact, previous: Mapping[str, Any] | None = None) -> Spec:
    """Decided by the study's record, what its last run found, and everything that turns it into a report."""
    resources = hashlib.sha256()
    for path in sorted(path for pattern in RESOURCES for path in ROOT.glob(pattern)):
        resources.update(path.read_bytes())
    slice_ = {
        "record": record.manifest.key,
        "previous": previous,
        "resources": resources.hexdigest(),
        "claims": code_version("headstream.tasks.results.claims"),  # verdicts are the warehouse's
    }
    return _spec("report", slice_, {"study": record})


def cell_id(cell: "ModelCell", spec: Spec) -> str:
    """A cell's name whatever its label: readable first, then a hash of all that decides its weights but the code."""
    return f"{cell.architecture.name}-{cell.short_name}-{replace(spec, code_version='').key[:8]}"


def _spec(
    stage: str, config: Mapping[str, Any], inputs: Inputs | None = None, numerics: Mapping[str, Any] | None = None
) -> Spec:
    return Spec(stage, code_version(STAGES[stage].module), config, inputs or {}, numerics or {})
