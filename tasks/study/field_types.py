"""Types of fields that several sections of a study share."""

from typing import Annotated

from pydantic import Field

MAX_COUNT = 100_000  # of anything: more would fill the memory, and add nothing
COMPOSITION_LEVEL = 0.01  # of significance, for pairs of heads that compose
MAX_RERUNS = (
    "Maximum of heads times sequences: for a model with more heads, fewer sequences are used, but at least 8 (or all)."
)

Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
AtLeastTwo = Annotated[int, Field(ge=2, le=MAX_COUNT)]
Seed = Annotated[int, Field(ge=0, lt=1 << 31)]
