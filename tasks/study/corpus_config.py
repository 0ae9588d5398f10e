"""The [corpus] section of a study: which text is read, and how it is cut, repaired and split."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class CorpusConfig(BaseModel):
    """Which text a study reads, and how it is cut, repaired and split."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    source: Literal["python-stdlib"] | None = Field(
        "python-stdlib",
        description="built-in corpus: the running interpreter's standard library; none when paths is given",
    )
    paths: tuple[Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]+$")], ...] = Field(
        (),
        description="files, directories and globs, read by suffix: .jsonl, .ndjson, .parquet, .conllu, else as text; "
        "all but Parquet also .gz, .zst, .bz2, .xz. Of a directory only known suffixes are read, and nothing hidden",
    )
    text_field: str = Field(
        "text", max_length=200, description="JSON-lines field or Parquet column that holds the text"
    )
    on_bad_text: Literal["refuse", "replace", "skip"] = Field(
        "refuse",
        description="invalid UTF-8 and NUL bytes: refuse the corpus, replace them by U+FFFD, or skip their part or "
        "record; skip leaves out broken records, too",
    )
    validation_fraction: float = Field(
        0.1, gt=0, lt=1, description="share of documents held out, chosen by hash of their text (0 to 1)"
    )
    document_bytes: int = Field(
        1_048_576,
        ge=256,
        le=1 << 30,
        description="longest document; a longer one is cut at a line end into parts (bytes)",
    )
    max_expansion: float = Field(
        200, ge=1, le=1e6, description="most a file may grow by decompression (times its size)"
    )
    max_bytes: int = Field(64 << 30, ge=1, le=1 << 50, description="most a corpus may hold once decompressed (bytes)")

    @model_validator(mode="before")
    @classmethod
    def _paths_replace_the_built_in_source(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("paths") and "source" not in given:
            return {**given, "source": None}
        return given

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.source is None) != bool(self.paths):
            raise ValueError(
                f"exactly one of source and paths must be given, got source={self.source!r}, paths={list(self.paths)}. "
                "Remove one of them."
            )
        return self
