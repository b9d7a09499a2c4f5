"""The files of teams, judges and the board, each checked by itself on reading."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cleanset.images.codec import MAX_AREA
from cleanset.statistics.coverage import Confidence
from cleanset.studies.contest.days import Day, Instant
from cleanset.studies.contest.judging import MIN_JUDGES, ControlImage, JudgeAnswer
from cleanset.studies.contest.rules import Name
from cleanset.validation import Role, Section, Sha256

DefenceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*$", max_length=129)]
JudgeId = Annotated[str, Field(pattern=r"^[0-9a-f]{8,32}$")]
"""Drawn at random instead of a name, so that all answers can be published unchanged."""
ImageFile = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\.(png|jpg|jpeg|PNG|JPG|JPEG)$", max_length=100)]
FilePath = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$", max_length=200)
]
"""Relative to the folder of the file that names it, and inside that folder."""
Text = Annotated[str, Field(pattern=r"[\p{L}\p{N}]", max_length=10_000)]
"""At least one letter or digit, so that no reason is empty."""
Side = Annotated[int, Field(ge=1, le=65_535)]
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class NamedFile(Section):
    """A file of a defence and its purpose."""

    path: FilePath
    sha256: Sha256
    role: Literal["inference", "training", "weights", "other"] = "other"


class ModelOfEdition(Section):
    """A model of the edition that abstains below a threshold of its confidence.

    `wrapper`: `uninteresting` wraps the model into the defence of source 004, appendix E, which only looks strong.
    """

    role: Role
    wrapper: Literal["uninteresting"] | None = None
    confidence: Confidence
    threshold: Annotated[float, Field(allow_inf_nan=False)]


class Defence(Section):
    """All of a defence.yaml: a model of the edition, or a command, and every file that it needs.

    `command` is started with the path of a folder of images added, and prints a line `file, class or abstain` for
    each. `open`: inference code, training code and weights are published; a closed defence cannot win.
    """

    submitted: Day
    open: bool
    files: list[NamedFile] = Field(default_factory=list)
    model: ModelOfEdition | None = None
    # a list of words, so that no shell reads it
    command: Annotated[list[str], Field(min_length=1, max_length=100)] | None = None
    time_limit_seconds: Annotated[int, Field(ge=1, le=864_000)] = 3600

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.model is None) == (self.command is None):
            raise ValueError("expected either model or command")
        if len({each.path for each in self.files}) < len(self.files):
            raise ValueError("files: a path twice; expected each once")
        if self.command is not None and not self.files:
            raise ValueError("files: none; expected every file that the command needs, with its SHA-256")
        # a model of the edition is public already: only a command has to bring its files
        missing = {"inference", "training", "weights"} - {each.role for each in self.files}
        if self.open and self.command is not None and missing:
            raise ValueError(f"open: no file has the role {min(missing)}; expected inference, training and weights")
        return self


class SubmittedImage(Section):
    """An image of a submission; `pixels_sha256` is of its RGB bytes, row by row."""

    file: ImageFile
    sha256: Sha256
    pixels_sha256: Sha256
    width: Side
    height: Side

    @model_validator(mode="after")
    def _no_bomb(self) -> Self:
        # before any file is opened: a small PNG may decode to gigabytes
        if self.width * self.height > MAX_AREA:
            raise ValueError(f"{self.width} x {self.height} pixels; expected at most {MAX_AREA:,}")
        return self


class SubmissionManifest(Section):
    """All of a submission's manifest.yaml: time of submission, target and images."""

    submitted: Instant
    target: DefenceName
    images: Annotated[list[SubmittedImage], Field(min_length=1, max_length=1000)]


class JudgeEntry(Section):
    """A judge, without a name."""

    joined: Day


class Roster(Section):
    """All of judges/roster.yaml."""

    judges: dict[JudgeId, JudgeEntry]


class ControlsFile(Section):
    """All of judges/controls.yaml: by SHA-256, the images whose answers are known."""

    controls: dict[Sha256, ControlImage]


class JudgeExample(JudgeAnswer):
    """An image shown to judges beforehand, with its answers and why they are correct."""

    because: Text


class ExamplesFile(Section):
    """All of judges/examples.yaml: by SHA-256, in the order in which they are shown."""

    examples: dict[Sha256, JudgeExample]


class AnswerFile(Section):
    """All of answers/<id>/<week>.yaml: one judge's answers, by the SHA-256 of the image."""

    answers: dict[Sha256, JudgeAnswer]


class BoardDecision(Section):
    """A decision of the board on an image, with its public reason: a verdict, or a new number of judges.

    `verdict`: the name of a group, or `invalid`.
    """

    image: Sha256
    date: Day
    reason: Text
    members: Annotated[list[Name], Field(min_length=1)]
    recused: list[Name] = Field(default_factory=list)
    verdict: Name | None = None
    judges: Annotated[int, Field(ge=MIN_JUDGES, le=1000)] | None = None

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if (self.verdict is None) == (self.judges is None):
            raise ValueError("expected either verdict or judges")
        both = set(self.members) & set(self.recused)
        if both:
            raise ValueError(f"{min(both)} is recused and among members; expected one of the two")
        # a member listed twice must not make up a quorum
        if len(set(self.members)) < len(self.members):
            raise ValueError("members: one is listed twice; expected each once")
        return self


class Appeal(Section):
    """A team's appeal of the judges' verdict on an image."""

    image: Sha256
    team: Name
    date: Day
    statement: Text


class Stake(Section):
    """A batch of defences, staked on one day by the board or by their own team.

    `digests`: of each of them, of its defence.yaml and all its files on that day (`reading.defence_digest`).
    """

    batch: Name
    date: Day
    by: Name
    defences: Annotated[list[DefenceName], Field(min_length=1)]
    digests: dict[DefenceName, Sha256]


class Acceptance(Section):
    """The board's permission to run a defence's command."""

    defence: DefenceName
    date: Day


class Board(Section):
    """The lists in the folder board/, a file for each."""

    decisions: list[BoardDecision] = Field(default_factory=list)
    appeals: list[Appeal] = Field(default_factory=list)
    stakes: list[Stake] = Field(default_factory=list)
    accepted: list[Acceptance] = Field(default_factory=list)
