"""The prompt sets that models are measured on, each an artifact for all models."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from headstream.tasks.study.field_types import ListOf, Seed
from headstream.tasks.study.names import MODEL_NAME, PATH
from headstream.tasks.study.stage import Stage

ShippedSet = Literal["repeats", "ioi", "greater-than", "agreement", "pronouns", "capitals", "closing", "parameters"]


class PromptSetConfig(BaseModel, frozen=True, extra="forbid", strict=True):
    """A prompt set, a [[prompts]] section of a study: one that ships, or a file of one's own."""

    set: ShippedSet | None = Field(None, description="Name of a set that ships; `headstream prompts` lists them.")
    name: str | None = Field(
        None, description="Name of a set of one's own, in tables and in the report.", pattern=MODEL_NAME
    )
    path: str | None = Field(
        None,
        max_length=4096,
        pattern=PATH,
        description="File of pairs, .csv, .tsv, .jsonl or .parquet, with columns prompt, corrupt, answer, wrong, and"
        " template if there are any.",
    )

    @property
    def label(self) -> str:
        """Its name in tables and in the report."""
        return self.name or self.set or ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.set is None) == (self.path is None):
            raise ValueError("one of set and path must be given. Name a set that ships, or a file and its name.")
        if self.path and not self.name:
            raise ValueError("a file of prompts needs a name. Add name.")
        if self.set and self.name not in (None, self.set):
            raise ValueError(f"a set that ships keeps its name, got {self.name!r}. Leave out name.")
        return self


class PromptsConfig(BaseModel, frozen=True, extra="forbid", strict=True):
    """The [[prompts]] of a study, and the seed of the pairs that are drawn."""

    sets: ListOf[PromptSetConfig] = Field((), max_length=50, description="Prompt sets: a study's [[prompts]].")
    seed: Seed = Field(0, description="Seed of the words in pairs that are drawn from templates.")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [own.label for own in self.sets]
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
