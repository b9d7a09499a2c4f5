"""All files of a contest together, and their content on an earlier day."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.studies.contest.days import week_of
from cleanset.studies.contest.entries import Board, Defence, SubmissionManifest
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.runs import DefenceRun


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
    board = files.board
    answers = [
        WeekOfAnswers(each.judge, each.week, {key: one for key, one in each.answers.items() if one.date <= on})
        for each in files.answers
    ]
    return replace(
        files,
        defences={name: each for name, each in files.defences.items() if each.submitted <= on},
        submissions=[each for each in files.submissions if each.day <= on],
        answers=answers,
        board=Board(
            decisions=[each for each in board.decisions if each.date <= on],
            appeals=[each for each in board.appeals if each.date <= on],
            stakes=[each for each in board.stakes if each.date <= on],
            accepted=[each for each in board.accepted if each.date <= on],
        ),
        runs=[each for each in files.runs if each.date <= on],
    )


def last_day(files: ContestFiles) -> datetime.date:
    """The latest day in the files. Raises CleansetError for files without a date."""
    board = files.board
    dates = [each.day for each in files.submissions]
    dates += [each.submitted for each in files.defences.values()]
    dates += [each.date for kind in (board.decisions, board.appeals, board.stakes, board.accepted) for each in kind]
    dates += [one.date for each in files.answers for one in each.answers.values()]
    dates += [each.week for each in files.submissions] + [each.date for each in files.runs]
    if not dates:
        raise CleansetError("contest: no date; expected at least one defence")
    return max(dates)
