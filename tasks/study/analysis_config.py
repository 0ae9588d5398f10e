"""The [analysis] section of a study: the amount that is measured on every model, one part per stage."""

from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from headstream.tasks.study.analyses import ANALYSES, DECLARED
from headstream.tasks.study.field_types import ListOf


class _Common(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis] section of a study: each part is read by the stage of its name alone."""

    device: Literal["cpu", "cuda"] = Field(
        "cpu",
        description="Device that models are measured on; cuda for large ones, sharing GPUs as [resources] gpus says.",
    )
    stages: ListOf[Literal[tuple(ANALYSES)]] = Field(
        tuple(ANALYSES),
        min_length=1,
        max_length=len(ANALYSES),
        description="Stages of the analysis to run; what the others measure is missing from the report.",
    )


_parts: dict[str, Any] = {
    stage.section: (stage.config, Field(stage.config(), description=stage.description))
    for stage in DECLARED.values()
    if stage.config
}
AnalysisConfig = create_model("AnalysisConfig", __base__=_Common, __doc__=_Common.__doc__, **_parts)
