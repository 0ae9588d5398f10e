"""What a study is: the schema of a study file, and the grid of models that it spans."""

import difflib
import itertools
import math
import re
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from models.architecture import Architecture
from tasks.analysis_config import AnalysisConfig
from tasks.cell import Cell
from tasks.corpus import CorpusConfig
from tasks.costs_config import CostsConfig
from tasks.errors import RequestError
from tasks.resources_config import ResourcesConfig, Runner
from tasks.study_source import read_study_file, require_allowed
from tasks.tokens import TokenizerConfig
from tasks.training_config import TrainingConfig

_CLOSED = ConfigDict(frozen=True, extra="forbid")


def _section(name: str, config: type[BaseModel]) -> type[BaseModel]:
    """The fields of a config, each optional: what a study leaves out takes the config's default, cell by cell."""
    fields: dict[str, Any] = {
        key: (field.annotation | None, Field(None, description=field.description))  # type: ignore[operator]
        for key, field in config.model_fields.items()
    }
    return create_model(name, __config__=_CLOSED, **fields)


def _given(section: BaseModel) -> dict[str, Any]:
    return section.model_dump(exclude_none=True)


ModelSection = _section("ModelSection", Architecture)
TrainingSection = _section("TrainingSection", TrainingConfig)
AXES = {**Architecture.model_fields, **TrainingConfig.model_fields}


VariantName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")]


class Study(BaseModel):
    """A corpus, a grid of models to train on it, and how to analyse them."""

    model_config = _CLOSED

    name: str = Field(description="Names the study's report and its rows.", pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    question: str = Field("", max_length=500, description="What the study asks; opens its report.")
    corpus: CorpusConfig = Field(CorpusConfig(), description="The text.")
    tokenizer: TokenizerConfig = Field(TokenizerConfig(), description="How text becomes tokens.")
    grid: dict[str, list[Any]] = Field({}, description="Axes: any field of [model] or [training], with its values.")
    variants: dict[VariantName, dict[str, Any]] = Field(
        {}, description="Named sets of fields of [model] or [training]; the whole grid is run with each."
    )
    model: ModelSection = Field(ModelSection(), description="Architecture that every cell shares.")
    training: TrainingSection = Field(TrainingSection(), description="Training that every cell shares.")
    analysis: AnalysisConfig = Field(AnalysisConfig(), description="How much to measure.")
    costs: CostsConfig = Field(CostsConfig(), description="At which sizes time and work are measured, if at all.")
    runner: Runner = Field("threads", description="Where models are made: threads of one machine, or a Ray cluster.")
    resources: ResourcesConfig = Field(ResourcesConfig(), description="What a model takes of a machine.")
    max_models: int = Field(200, ge=1, description="A larger grid is refused.")

    @field_validator("grid")
    @classmethod
    def _check_axes(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for axis, values in grid.items():
            _require_field("an axis", axis)
            if not values:
                raise ValueError(f"axis {axis!r} must have at least one value, got none. List its values, or drop it.")
            if len({repr(v) for v in values}) < len(values):
                raise ValueError(f"axis {axis!r} must list each value once, got {values}. Drop the repeated one.")
        return grid

    @field_validator("variants")
    @classmethod
    def _check_variants(cls, variants: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, fields in variants.items():
            for field in fields:
                _require_field(f"variant {name!r}", field)
        return variants

    @model_validator(mode="after")
    def _check_grid(self) -> Self:
        size = max(1, len(self.variants)) * math.prod(len(values) for values in self.grid.values())
        if size > self.max_models:
            raise ValueError(
                f"the grid must have at most max_models={self.max_models} cells, got {size}."
                " Shorten an axis, or raise max_models."
            )
        fixed = {*_given(self.model), *_given(self.training)}
        if both := sorted(fixed & set(self.grid)):
            raise ValueError(
                f"{both[0]} must be either an axis or fixed, got it in [grid] and in [model] or [training]."
            )
        for name, fields in self.variants.items():
            if both := sorted(set(fields) & set(self.grid)):
                raise ValueError(f"{both[0]} must be either an axis or of a variant, got it in [grid] and in {name!r}.")
        _ = self.cells
        return self

    def placed(self, runner: Runner | None, jobs: int | None) -> "Study":
        """The same study, made elsewhere or with so many models at once; None keeps what it says."""
        resources = self.resources.model_copy(update={"jobs": jobs or self.resources.jobs})
        return self.model_copy(update={"runner": runner or self.runner, "resources": resources})

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every model of the grid, in the order of its axes, variant by variant."""
        places = [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]
        if not self.variants:
            return tuple(self._cell(place, place) for place in places)
        return tuple(
            self._cell({"variant": name, **fields, **place}, {**fields, **place})
            for name, fields in self.variants.items()
            for place in places
        )

    def _cell(self, place: dict[str, Any], fields: dict[str, Any]) -> Cell:
        label = " ".join(f"{axis}={value}" for axis, value in place.items()) or "model"

        def complete(config: type[BaseModel], section: BaseModel) -> Any:
            given = _given(section) | {k: v for k, v in fields.items() if k in config.model_fields}
            try:
                return config.model_validate(given)
            except ValidationError as error:
                first = error.errors()[0]
                where = f"{first['loc'][0]}: " if first["loc"] else ""
                raise ValueError(f"cell {label}: {where}{_message(first)}") from None

        return Cell(label, complete(Architecture, self.model), complete(TrainingConfig, self.training))


ShippedStudy = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="The name of a study that ships.")
]


def complete_study(study: str | Study, *, from_api: bool) -> Study:
    """A study by its name, or as it is; one that came through Prefect's API may only read allowed files.

    Raises:
        RequestError: no study of that name ships, or a path lies outside of the allowed folders.
    """
    if isinstance(study, str):
        return parse_study(*read_study_file(study, shipped_only=True))
    if from_api:
        require_allowed(study.corpus.paths)
    return study


def parse_study(source: str, content: dict[str, Any]) -> Study:
    """Validate the content of a study file.

    Raises:
        RequestError: names the file, the field, what must hold and what came.
    """
    try:
        return Study.model_validate(content)
    except ValidationError as error:
        errors = error.errors()
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise RequestError(f"{source}: {_describe(errors[0])}{more}") from None


def _describe(error: Any) -> str:
    *sections, field = [str(part) for part in error["loc"] if part != "function-after"] or [""]
    place = f"[{'.'.join(sections)}] " if sections else ""
    if error["type"] == "extra_forbidden":
        return f"{place}{'has ' if place else ''}no field {field!r}.{_nearest(field, _fields_at(sections))}"
    if error["type"] == "missing":
        return f"{place}{field} must be given, got nothing. Add it."
    name = f"{place}{field}: " if field else ""
    return f"{name}{_message(error)}"


def _fields_at(sections: list[str]) -> dict[str, Any]:
    config: Any = Study
    for section in sections:
        config = config.model_fields[section].annotation
    return config.model_fields


def _message(error: Any) -> str:
    if error["type"] == "value_error":
        return re.sub(r"^Value error, ", "", error["msg"])
    wanted = re.sub(r"^Input should", "must", error["msg"])
    wanted = re.sub(r"^(String|List|Value) should", r"must", wanted)
    return f"{wanted}, got {error['input']!r}."


def _require_field(what: str, field: str) -> None:
    if field not in AXES:
        raise ValueError(f"{what} must name fields of [model] or [training], got {field!r}.{_nearest(field, AXES)}")


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."
