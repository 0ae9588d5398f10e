"""The [[models]] sections of a study: models that were trained elsewhere."""

from typing import Annotated

from pydantic import BaseModel, Field

from headstream.models.architecture_config import MAX_CONTEXT
from headstream.tasks.study.field_types import ListOf
from headstream.tasks.study.names import MODEL_NAME, PACKAGE_NAME, PATH

PathText = Annotated[str, Field(max_length=4096, pattern=PATH)]
DEFAULT_N_CTX = 256


class ImportedModelConfig(BaseModel, frozen=True, extra="forbid", strict=True):
    """A model from elsewhere, at one or several of its checkpoints."""

    name: str = Field(description="Name of the model in tables and in the report.", pattern=MODEL_NAME)
    path: PathText | Annotated[ListOf[PathText], Field(min_length=1)] = Field(
        description="File or folder that holds the model, in any format that `headstream inspect` reads; for several"
        " checkpoints of one training their list, a pattern (*), or the folder that holds them under names with steps,"
        " such as step1000, or in Hugging Face's cache. With package: the file's name within it."
    )
    package: str | None = Field(
        None, max_length=200, pattern=PACKAGE_NAME, description="Installed Python package that holds the file."
    )
    steps: ListOf[Annotated[int, Field(ge=0, lt=1 << 31)]] = Field(
        (),
        description="Training steps of the checkpoints, ascending; default: from their files or names, else 1, 2, 3.",
    )
    tokens: ListOf[Annotated[int, Field(ge=0, lt=1 << 62)]] = Field(
        (), description="Tokens that each checkpoint was trained on; default: from their files or names, else unknown."
    )
    tokenizer: PathText | None = Field(
        None, description="The model's tokenizer.json, or the folder that holds it; default: beside the weights."
    )
    bos: str | None = Field(
        None,
        max_length=200,
        description="Token that opened every sequence in training, or '' for none; default: from its tokenizer.",
    )
    n_ctx: int | None = Field(
        None,
        ge=2,
        le=MAX_CONTEXT,
        description=f"Length of the sequences that it is measured on; default {DEFAULT_N_CTX}, or the model's"
        " maximum if that is less.",
    )
    untrained: bool = Field(
        False, description="Accept a model that doesn't predict the text better than token counts do."
    )
    prompt: str | None = Field(
        None, max_length=2000, description="Text that the model continues in its certificate; default: from the corpus."
    )
