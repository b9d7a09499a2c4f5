"""The rules of a contest: all of `contest.yaml`, which is the first line of its log; days, instants and weeks.

The defaults are those of Brown et al., Unrestricted Adversarial Examples (2018), except `appeal_days`.
"""

import datetime
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import EachOnce, Section, Sha256, checked, matching
from cleanset.scoring.logits import Groups

FRIDAY = 4
"""Day of the week on which a week ends; Monday is 0."""
MIN_JUDGES = 3
ABSTAIN = "abstain"
INVALID = "invalid"


@lru_cache(maxsize=1024)
def parse_instant(text: str) -> datetime.datetime:
    """The instant in a text such as 2026-11-27T23:59:59Z, with its time zone. Raises ValueError for another one."""
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)


Day = Annotated[datetime.date, Field(strict=False)]
"""A day such as "2026-11-27"."""
Name = Annotated[str, matching("[a-z0-9][a-z0-9_-]{0,63}", "a name in small letters, digits, _ and -")]
Group = Annotated[Name, checked(lambda name: name not in (ABSTAIN, INVALID), f"a name other than {ABSTAIN}, {INVALID}")]
SidePixels = Annotated[int, Field(ge=2, le=65_535)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1000)]


def week_of_day(day: datetime.date) -> datetime.date:
    """The Friday on which the week of a day in UTC ends."""
    return after(day, (FRIDAY - day.weekday()) % 7)


def after(day: datetime.date, days: int) -> datetime.date:
    """The day that is some days after another."""
    return day + datetime.timedelta(days)


class JudgingRules(Section):
    """The rules of judging."""

    minimum: Annotated[int, Field(ge=MIN_JUDGES, le=1000)] = MIN_JUDGES
    """The number of judges that a verdict needs."""

    object_share: Share = 0.5
    """The share of the image that the outline of its largest object covers at least."""

    controls: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """The share of control images among all images of a judge."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """The seed of each judge's order, controls and edges."""

    min_controls: Count = 5
    """The number of answers to controls from which a judge can be disqualified."""

    min_accuracy: Share = 0.7
    """The share of controls that a judge has to answer correctly."""


class ContestLimits(Section):
    """The contest's limits."""

    images_a_day: Count = 10
    """The most images that a team may submit on one day."""

    min_side: SidePixels = 16
    """The smallest side of a submitted image, in pixels."""

    max_side: SidePixels = 224
    """The largest one: every defence has to see that many pixels, so that people and programs see the same."""

    seen_share: Annotated[float, Field(gt=0, le=1)] = 0.875
    """The share of a square's side, in the middle, that every defence has to look at."""

    appeal_days: Annotated[int, Field(ge=0, le=365)] = 7
    """Days for appeals, from the day on which the last judge that is needed has answered."""

    defences: Count = 10
    """The most defences of a team: each run reveals something of the unpublished list."""

    unbroken_days: Annotated[int, Field(ge=1, le=3650)] = 90
    """Days until a staked defence wins."""

    images_per_minute: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    """The lowest rate of an eligible defence."""


class ContestRules(Section):
    """All of contest.yaml, which is the first line of the log."""

    classes: dict[Group, list[str]]
    """Two groups of wnids, by name; a contest has ImageNet's classes alone."""

    teams: Annotated[list[Name], Field(min_length=1), EachOnce]
    organizers: list[Name] = Field(default_factory=list)
    """Teams that take part without shares, like the board's."""

    board: Annotated[dict[Name, list[Name]], Field(min_length=1)]
    """The members of the review board, each with the member's own teams."""

    version: Literal[3] = 3
    """Version of these rules."""

    clean_set: Sha256 | None = None
    """The digest of the edition's finished sets (`runs.clean_digest`), entered with the first line."""

    unpublished: Sha256 | None = None
    """The digest of the unpublished list that decides who is eligible (`runs.list_digest`), entered likewise."""

    made_up: bool = False
    """Nothing of the contest has happened, so that the instants of entries may be chosen."""

    drawings_are_real: bool = False
    """The judges' instructions say that a drawing does not count as a depiction."""

    judges: JudgingRules = JudgingRules()
    limits: ContestLimits = ContestLimits()

    @field_validator("classes")
    @classmethod
    def _two_groups(cls, classes: dict[str, list[str]]) -> dict[str, list[str]]:
        try:
            Groups.of(classes, imagenet())
        except CleansetError as error:
            raise ValueError(str(error).removeprefix("classes: ")) from None
        return classes

    @model_validator(mode="after")
    def _known_teams(self) -> Self:
        for team in sorted(self.without_shares() - {*self.teams}):
            raise ValueError(f"{team}, of organizers or board, is not a team; expected one of teams: add it there")
        return self

    def groups(self) -> Groups:
        return Groups.of(self.classes, imagenet())

    def without_shares(self) -> frozenset[str]:
        """The teams of organizers and of the board."""
        return frozenset(self.organizers).union(*self.board.values())
