"""The kinds of entries of a contest, in the table ENTRIES: their fields, each entry checked by itself.

An entry's day is that of its line in the log, whatever day anybody may have written.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import Field, model_validator

from cleanset.plumbing.validation import AtLeastOne, EachOnce, Role, Section, Sha256, matching
from cleanset.statistics.coverage import Confidence, Eligibility
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer
from cleanset.studies.contest.rules import MIN_JUDGES, ContestRules, Day, Name, SidePixels

DefenceName = Annotated[
    str, matching("[a-z0-9][a-z0-9_-]{0,63}/[a-z0-9][a-z0-9_-]{0,63}", "team/name, in small letters, digits, _ and -")
]
JudgeId = Annotated[str, matching("[0-9a-f]{8,32}", "8 to 32 digits and letters from a to f")]
"""Drawn at random instead of a name, so that all answers can be published unchanged."""
_PART = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
ImageName = Annotated[
    str, matching(rf"{_PART}\.(?i:png|jpg|jpeg)", "a name of letters, digits, _, - and dots that ends in .png or .jpg")
]
FilePath = Annotated[
    str, matching(f"{_PART}(/{_PART}){{0,9}}", "names of letters, digits, _, - and dots, of at most ten folders")
]
"""Relative to the folder of a defence, and inside it."""
Text = Annotated[str, Field(max_length=10_000), matching(r"(?s).*[^\W_].*", "a text in words")]


def short(digest: str) -> str:
    """The beginning of a digest, by which messages name an image."""
    return f"{digest[:12]}…"


def team_of(defence: str) -> str:
    """The team in a defence's name."""
    return defence.partition("/")[0]


class Team(Section):
    """A team that joins."""

    name: Name


class Roster(Section):
    """Judges by their ids, without names."""

    judges: Annotated[list[JudgeId], Field(min_length=1), EachOnce]


class ControlsFile(Section):
    """All of a controls.yaml: by SHA-256, the images whose answers are known."""

    controls: dict[Sha256, ControlImage]


class JudgeExample(JudgeAnswer):
    """An image shown to judges beforehand, with its answers and why they are correct."""

    because: Text


class ExamplesFile(Section):
    """All of an examples.yaml: by SHA-256, in display order."""

    examples: dict[Sha256, JudgeExample]


class ModelOfEdition(Section):
    """A model of the edition that abstains below a threshold of its confidence."""

    role: Role
    confidence: Confidence
    threshold: Annotated[float, Field(allow_inf_nan=False)]


class Program(Section):
    """A program, with everything that it needs beyond the system's own programs and libraries.

    `command`: started with the path of a folder of images added, it prints a line `file, class or abstain` for each; a
    list of words, so that no shell reads it. `files`: its folder, objects of the contest.
    """

    command: Annotated[list[str], Field(min_length=1, max_length=100)]
    files: Annotated[dict[FilePath, Sha256], Field(min_length=1)]


class Defence(Section):
    """All of a defence.yaml: a model of the edition or a program.

    `open`: inference code, training code and weights are published, at `source`; a closed defence cannot win.
    """

    name: DefenceName
    open: bool
    source: Text | None = None
    model: ModelOfEdition | None = None
    program: Program | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.model is None) == (self.program is None):
            raise ValueError("expected either model or program: leave one out")
        if self.open and self.source is None:
            raise ValueError("open: no source; expected the address of the published code, training code and weights")
        return self


class Stake(Section):
    """A batch of defences that the board stakes."""

    batch: Name
    defences: Annotated[list[DefenceName], Field(min_length=1), EachOnce]


class SubmittedImage(Section):
    """An image of a submission; `pixels_sha256`: digest of its RGB bytes, row by row."""

    file: ImageName
    sha256: Sha256
    pixels_sha256: Sha256
    width: SidePixels
    height: SidePixels


class SubmissionManifest(Section):
    """All of a manifest.yaml; the images are entered from the files next to it."""

    team: Name
    target: DefenceName
    images: Annotated[list[SubmittedImage], Field(min_length=1, max_length=1000)]


class Publication(Section):
    """The end of a week: the images submitted before are published, and judging begins."""


class AnswerFile(Section):
    """All of a file of answers: one judge's answers in a week, by the SHA-256 of the image."""

    judge: JudgeId
    week: Day
    answers: Annotated[dict[Sha256, JudgeAnswer], Field(min_length=1)]


class Appeal(Section):
    """A team's appeal of the judges' verdict on an image."""

    image: Sha256
    team: Name
    statement: Text


class BoardDecision(Section):
    """A decision of the board on an image, with its public reason: a verdict, or a new number of judges.

    `recused`: members with a conflict of interest, who have not taken part. `verdict`: a group, or `invalid`.
    """

    image: Sha256
    reason: Text
    recused: list[Name] = Field(default_factory=list)
    verdict: Name | None = None
    judges: Annotated[int, Field(ge=MIN_JUDGES, le=1000)] | None = None

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if (self.verdict is None) == (self.judges is None):
            raise ValueError("expected either verdict or judges: leave one out")
        return self


class DefenceRun(Section):
    """One run of a defence over the eligibility lists and every published image.

    `model`: the digest of the model's entry in the edition's params.yaml; None for a program. `images_per_minute`: over
    published images alone, rounded down to two digits. `eligibility`: counts on the published list. `unpublished`:
    whether it is eligible on the other one, and no more, since any count would reveal single images. `answers`: by
    SHA-256 of the image, the name of a group or `abstain`.
    """

    defence: DefenceName
    model: Sha256 | None = None
    images_per_minute: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    eligibility: Eligibility
    unpublished: bool | None = None
    answers: dict[Sha256, Name]


class Void(Section):
    """Lines that count no longer, with the public reason; what has been final stays."""

    lines: Annotated[list[AtLeastOne], Field(min_length=1), EachOnce]
    reason: Text


RULES = "contest"
PUBLISH = "publish"
ENTRIES: Mapping[str, type[Section]] = {
    RULES: ContestRules, "team": Team, "roster": Roster, "controls": ControlsFile, "examples": ExamplesFile,
    "defence": Defence, "stake": Stake, "submission": SubmissionManifest, PUBLISH: Publication, "answers": AnswerFile,
    "appeal": Appeal, "decision": BoardDecision, "run": DefenceRun, "void": Void,
}  # fmt: skip
"""The kinds of lines, and what each has."""
Entry = TypeVar("Entry", bound=Section)


@dataclass(frozen=True, slots=True)
class Line(Generic[Entry]):
    """A line of the log, numbered from 0, with its entry; `text`: the line itself; `digest`: its digest."""

    n: int
    at: datetime.datetime
    day: datetime.date
    kind: str
    entry: Entry
    text: str
    digest: str

    def __str__(self) -> str:
        return f"line {self.n} ({self.kind})"


AnyLine = Line[Any]
