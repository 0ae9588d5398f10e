"""Types of fields that several sections of a study share."""

from typing import Annotated, Any, TypeVar

from pydantic import Field, Strict
from pydantic_core import PydanticCustomError

_Item = TypeVar("_Item")

MAX_COUNT = 100_000  # of anything: more would fill the memory, and add nothing
COMPOSITION_LEVEL = 0.01  # of significance, for pairs of heads that compose
MAX_RERUNS = (
    "Maximum of heads times sequences: for a model with more heads, fewer sequences are used, but at least 8 (or all)."
)

ListOf = Annotated[tuple[_Item, ...], Strict(False)]  # a study's file has lists; what they hold keeps its strict type
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
AtLeastTwo = Annotated[int, Field(ge=2, le=MAX_COUNT)]
Seed = Annotated[int, Field(ge=0, lt=1 << 31)]


def whole(value: Any) -> Any:
    """A value if it is a whole number, for a field of a few such numbers: true and 17.0 equal some, too."""
    if type(value) is not int:
        raise PydanticCustomError("int_type", "must be a whole number")
    return value
