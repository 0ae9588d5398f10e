"""Seeds until claims are decided: an axis `seed` that grows from look to look, for the kinds of model that need it."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from headstream.tasks import places
from headstream.tasks.study.field_types import ListOf, whole
from headstream.tasks.study.mistakes import nearest

# Seeds at which the claims of a study are looked at, and the part of an error of 5 % that each look spends: whatever is
# found at one of them, a claim at its bar is decided in 5 % of studies or less (Bonferroni over looks).
LOOKS = {3: 0.005, 5: 0.01, 9: 0.015, 17: 0.02}
FIRST_LOOK = min(LOOKS)


class UntilDecided(BaseModel, frozen=True, extra="forbid", strict=True):
    """Seeds from 0 on, as many as a study's claims take: `seed = { until = "decided" }` in [grid]."""

    until: Literal["decided"] = Field(description="What ends it: all claims that the study can decide are decided.")
    at_most: Annotated[Literal[3, 5, 9, 17], BeforeValidator(whole)] = Field(
        17, description="Seeds of a kind of model after which it ends undecided."
    )
    claims: ListOf[str] = Field((), description="Claims of which it is; if left out, of all.")
    so_far: dict[str, Annotated[int, Field(ge=1, le=17)]] = Field(
        {}, description="Seeds of kinds of model that have more than 3 so far; runs keep count of them."
    )

    @field_validator("claims")
    @classmethod
    def _check_claims(cls, claims: tuple[str, ...]) -> tuple[str, ...]:
        known = sorted(path.stem for path in places.CLAIMS.glob("*.sql"))
        for claim in claims:
            if claim not in known:
                raise ValueError(f"there is no claim {claim!r}.{nearest(claim, known)}")
        return claims

    @property
    def looks(self) -> list[int]:
        """The numbers of seeds at which claims are looked at."""
        return [look for look in LOOKS if look <= self.at_most]

    def seeds_of(self, kind: str) -> int:
        """Seeds of a kind of model, which its place in the grid names, so far."""
        return self.so_far.get(kind, FIRST_LOOK)

    def next_look(self, kind: str) -> int | None:
        """Seeds of a kind of model at the next look; None after the last."""
        return next((look for look in self.looks if look > self.seeds_of(kind)), None)
