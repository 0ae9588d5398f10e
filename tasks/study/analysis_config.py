"""The [analysis] section of a study: how much is measured on every model, one part a stage."""

from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from headstream.tasks.study.analyses import ANALYSES, DECLARED


class _Common(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis] section of a study: each part is what the stage of its name reads, and no other."""

    device: Literal["cpu", "cuda"] = Field(
        "cpu", description="Where models are measured; cuda, for large ones: GPUs are shared as [resources] gpus says."
    )
    stages: tuple[Literal[tuple(ANALYSES)], ...] = Field(
        tuple(ANALYSES),
        min_length=1,
        max_length=len(ANALYSES),
        description="Stages of the analysis that run; what the others measure is missing from the report.",
    )


_parts: dict[str, Any] = {
    stage.section: (stage.config, Field(stage.config(), description=stage.description))
    for stage in DECLARED.values()
    if stage.config
}
AnalysisConfig = create_model("AnalysisConfig", __base__=_Common, __doc__=_Common.__doc__, **_parts)
