"""The schema of a study file, and the grid of models that it spans."""

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from headstream.models.architecture import Architecture
from headstream.models.nodes import Head
from headstream.tasks.errors import UserError
from headstream.tasks.study.analysis_config import AnalysisConfig
from headstream.tasks.study.cells import Cell
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.costs_config import CostsConfig
from headstream.tasks.study.effective_settings import effective
from headstream.tasks.study.field_types import ListOf
from headstream.tasks.study.imported_model_config import ImportedModelConfig
from headstream.tasks.study.mistakes import described, first_mistake, message, nearest, word
from headstream.tasks.study.names import STUDY_NAME, VARIANT_NAME
from headstream.tasks.study.resources_config import ResourcesConfig, Runner
from headstream.tasks.study.sources import MAX_BYTES, StudyFile, shipped, shipped_studies, unknown_study
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.study.training_interventions import STAGES_OF_ROLES, in_words, require_possible
from headstream.tasks.study.until_decided import FIRST_LOOK, UntilDecided

MAX_GRID_MODELS, MAX_IMPORTED = 10_000, 100
MAX_MODEL_PARAMETERS = 10**9  # of a model


def _section(name: str, config: type[BaseModel]) -> type[BaseModel]:
    """The fields of a config, all optional: a field that a study leaves out gets the config's default in each cell."""
    fields: dict[str, Any] = {
        key: (_as_lax(field) | None, Field(None, description=field.description))
        for key, field in config.model_fields.items()
    }
    return create_model(name, __config__=ConfigDict(frozen=True, extra="forbid", strict=True), **fields)


def _as_lax(field: FieldInfo) -> Any:
    """The type of a field, which is as strict as the field is."""
    laxity = [own for own in field.metadata if isinstance(own, Strict)]
    return Annotated[field.annotation, *laxity] if laxity else field.annotation


def _given(section: BaseModel) -> dict[str, Any]:
    return section.model_dump(exclude_none=True)


ModelSection = _section("ModelSection", Architecture)
TrainingSection = _section("TrainingSection", TrainingConfig)
AXES = {**Architecture.model_fields, **TrainingConfig.model_fields}

VariantName = Annotated[str, Field(pattern=VARIANT_NAME)]


class Study(BaseModel, frozen=True, extra="forbid", strict=True):
    """A corpus, a grid of models to train on it, and how to analyse them."""

    name: str = Field(description="Name under which the study's report and its rows are found.", pattern=STUDY_NAME)
    question: str = Field("", max_length=500, description="The study's question, a sentence that opens its report.")
    corpus: CorpusConfig = Field(CorpusConfig(), description="The text that models are trained and measured on.")
    tokenizer: TokenizerConfig = Field(TokenizerConfig(), description="Training of the tokenizer.")
    grid: dict[str, list[Any]] = Field(
        {}, description="Axes, any field of [model] or [training] with its values; each combination is trained."
    )
    until_decided: UntilDecided | None = Field(
        None, description='Seeds until claims are decided: `seed = { until = "decided", at_most = 17 }` in [grid].'
    )
    variants: dict[VariantName, dict[str, Any]] = Field(
        {}, description="Named sets of fields of [model] or [training]; the whole grid is trained with each."
    )
    model: ModelSection = Field(ModelSection(), description="Architecture that all models of the grid share.")
    training: TrainingSection = Field(TrainingSection(), description="Training of all models of the grid.")
    models: ListOf[ImportedModelConfig] = Field(
        (), max_length=MAX_IMPORTED, description="Models that were trained elsewhere, beside or instead of a grid."
    )
    analysis: AnalysisConfig = Field(
        AnalysisConfig(), description="Measurements on every model, and the amount of text for them."
    )
    costs: CostsConfig = Field(
        CostsConfig(), description="Sizes at which the time and work of passes are measured, if any."
    )
    runner: Runner = Field(
        "threads", description="Place where models are made: threads on this machine, or a Ray cluster."
    )
    resources: ResourcesConfig = Field(ResourcesConfig(), description="Each model's share of a machine.")
    max_models: int = Field(
        200, ge=1, le=MAX_GRID_MODELS, description="Maximum number of models in the grid; a larger grid is refused."
    )
    _text: str | None = PrivateAttr(None)

    @model_validator(mode="before")
    @classmethod
    def _take_seeds_out(cls, given: Any) -> Any:
        """Of `seed = { until = "decided" }` in [grid], the field that it stands for."""
        grid = given.get("grid") if isinstance(given, Mapping) else None
        if isinstance(grid, Mapping) and isinstance(grid.get("seed"), Mapping):
            rest = {axis: values for axis, values in grid.items() if axis != "seed"}
            return {**given, "grid": rest, "until_decided": grid["seed"]}
        return given

    @model_validator(mode="before")
    @classmethod
    def _take_prompts_in(cls, given: Any) -> Any:
        """Of [[prompts]], the field that they stand for: prompt sets are what stages of [analysis] read."""
        if not isinstance(given, Mapping) or "prompts" not in given:
            return given
        rest = {name: value for name, value in given.items() if name != "prompts"}
        analysis = rest.get("analysis") or {}
        return {**rest, "analysis": {**analysis, "prompts": {**analysis.get("prompts", {}), "sets": given["prompts"]}}}

    @field_validator("grid")
    @classmethod
    def _check_axes(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for axis, values in grid.items():
            _require_field("an axis", axis)
            if not values:
                raise ValueError(f"axis {axis!r} has no values. List some, or remove it.")
        return grid

    @field_validator("variants")
    @classmethod
    def _check_variants(cls, variants: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, fields in variants.items():
            for field in fields:
                _require_field(f"variant {name!r}", field)
        return variants

    @field_validator("models")
    @classmethod
    def _check_names(cls, models: tuple[ImportedModelConfig, ...]) -> tuple[ImportedModelConfig, ...]:
        names = [model.name for model in models]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two of [[models]] have the name {name!r}. Rename one.")
        return models

    @model_validator(mode="after")
    def _check_grid(self) -> Self:
        fixed = {*_given(self.model), *_given(self.training)}
        if self.until_decided and "seed" in {*self.grid, *fixed, *chain.from_iterable(self.variants.values())}:
            raise ValueError("seed is given twice: until claims are decided, and as values. Remove one of them.")
        for axis in sorted(fixed & set(self.grid)):
            raise ValueError(f"{axis} is both in [grid] and in [model] or [training]. Remove one of them.")
        for name, fields in self.variants.items():
            for axis in sorted(set(fields) & set(self.grid)):
                if not isinstance(fields[axis], list) or not fields[axis]:
                    raise ValueError(
                        f"{axis} of {name!r} must be a list, since it is an axis of [grid], whose values a variant may"
                        f" replace; got {word(fields[axis])}. List values, or remove it from one of them."
                    )
        size = 0
        for fields in (self.variants or {"": {}}).values():
            size += math.prod(len(fields.get(axis, values)) for axis, values in self.grid.items())
        size *= self.until_decided.at_most if self.until_decided else 1
        if size > self.max_models:
            raise ValueError(
                f"the grid must have at most max_models={self.max_models} cells, got {size}."
                " Shorten an axis, or raise max_models."
            )
        self._check_cells()
        return self

    def _check_cells(self) -> None:
        known: dict[tuple[Architecture, TrainingConfig], str] = {}
        for place, architecture, training in self._written_cells:
            label, model = _label(place), (architecture, training)
            if model in known:
                raise ValueError(f"cells {known[model]} and {label} are the same model. Remove one.")
            known[model] = label
        for cell in self.cells:
            self._check_base(cell)
            parameters = cell.parameters(self.tokenizer.vocabulary)
            if parameters > MAX_MODEL_PARAMETERS:
                raise ValueError(
                    f"a model must have at most {MAX_MODEL_PARAMETERS:,} parameters, got {parameters:,} in cell"
                    f" {cell.label}. Lower d_model, n_layers, d_mlp or vocabulary."
                )

    def _check_base(self, cell: Cell) -> None:
        """Raises ValueError when nothing tells the head that an intervention names by its role."""
        for role in cell.roles:
            if self.until_decided:
                raise ValueError(
                    f"heads = {role!r} needs a list of seeds, for which the base is made first. List them."
                )
            if self.base_of(cell) is None:
                raise ValueError(
                    f"heads = {role!r} of cell {cell.label} needs the same model without interventions in the grid. Add"
                    " a variant without any, or [] to the axis."
                )
            lacking = [stage for stage in STAGES_OF_ROLES[role] if stage not in self.analysis.stages]
            if lacking:
                raise ValueError(f"heads = {role!r} needs the stage {lacking[0]!r} in [analysis] stages. Add it.")

    def base_of(self, cell: Cell) -> Cell | None:
        """The cell of the same model without interventions; None if the study has none."""
        without = cell.training.model_copy(update={"interventions": ()})
        same = (own for own in self.cells if (own.architecture, own.training) == (cell.architecture, without))
        return next(same, None)

    def with_resources(self, runner: Runner | None, jobs: int | None) -> "Study":
        """The same study with another runner or another number of models at once; None keeps its own."""
        resources = self.resources.model_copy(update={"jobs": jobs or self.resources.jobs})
        return self.model_copy(update={"runner": runner or self.runner, "resources": resources})

    def with_seeds(self, seeds: Mapping[str, int]) -> "Study":
        """The same study with so many seeds of each kind of model, as `kinds` names them; of others, as it has."""
        if self.until_decided is None:
            return self
        counted = self.until_decided.model_copy(update={"so_far": {**self.until_decided.so_far, **seeds}})
        copy = self.model_copy(update={"until_decided": counted})
        for name in ("cells", "_written_cells"):
            copy.__dict__.pop(name, None)
        return copy

    @property
    def kinds(self) -> list[str]:
        """The kinds of model whose seeds grow: each by its place in the grid, without a seed."""
        return list(dict.fromkeys(_kind(place) for place, *_ in self._written_cells)) if self.until_decided else []

    @property
    def written(self) -> str:
        """The study as its author wrote it: the text of its file, or else the fields that were given, as JSON."""
        return self._text or json.dumps(self.model_dump(mode="json", exclude_unset=True), indent=2, ensure_ascii=False)

    @property
    def recorded(self) -> dict[str, Any]:
        """Everything that decides the study's results: all fields but those of where it runs."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"runner", "resources"})

    @property
    def asked_for(self) -> dict[str, Any]:
        """What `recorded` has, however many seeds there are, or may be, until claims are decided."""
        return {**self.recorded, "until_decided": bool(self.until_decided)}

    def is_recorded_as(self, recorded: Mapping[str, Any]) -> bool:
        """True if a record is of this study, even if an earlier release wrote it with fewer fields."""
        try:
            return Study.model_validate(recorded).asked_for == self.asked_for
        except ValidationError:
            return False

    @property
    def trains(self) -> bool:
        """True if it trains models: a study of [[models]] does only with a grid, variants, [model] or [training]."""
        return bool(not self.models or self.grid or self.variants or _given(self.model) or _given(self.training))

    @property
    def n_models(self) -> int:
        """Number of its models, trained or from elsewhere."""
        return len(self.cells) + len(self.models)

    @property
    def measures_costs(self) -> bool:
        """True if [costs] names sizes at which passes are timed."""
        return bool(self.costs.n_ctx or self.costs.d_model or self.costs.n_heads)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every model of the grid, in the order of its axes, variant by variant.

        Places that give the same model are one cell, labelled without the axes on which they differ.
        """
        models: dict[tuple[Architecture, TrainingConfig], list[dict[str, str]]] = {}
        for place, architecture, training in self._written_cells:
            models.setdefault(effective(architecture, training), []).append(place)
        cells = []
        for (architecture, training), (first, *others) in models.items():
            shared = {
                axis: value
                for axis, value in first.items()
                if axis == "variant" or all(other.get(axis) == value for other in others)
            }
            labels = tuple(map(_label, (first, *others)))
            cells.append(Cell(_label(shared), architecture, training, labels))
        return tuple(cells)

    @cached_property
    def _written_cells(self) -> list[tuple[dict[str, str], Architecture, TrainingConfig]]:
        """Every place of the grid, axis by axis, and its settings as written."""
        written: list[tuple[dict[str, str], Architecture, TrainingConfig]] = []
        if not self.trains:
            return written
        for name, fields in (self.variants or {"": {}}).items():
            axes = self.grid | {axis: values for axis, values in fields.items() if axis in self.grid}
            if self.until_decided:
                axes = axes | {"seed": range(max([FIRST_LOOK, *self.until_decided.so_far.values()]))}
            fixed = {field: value for field, value in fields.items() if field not in self.grid}
            for values in itertools.product(*axes.values()):
                place = fixed | dict(zip(axes, values, strict=True))
                written += _of_each_head(*self._written_cell({"variant": name} if name else {}, place))
        return [own for own in written if self._has_seed(own[0])]

    def _has_seed(self, place: Mapping[str, str]) -> bool:
        return not self.until_decided or int(place["seed"]) < self.until_decided.seeds_of(_kind(place))

    def _written_cell(
        self, variant: dict[str, str], fields: dict[str, Any]
    ) -> tuple[dict[str, str], Architecture, TrainingConfig]:
        def complete(config: type[BaseModel], section: BaseModel) -> Any:
            own = {field: value for field, value in fields.items() if field in config.model_fields}
            try:
                return config.model_validate(_given(section) | own)
            except ValidationError as error:
                first = first_mistake(error)
                where = f"{first['loc'][0]}: " if first["loc"] else ""
                told = {axis: word(value) for axis, value in fields.items() if axis != "interventions"}
                said = described(error, config) if len(first["loc"]) > 1 else f"{where}{message(first)}"
                raise ValueError(f"cell {_label(variant | told)}: {said}") from None

        architecture, training = complete(Architecture, self.model), complete(TrainingConfig, self.training)
        validated = {**architecture.model_dump(mode="json"), **training.model_dump(mode="json")}
        place = variant | {axis: str(validated[axis]) for axis in fields}
        if training.interventions:
            try:
                require_possible(training.interventions, architecture, training.tokens)
            except ValueError as error:
                raise ValueError(f"interventions: {error}") from None
        if "interventions" in fields:
            place["interventions"] = f"[{in_words(training.interventions)}]"
        return place, architecture, training


def _of_each_head(
    place: dict[str, str], architecture: Architecture, training: TrainingConfig
) -> Iterator[tuple[dict[str, str], Architecture, TrainingConfig]]:
    """A place of the grid, or as many as a layer has heads, if something is to be done to each of its heads."""
    for own in training.interventions:
        if own.each_of_layer is None:
            continue
        for head in range(architecture.heads_per_layer[own.each_of_layer]):
            named = own.with_heads(Head(own.each_of_layer, head))
            done = tuple(named if other is own else other for other in training.interventions)
            of_head = training.model_copy(update={"interventions": done})
            yield from _of_each_head(place | {"interventions": f"[{in_words(done)}]"}, architecture, of_head)
        return
    yield place, architecture, training


def _kind(place: Mapping[str, str]) -> str:
    return _label({axis: value for axis, value in place.items() if axis != "seed"})


def _label(place: Mapping[str, str]) -> str:
    """The place of a cell on the axes: `n_layers=2 seed=0`."""
    return " ".join(f"{axis}={value}" for axis, value in place.items()) or "model"


ShippedStudy = Annotated[
    str,
    Field(
        title="a study that ships",
        description="Name of a study that ships.",
        json_schema_extra={"enum": [*shipped_studies()]},
    ),
]
NamedStudy = Annotated[
    str, Field(title="your own study", description="Name of a study of your own that has run here.", pattern=STUDY_NAME)
]


def complete_study(study: str | Mapping[str, Any] | Study) -> Study:
    """The study of a name, or of the content of a study file.

    Raises:
        UserError: no study of that name ships, or it isn't valid.
    """
    if isinstance(study, str):
        file = shipped(study)
        if file:
            return read_study(file)
        raise unknown_study("shipped study", study, shipped_studies())
    if not isinstance(study, Study):
        size = len(json.dumps(study, default=str))
        if size > MAX_BYTES:
            raise UserError(f"a study must take at most {MAX_BYTES:,} bytes as JSON, got {size:,}. Shorten its lists.")
        study = parse_study("the study", study)
    return study


def read_study(file: StudyFile) -> Study:
    """Read and validate the study in a file.

    Raises:
        UserError: names the file, the field, what must hold and what was given.
    """
    study = parse_study(file.label, file.content())
    study._text = file.text
    return study


def parse_study(source: str, content: Mapping[str, Any]) -> Study:
    """Validate the content of a study file.

    Raises:
        UserError: names the file, the field, what must hold and what was given.
    """
    try:
        return Study.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{source}: {described(error, Study)}") from None


def _require_field(what: str, field: str) -> None:
    if field not in AXES:
        raise ValueError(f"{what} must name fields of [model] or [training], got {field!r}.{nearest(field, AXES)}")
