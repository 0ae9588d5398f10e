"""What one check of an import says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportCheck:
    """A row of the table `certificates` but for the model and the step."""

    checked: str
    value: float | None
    detail: str
    bar: float | None = None  # what the value must not exceed; None where it decides nothing

    @property
    def passed(self) -> bool | None:
        """Whether it doesn't; None without a value or a bar."""
        return None if self.value is None or self.bar is None else self.value <= self.bar
