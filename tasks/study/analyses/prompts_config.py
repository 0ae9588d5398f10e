"""The prompt sets that models are measured on, each an artifact for all models."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from headstream.tasks.study.field_types import ListOf, Seed
from headstream.tasks.study.names import MODEL_NAME, PATH
from headstream.tasks.study.stage import Stage

ShippedSet = Literal["repeats", "ioi", "greater-than", "agreement", "pronouns", "capitals", "closing", "parameters"]


class PromptSetConfig(BaseModel, frozen=True, extra="forbid", strict=True):
    """A prompt set, a [[prompts]] section of a study: one that ships, or a file of one's own."""

    set: ShippedSet | None = Field(None, description="Name of a set that ships; `headstream prompts` lists them.")
    name: str = Field("", description="Name of a set of one's own, in tables and in the report.", pattern=MODEL_NAME)
    path: str | None = Field(
        None,
        max_length=4096,
        pattern=PATH,
        description="File of pairs, .csv, .tsv, .jsonl or .parquet, with columns prompt, corrupt, answer, wrong, and"
        " template if there are any.",
    )

    @model_validator(mode="before")
    @classmethod
    def _take_name_of_set(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and isinstance(given.get("set"), str) and given.get("name") is None:
            return {**given, "name": given["set"]}
        return given

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.set is None) == (self.path is None):
            raise ValueError("one of set and path must be given. Name a set that ships, or a file and its name.")
        if self.path and not self.name:
            raise ValueError("a file of prompts needs a name. Add name.")
        if self.set and self.name != self.set:
            raise ValueError(f"a set that ships keeps its name, got {self.name!r}. Leave out name.")
        return self


class PromptsConfig(BaseModel, frozen=True, extra="forbid", strict=True):
    """The [[prompts]] of a study, and the seed of the pairs that are drawn."""

    sets: ListOf[PromptSetConfig] = Field((), max_length=50, description="Prompt sets: a study's [[prompts]].")
    seed: Seed = Field(0, description="Seed of the words in pairs that are drawn from templates.")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [own.name for own in self.sets]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two of [[prompts]] have the name {name!r}. Rename one.")
        return self


STAGE = Stage(
    "prompts",
    work="headstream.tasks.prompts.prompt_writing:write_prompts",
    config=PromptsConfig,
    description="Prompt sets.",
    fingerprint="headstream.tasks.prompts.prompt_writing:prompts_fingerprint",
    split_by="sets",
    title="read the prompts {subject}",
)
