"""The result of one check of an import."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportCheck:
    """A row of the table `certificates`, without the model and the step."""

    checked: str
    value: float | None
    detail: str
    bar: float | None = None  # the most that the value may be; None if it decides nothing

    @property
    def passed(self) -> bool | None:
        """True if the value doesn't exceed the bar; None without a value or a bar."""
        return None if self.value is None or self.bar is None else self.value <= self.bar
