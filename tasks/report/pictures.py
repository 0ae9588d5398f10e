"""What a report shows as a picture, and says of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it takes a second to import, and who writes the page doesn't draw
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure, what it says in numbers, and the SELECTs it is made of.

    `look` says what to see in it, in a sentence for people who don't know the field. Without a figure, the sentence
    says why there is none. After the first of a figure, a picture is folded behind its `folded`, if it has that. Once
    drawn, it is in a `file`, a path from the report's folder, and the figure is gone.
    """

    name: str
    sentence: str
    queries: tuple[str, ...]
    figure: "Figure | None" = None
    look: str = ""
    folded: str = ""
    file: str = ""


Pictures = dict[str, list[Picture]]  # of each figure
