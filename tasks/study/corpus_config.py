"""The [corpus] section of a study: which text is read, and how it is cut, repaired and split."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, Field, field_validator, model_validator

from headstream.tasks.study.mistakes import short
from headstream.tasks.study.names import PATH

BuiltIn = Literal["python-stdlib", "sotu"]


class CorpusConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Which text a study reads, and how it is cut, repaired and split."""

    source: BuiltIn | tuple[BuiltIn, ...] | None = Field(
        "python-stdlib",
        description="Built-in corpus, or several: the source code of this Python's standard library, the yearly"
        " addresses of US presidents (package sotu, which the extra [english] brings); none where paths are given.",
    )
    paths: tuple[Annotated[str, Field(max_length=4096, pattern=PATH)], ...] = Field(
        (),
        description="Files, folders and globs to read: .jsonl, .ndjson and .json (a record a line, or an array of"
        " records), .csv and .tsv (the first row names the columns), .parquet, .conllu, anything else as text. All but"
        " Parquet may be compressed (.gz, .zst, .bz2, .xz). Of a folder, files of text and records are read, .json,"
        " .csv and .tsv where they have text_field, and no hidden files. HTML, PDF and what else is no text in UTF-8 is"
        " known by its content and refused.",
    )
    text_field: str = Field(
        "text", max_length=200, description="Field of a JSON record, or column of a table, that holds the text."
    )
    on_bad_text: Literal["refuse", "replace", "skip"] = Field(
        "refuse",
        description="What to do about invalid UTF-8 and NUL bytes: refuse the corpus, replace them with U+FFFD,"
        " or skip the part or record that holds them; skip also leaves out broken records and files that aren't text.",
    )
    validation_fraction: float = Field(
        0.1, gt=0, lt=1, description="Share of documents held out for validation, chosen by a hash of their text."
    )
    document_bytes: int = Field(
        1_048_576, ge=256, le=1 << 30, description="Longest document, in bytes; longer ones are cut at ends of lines."
    )
    max_expansion: float = Field(
        200,
        ge=1,
        le=1e6,
        description="How many times its compressed size a file may grow to when it is decompressed (of .zst with a"
        " window of up to 2 GiB of memory).",
    )
    max_bytes: int = Field(
        64 << 30,
        ge=1,
        le=1 << 50,
        description="Maximum number of bytes that a corpus may hold once it is decompressed.",
    )

    @field_validator("source", mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        names = given if isinstance(given, list | tuple) else [given]
        if given is not None and not all(name in get_args(BuiltIn) for name in names):
            raise ValueError(
                f"must be {' or '.join(map(repr, get_args(BuiltIn)))}, or a list of them, got {short(given)}. For text"
                " of your own, give paths instead."
            )
        return given

    @model_validator(mode="before")
    @classmethod
    def _paths_replace_the_built_in_source(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("paths") and "source" not in given:
            return {**given, "source": None}
        return given

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if bool(self.source) == bool(self.paths):
            raise ValueError(
                f"exactly one of source and paths must be given, got source={self.source!r}, paths={list(self.paths)}. "
                "Remove one of them."
            )
        return self
