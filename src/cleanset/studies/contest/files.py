"""All that counts in a contest on a day, in one value; the images that were submitted before, and do not count."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleanset.studies.contest.entries import (
    Acceptance,
    AnswerFile,
    Appeal,
    BoardDecision,
    Defence,
    DefenceRun,
    JudgeExample,
    Stake,
    SubmissionManifest,
    SubmittedImage,
)
from cleanset.studies.contest.judging import ControlImage
from cleanset.studies.contest.rules import ContestRules


class Submission(NamedTuple):
    """A team's submission: the line of the log, its day, and the day on which its week was published, max before."""

    number: int
    day: datetime.date
    week: datetime.date
    manifest: SubmissionManifest

    @property
    def team(self) -> str:
        return self.manifest.team

    def __str__(self) -> str:
        return f"line {self.number}, {self.team}'s submission"


class Repeat(NamedTuple):
    """An image that was submitted before, by its file or its pixels: it counts in `first`, as `first_file`, alone."""

    submission: Submission
    image: SubmittedImage
    first: Submission
    first_file: str

    def __str__(self) -> str:
        return f"{self.submission}/{self.image.file}: the same image as {self.first}/{self.first_file}"


def in_order(submissions: Iterable[Submission]) -> list[Submission]:
    """Submissions in order of entry."""
    return sorted(submissions, key=lambda each: each.number)


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
            first_submission, first_file = known[0]
            found.append(Repeat(submission, image, first_submission, first_file))
        for each in digests:
            first.setdefault(each, (submission, image.file))
    return found


def counted(submissions: Sequence[Submission]) -> list[Submission]:
    """The submissions without the images that were submitted before."""
    left = {(each.submission.number, each.image.file) for each in repeats(submissions)}
    found = []
    for each in submissions:
        images = [image for image in each.manifest.images if (each.number, image.file) not in left]
        manifest = each.manifest.model_copy(update={"images": images})
        found.append(each._replace(manifest=manifest) if len(images) < len(each.manifest.images) else each)
    return [each for each in found if each.manifest.images]


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """A line that makes others void."""

    line: str
    date: datetime.date
    members: frozenset[str]
    """Those who have signed it."""

    images: frozenset[str]
    """The SHA-256 of the images that were answered, appealed or decided in the void lines."""

    teams: frozenset[str]
    """The teams that the void lines name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The log as it was when a week was published."""

    day: datetime.date
    size: int
    """The number of lines."""

    root: str
    """The root hash, in base64."""

    teams: tuple[str, ...]
    """The teams that have cosigned it, without those of organizers and of the board."""


@dataclass(frozen=True, slots=True)
class ContestFiles:
    """Everything that the standing is computed from, in any order."""

    rules: ContestRules
    defences: Mapping[str, Defence]
    """By team/name."""

    submissions: Sequence[Submission] = ()
    roster: frozenset[str] = frozenset()
    """The ids of the judges."""

    controls: Mapping[str, ControlImage] = field(default_factory=dict)
    """By the image's SHA-256, as `masks` and `examples`."""

    answers: Sequence[AnswerFile] = ()
    decisions: Sequence[BoardDecision] = ()
    appeals: Sequence[Appeal] = ()
    stakes: Sequence[Stake] = ()
    accepted: Sequence[Acceptance] = ()
    runs: Sequence[DefenceRun] = ()
    masks: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """The pixels of a control image's largest object, shape (height, width)."""

    examples: Mapping[str, JudgeExample] = field(default_factory=dict)
    draws: Mapping[datetime.date, tuple[frozenset[str], int]] = field(default_factory=dict)
    """By week, the controls that could be drawn when it was published, and the number of its images."""

    conflicts: Sequence[tuple[datetime.date, str, str]] = ()
    """The declared conflicts of interest: day, member of the board, team."""

    withdrawals: Sequence[Withdrawal] = ()
    checkpoints: Sequence[Checkpoint] = ()
    """In their order."""

    contest: str = ""
    """The digest of the first line of the log, which is the contest's identity."""

    head: str = ""
    """The digest of the last line of the log."""

    def runs_by_defence(self) -> dict[str, list[DefenceRun]]:
        """The runs of every defence, by day."""
        found: dict[str, list[DefenceRun]] = {name: [] for name in self.defences}
        for run in sorted(self.runs, key=lambda each: each.date):
            found.setdefault(run.defence, []).append(run)
        return found
