"""The [analysis] section of a study: the amount that is measured on every model, one part per stage."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model, model_validator

from headstream.tasks.study.analyses import ANALYSES, DECLARED
from headstream.tasks.study.field_types import ListOf


class _Common(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis] section of a study: each part is read by the stage of its name alone."""

    device: Literal["cpu", "cuda"] = Field(
        "cpu",
        description="Device that models are measured on; cuda for large ones, sharing GPUs as [resources] gpus says.",
    )
    budget: Literal["usual", "large"] = Field(
        "usual",
        description="Amount of text for what the sections below leave open: large is what two cores measure of a model"
        " of about 100 M parameters within an hour; the usual one is for models a thousand times smaller.",
    )
    stages: ListOf[Literal[tuple(ANALYSES)]] = Field(
        tuple(ANALYSES),
        min_length=1,
        max_length=len(ANALYSES),
        description="Stages of the analysis to run; what the others measure is missing from the report.",
    )

    @model_validator(mode="before")
    @classmethod
    def _take_budget(cls, given: Any) -> Any:
        """Give every section the values of the budget, where it has none of its own."""
        if not isinstance(given, Mapping) or given.get("budget") != "large":
            return given
        filled = dict(given)
        for stage in DECLARED.values():
            own = given.get(stage.section, {})
            if stage.large_fields and isinstance(own, Mapping):
                filled[stage.section] = {**stage.large_fields, **own}
        return filled


_parts: dict[str, Any] = {
    stage.section: (stage.config, Field(stage.config(), description=stage.description))
    for stage in DECLARED.values()
    if stage.config
}
AnalysisConfig = create_model("AnalysisConfig", __base__=_Common, __doc__=_Common.__doc__, **_parts)
