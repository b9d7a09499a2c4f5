"""`contest.yaml`: days, teams, board and classes, all limits on teams, and the rules for judges."""

import datetime
import re
from contextlib import suppress
from typing import Annotated, Literal, Self, TypeVar, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import Section, Sha256, shown
from cleanset.scoring.logits import Groups
from cleanset.statistics.coverage import Reading

FRIDAY = 4
"""Day of the week on which a week ends; Monday is 0."""
DAYS_A_WEEK = 7
VERSION = 2
"""Of the rules of a contest."""

_Date = TypeVar("_Date", datetime.date, datetime.datetime)
_DAY = re.compile(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def parse_day(text: object) -> datetime.date:
    """The day in a text such as 2026-11-27. Raises ValueError for anything else."""
    # not isinstance: a datetime is a date, too
    if type(text) is datetime.date:
        return text
    return _parsed(text, _DAY, datetime.date, 'expected a day such as "2026-11-27", in quotes')


def parse_instant(text: object) -> datetime.datetime:
    """The instant in a text such as 2026-11-27T23:59:59Z, with its time zone. Raises ValueError for anything else."""
    if isinstance(text, datetime.datetime) and text.tzinfo is datetime.UTC:
        return text
    expected = 'expected an instant in UTC such as "2026-11-27T23:59:59Z", in quotes'
    return _parsed(text, _INSTANT, datetime.datetime, expected)


def _parsed(text: object, form: re.Pattern[str], kind: type[_Date], expected: str) -> _Date:
    # without the form, fromisoformat takes weeks, other time zones and spaces, too
    with suppress(ValueError):
        if isinstance(text, str) and form.fullmatch(text):
            return kind.fromisoformat(text)
    raise ValueError(expected)


Day = Annotated[datetime.date, BeforeValidator(parse_day)]
Instant = Annotated[datetime.datetime, BeforeValidator(parse_instant)]


def week_of_day(day: datetime.date) -> datetime.date:
    """The Friday on which the week of a day in UTC ends."""
    return day + datetime.timedelta((FRIDAY - day.weekday()) % DAYS_A_WEEK)


def after(day: datetime.date, days: int) -> datetime.date:
    """The day that is some days after another."""
    return day + datetime.timedelta(days)


ABSTAIN = "abstain"
INVALID = "invalid"
BOARD = "board"
RESERVED = (ABSTAIN, INVALID, BOARD)
MIN_JUDGES = 3
SizeRule = Literal["half", "quarter_box", "box_16_percent"]
SIZE_RULES: tuple[SizeRule, ...] = get_args(SizeRule)

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)]
PublicKey = Annotated[
    str, Field(pattern=r"^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43}( .*)?$", max_length=2000)
]
"""A public SSH key of kind ed25519 on one line, as in ~/.ssh/id_ed25519.pub."""

MIN_COSIGNERS = 2
"""The number of teams that have to cosign each checkpoint: one of them may be the organizers' friend."""


class JudgingRules(Section):
    """The rules of judging."""

    minimum: Annotated[int, Field(ge=MIN_JUDGES, le=1000)] = MIN_JUDGES
    """The number of judges that a verdict needs."""

    size: SizeRule = "half"
    controls: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """The share of control images among all images of a judge."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """The seed of each judge's order, controls and edges."""

    min_controls: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    """The number of answers to controls, or of outlines on them, from which a judge can be disqualified."""

    min_accuracy: Annotated[float, Field(ge=0, le=1)] = 0.7
    """The share of controls, 0 to 1, that a judge has to answer correctly."""

    min_overlap: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The mean IoU, 0 to 1, that a judge's outlines need with the controls' masks."""


class ContestLimits(Section):
    """The contest's limits; the defaults come from Unrestricted Adversarial Examples, except `appeal_days`."""

    images_a_day: Annotated[int, Field(ge=1, le=1000)] = 10
    """The most images that a team may submit on one day."""

    min_side: Annotated[int, Field(ge=2, le=65_535)] = 16
    """The smallest side of a submitted image, in pixels; the largest is what every staked defence sees."""

    appeal_days: Annotated[int, Field(ge=0, le=365)] = 7
    """Days for appeals, from the day on which the last judge that is needed has answered."""

    defences: Annotated[int, Field(ge=1, le=1000)] = 10
    """The most defences of a team: each run tells something of the unpublished list."""

    unbroken_days: Annotated[int, Field(ge=1, le=3650)] = 90
    """Days until a staked defence wins."""

    images_per_minute: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    """The lowest rate of an eligible defence."""

    eligibility_images: Annotated[int, Field(ge=1, le=1_000_000_000)] = 100
    """The size of the smallest eligibility list on which `perfect_at_80` counts."""


class BoardMember(Section):
    """A member of the board."""

    key: PublicKey | None = None
    teams: list[Name] = Field(default_factory=list)
    """The member's own teams."""

    conflicts: list[Name] = Field(default_factory=list)
    """Other teams with which the member has a conflict of interest."""

    def has_conflict_with(self, teams: frozenset[str]) -> bool:
        return not teams.isdisjoint((*self.teams, *self.conflicts))


class ContestRules(Section):
    """All of contest.yaml, which is the first line of the log."""

    classes: dict[Name, list[str]]
    """Two groups of wnids, by name; a contest has ImageNet's classes alone."""

    teams: Annotated[dict[Name, PublicKey | None], Field(min_length=1)]
    """The key of each team, by name; one without a key says nothing."""

    organizers: list[Name] = Field(default_factory=list)
    """Teams that take part without shares, like the board's."""

    board: Annotated[dict[Name, BoardMember], Field(min_length=1)]
    signers: dict[Name, PublicKey] = Field(default_factory=dict)
    """The keys of the people who make the entries, by name."""

    quorum: Annotated[int, Field(ge=1, le=1000)] = 1
    """The number of members who have to sign a decision of the board."""

    eligibility: Reading = "accuracy_80"
    """Which of the source's two readings decides who is eligible."""

    version: Literal[2] = 2
    """Of these rules: what the entries of a log come to."""

    clean_set: Sha256 | None = None
    """The digest of the edition's finished sets (`eligibility_lists.clean_digest`), entered with the first line."""

    published: Sha256 | None = None
    """The digest of the eligibility list (`eligibility_lists.list_digest`), entered with the first line."""

    unpublished: Sha256 | None = None
    """The digest of the unpublished list that decides who is eligible (`eligibility_lists.list_digest`)."""

    made_up: bool = False
    """Nothing of the contest has happened, so that the instants of entries may be chosen."""

    drawings_are_real: bool = False
    """The judges' instructions say that a drawing does not count as a depiction."""

    judges: JudgingRules = JudgingRules()
    limits: ContestLimits = ContestLimits()

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, content: object) -> object:
        # before the keys, which an older version may have others of
        found = content.get("version", VERSION) if isinstance(content, dict) else VERSION
        if found != VERSION:
            raise ValueError(
                f"version: {shown(found)}; expected {VERSION}, of these rules: begin the contest anew with cleanset "
                "contest enter contest.yaml"
            )
        return content

    @field_validator("classes")
    @classmethod
    def _two_groups(cls, classes: dict[str, list[str]]) -> dict[str, list[str]]:
        for name in classes:
            if name in RESERVED:
                raise ValueError(f"{name} cannot name a group; expected a name other than {', '.join(RESERVED)}")
        try:
            Groups.of(classes, imagenet())
        except CleansetError as error:
            raise ValueError(str(error).removeprefix("classes: ")) from None
        return classes

    @model_validator(mode="after")
    def _known_teams(self) -> Self:
        named = {"organizers": self.organizers}
        for member, entry in self.board.items():
            named |= {f"board.{member}.teams": entry.teams, f"board.{member}.conflicts": entry.conflicts}
        for key, teams in named.items():
            for team in teams:
                if team not in self.teams:
                    raise ValueError(f"{key}: unknown team {team}; expected one of teams")
        if self.quorum > len(self.board):
            raise ValueError(f"quorum: {self.quorum}; expected at most the {len(self.board)} members of the board")
        if BOARD in self.teams:
            raise ValueError(f"teams: one is named {BOARD}; expected another name")
        return self

    def groups(self) -> Groups:
        return Groups.of(self.classes, imagenet())

    def without_shares(self) -> frozenset[str]:
        """The teams of organizers and of the board."""
        return frozenset(self.organizers).union(*(member.teams for member in self.board.values()))
