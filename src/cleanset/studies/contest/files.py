"""The files of teams, judges and the board, each checked by itself on reading; runs of defences; all files together."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from cleanset.errors import CleansetError
from cleanset.images.codec import MAX_AREA
from cleanset.statistics.coverage import Confidence, Count, Eligibility, Flags, Floats
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer
from cleanset.studies.contest.rules import MIN_JUDGES, ContestRules, Day, Instant, Name, week_of
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


_LISTS = tuple(Board.model_fields)


class UnpublishedFigures(Eligibility):
    """Counts on an unpublished list; `list_sha256` is the list's digest, which tells nothing of its images."""

    list_sha256: Sha256


class WarningSign(Section):
    """A sign that a defence only looks strong, with its evidence as a sentence."""

    sign: Name
    text: Text


CoverageStep = Annotated[list[Count], Field(min_length=2, max_length=2)]


class DefenceRun(Section):
    """All of results/runs/<team>/<name>/<date>.json: one run of a defence over every submitted image.

    `digest`: of defence.yaml and its files, as in the stake; `model`: of the model's entry in the edition's
    params.yaml. `answers`: by SHA-256 of the image, the name of a group or `abstain`. `unpublished`: the same as
    `eligibility` on a second list. `coverage`: the result of `coverage_steps`. `confined`: whether a command saw
    nothing but its files and the images; None for a model. `signs`: found in a model's answers and gradients; None for
    a command.
    """

    defence: DefenceName
    date: Day
    digest: Sha256
    model: Sha256 | None = None
    confined: bool | None = None
    images_per_minute: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    eligibility: Eligibility
    unpublished: UnpublishedFigures | None = None
    coverage: list[CoverageStep] | None = None
    signs: list[WarningSign] | None = None
    answers: dict[Sha256, Name]

    @model_validator(mode="after")
    def _steps_that_end_at_all_answers(self) -> Self:
        if self.coverage is None:
            return self
        last, found = [0, 0], self.eligibility
        for step in self.coverage:
            # mistakes are among the images answered: they cannot grow faster than these
            if step[0] <= last[0] or not last[1] <= step[1] <= last[1] + step[0] - last[0]:
                raise ValueError(f"coverage: {step} after {last}; expected more images, and no more mistakes than they")
            last = step
        if last != [found.correct + found.mistakes, found.mistakes]:
            raise ValueError(f"coverage: ends at {last}; expected all answers and mistakes of eligibility")
        return self


CoverageSteps = list[tuple[int, int]]
"""Images answered and mistakes among them, the most confident first; the last step has all answers."""


def coverage_steps(correct: Flags, abstains: Flags, confidence: Floats | None = None) -> CoverageSteps:
    """The steps of a defence on a list of images; steps inside a stretch without mistakes are left out.

    `correct` counts only where the defence does not abstain. Equally confident answers are one step, so that the order
    of the list decides nothing; without `confidence` all are. Empty where the defence abstains on everything.
    """
    ranked = np.zeros(len(correct)) if confidence is None else confidence.astype(np.float64)
    answered, mistakes = ranked[~abstains], ~correct[~abstains]
    steps = [
        (int((answered >= each).sum()), int(mistakes[answered >= each].sum())) for each in np.unique(answered)[::-1]
    ]
    around = zip([(0, 0), *steps], steps, [*steps[1:], None], strict=False)
    return [step for before, step, after in around if after is None or not before[1] == step[1] == after[1]]


def points(steps: Sequence[tuple[int, int]], images: int) -> list[tuple[float, float]]:
    """Coverage and accuracy, 0 to 1, for each number of answers that the steps determine."""
    found = []
    for before, (covered, mistakes) in pairwise([(0, 0), *steps]):
        first = before[0] + 1 if before[1] == mistakes else covered
        found += [(count / images, 1 - mistakes / count) for count in range(first, covered + 1)]
    return found


@dataclass(frozen=True, slots=True)
class Submission:
    """A team's submission; `number` counts the team's submissions of a day."""

    team: str
    number: int
    manifest: SubmissionManifest

    @property
    def day(self) -> datetime.date:
        return self.manifest.submitted.date()

    @property
    def week(self) -> datetime.date:
        """The Friday that ends its week."""
        return week_of(self.manifest.submitted)

    def __str__(self) -> str:
        return f"submissions/{self.team}/{self.day}-{self.number}"


@dataclass(frozen=True, slots=True)
class Repeat:
    """An image that was submitted before, by its file or its pixels: it counts in `first`, as `first_file`, alone."""

    submission: Submission
    image: SubmittedImage
    first: Submission
    first_file: str

    def __str__(self) -> str:
        return f"{self.submission}/{self.image.file}: the same image as {self.first}/{self.first_file}"


def in_order(submissions: Iterable[Submission]) -> list[Submission]:
    """Submissions by their time, then by team and number."""
    return sorted(submissions, key=lambda each: (each.manifest.submitted, each.team, each.number))


def submitted_images(submissions: Iterable[Submission]) -> Iterator[tuple[Submission, SubmittedImage]]:
    """Each image of some submissions, with its submission."""
    return ((each, image) for each in submissions for image in each.manifest.images)


def repeats(submissions: Iterable[Submission]) -> list[Repeat]:
    """The images that were submitted before: these do not count, so that repeating an image blocks nobody."""
    first: dict[str, tuple[Submission, str]] = {}
    found = []
    for submission, image in submitted_images(in_order(submissions)):
        digests = (f"file {image.sha256}", f"pixels {image.pixels_sha256}")
        known = [first[each] for each in digests if each in first]
        if known:
            found.append(Repeat(submission, image, *known[0]))
        for each in digests:
            first.setdefault(each, (submission, image.file))
    return found


def counted(submissions: Sequence[Submission]) -> list[Submission]:
    """The submissions without the images that were submitted before."""
    left = {(str(each.submission), each.image.file) for each in repeats(submissions)}
    found = []
    for each in submissions:
        images = [image for image in each.manifest.images if (str(each), image.file) not in left]
        manifest = each.manifest.model_copy(update={"images": images})
        found.append(replace(each, manifest=manifest) if len(images) < len(each.manifest.images) else each)
    return [each for each in found if each.manifest.images]


@dataclass(frozen=True, slots=True)
class WeekOfAnswers:
    """The answers of one judge in one week, by the SHA-256 of the image."""

    judge: str
    week: datetime.date
    answers: Mapping[str, JudgeAnswer]

    def __str__(self) -> str:
        return f"answers/{self.judge}/{self.week}.yaml"


@dataclass(frozen=True, slots=True)
class ContestFiles:
    """Everything that the standing is computed from, in any order.

    `defences`: by team/name; `digests`: of their files, by the same names. `masks`: by the SHA-256 of a control image,
    the pixels of its largest object, shape (height, width).
    """

    rules: ContestRules
    defences: Mapping[str, Defence]
    submissions: Sequence[Submission] = ()
    roster: frozenset[str] = frozenset()
    controls: Mapping[str, ControlImage] = field(default_factory=dict)
    answers: Sequence[WeekOfAnswers] = ()
    board: Board = field(default_factory=Board)
    runs: Sequence[DefenceRun] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    masks: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)


def team_of(defence: str) -> str:
    """The team in a defence's name."""
    return defence.partition("/")[0]


def until(files: ContestFiles, on: datetime.date) -> ContestFiles:
    """The content of the files at the end of a day, without anything that is dated later."""
    board: dict[str, Any] = {name: [each for each in getattr(files.board, name) if each.date <= on] for name in _LISTS}
    return replace(
        files,
        defences={name: each for name, each in files.defences.items() if each.submitted <= on},
        submissions=[each for each in files.submissions if each.day <= on],
        answers=[
            replace(each, answers={key: one for key, one in each.answers.items() if one.date <= on})
            for each in files.answers
        ],
        board=Board(**board),
        runs=[each for each in files.runs if each.date <= on],
    )


def dated(files: ContestFiles) -> list[tuple[str, datetime.date]]:
    """Everything with a date but submissions, which have two: the place of each, and its date."""
    found = [(f"defences/{name}", each.submitted) for name, each in files.defences.items()]
    found += [(f"results/runs/{each.defence}/{each.date}.json", each.date) for each in files.runs]
    found += [(f"{each}: {sha256[:12]}…", one.date) for each in files.answers for sha256, one in each.answers.items()]
    return found + [(f"board/{name}.yaml", each.date) for name in _LISTS for each in getattr(files.board, name)]


def days_of(files: ContestFiles) -> set[datetime.date]:
    """The days of everything in the files, and the ends of the weeks of submissions."""
    return {date for _, date in dated(files)} | {day for each in files.submissions for day in (each.day, each.week)}


def last_day(files: ContestFiles) -> datetime.date:
    """The latest day in the files. Raises CleansetError for files without a date."""
    days = days_of(files)
    if not days:
        raise CleansetError("contest: no date; expected at least one defence")
    return max(days)
