"""A judge's answers to one image: the draft, step by step, and saving it into answers/<id>/<week>.yaml."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from cleanset.errors import CleansetError
from cleanset.saving import ChangedMeanwhileError, locked, replace_file
from cleanset.sections import Section, Sha256
from cleanset.studies.contest.entries import AnswerFile
from cleanset.studies.contest.judging import STATEMENTS, Contains, JudgeAnswer
from cleanset.studies.contest.outlines import MAX_POINTS, Point, as_text, check_inside, parse_outline
from cleanset.studies.contest.reading import read_section
from cleanset.validation import shown

JudgeStep = Literal["contains", "outline", "statement", "done"]


class JudgeDraft(Section):
    """The answers to an image, in the order in which they are asked; `closed`: the outline is finished."""

    # JSON has lists, no tuples
    model_config = ConfigDict(frozen=False, strict=False)

    image: Sha256
    contains: list[Contains] = Field(default_factory=list)
    corners: Annotated[list[Point], Field(max_length=MAX_POINTS)] = Field(default_factory=list)
    closed: bool = False
    statements: list[bool] = Field(default_factory=list)

    @classmethod
    def of(cls, image: str, answer: JudgeAnswer, groups: tuple[str, ...]) -> "JudgeDraft":
        """The draft that was saved as an answer."""
        given = [getattr(answer, name) for name in STATEMENTS]
        return cls(
            image=image,
            contains=[answer.contains[group] for group in groups],
            corners=list(answer.outline or ()),
            closed=answer.outline is not None,
            statements=[each for each in given if each is not None],
        )

    def object_of(self, groups: tuple[str, ...]) -> str | None:
        """The group whose largest object is asked about, once both groups are answered."""
        if len(self.contains) < len(groups):
            return None
        return self.answer(groups, datetime.date.min).object_of

    def step(self, groups: tuple[str, ...]) -> JudgeStep:
        """The next question."""
        if len(self.contains) < len(groups):
            return "contains"
        if self.object_of(groups) is None:
            return "done"
        if not self.closed:
            return "outline"
        return "statement" if len(self.statements) < len(STATEMENTS) else "done"

    def close_outline(self, width: int, height: int) -> None:
        """Finish the outline. Raises ValueError, and leaves it open, unless it is a simple polygon inside the image."""
        check_inside(parse_outline(self.corners), width, height)
        self.closed = True

    def take_back(self) -> bool:
        """Take the last step back; False if nothing was answered."""
        if self.statements:
            self.statements.pop()
        elif self.closed:
            self.closed = False
        elif self.corners:
            self.corners.pop()
        elif self.contains:
            self.contains.pop()
        else:
            return False
        return True

    def answer(self, groups: tuple[str, ...], date: datetime.date) -> JudgeAnswer:
        """The answers so far, in the form in which they are saved."""
        return JudgeAnswer.model_validate(
            {
                "date": date,
                "contains": dict(zip(groups, self.contains, strict=True)),
                "outline": self.corners if self.closed else None,
                **dict(zip(STATEMENTS, self.statements, strict=False)),
            }
        )


def answer_file(contest: Path, judge: str, week: datetime.date) -> Path:
    """The file of a judge's answers to the images of a week."""
    return contest / "answers" / judge / f"{week}.yaml"


def save_answer(
    contest: Path,
    judge: str,
    week: datetime.date,
    sha256: str,
    answer: JudgeAnswer | None,
    expected: JudgeAnswer | None,
) -> None:
    """Make `answer` the judge's answers to an image; None takes them away, and the file with its last entry.

    `expected`: what the caller last read (None: no answer). Entries stay in the order in which they were given.
    Processes may save at once; after a kill the file is the old or the new one.

    Raises ChangedMeanwhileError if the file has other answers than `expected` (unless they are the new ones),
    CleansetError for an invalid file, and OSError if the disk fails; the file is then unchanged.
    """
    path = answer_file(contest, judge, week)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        answers = dict(read_section(AnswerFile, path).answers) if path.exists() else {}
        current = answers.get(sha256)
        # before `expected` is compared: the same answers twice are no conflict
        if current == answer:
            return
        if current != expected:
            raise ChangedMeanwhileError(
                f"{path}: {sha256[:12]}…: changed meanwhile; expected what was read before: look and answer again"
            )
        if answer is None:
            del answers[sha256]
        else:
            answers[sha256] = answer
        replace_file(path, as_yaml(answers).encode())


def as_yaml(answers: Mapping[str, JudgeAnswer]) -> str:
    """The content of a file of answers; empty without answers."""
    if not answers:
        return ""
    lines = ["answers:\n"]
    for sha256, answer in answers.items():
        contains = ", ".join(f"{name}: {each}" for name, each in answer.contains.items())
        lines += [f'  "{sha256}":\n', f'    date: "{answer.date}"\n', f"    contains: {{{contains}}}\n"]
        if answer.outline is not None:
            lines.append(f"    outline: {as_text(answer.outline)}\n")
        given = {name: getattr(answer, name) for name in STATEMENTS}
        lines += [f"    {name}: {str(value).lower()}\n" for name, value in given.items() if value is not None]
    return "".join(lines)


def check_judge(judge: str, roster: frozenset[str]) -> None:
    """Raise CleansetError unless a judge is in the roster."""
    if judge not in roster:
        raise CleansetError(f"judge {shown(judge)}: not in the roster; expected one of judges/roster.yaml")
