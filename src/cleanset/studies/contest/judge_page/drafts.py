"""A judge's answers to one image as they come, question by question, and the file answers/<id>/<week>.yaml."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, Field

from cleanset.images.outlines import Outline, Point, check_outline
from cleanset.plumbing.validation import Section, Sha256, validate
from cleanset.studies.contest.entries import AnswerFile
from cleanset.studies.contest.judging import STATEMENTS, Contains, JudgeAnswer
from cleanset.studies.contest.objects import read_content

JudgeStep = Literal["contains", "outline", "statement", "done"]


class JudgeDraft(Section):
    """The answers to an image, in the order of the questions; `closed`: the outline is finished."""

    # JSON has lists, no tuples
    model_config = ConfigDict(frozen=False, strict=False)

    image: Sha256
    contains: list[Contains] = Field(default_factory=list)
    corners: list[Point] = Field(default_factory=list)
    closed: bool = False
    statements: list[bool] = Field(default_factory=list)

    @classmethod
    def of(cls, image: str, answer: JudgeAnswer, groups: tuple[str, ...]) -> Self:
        """The draft that was saved as an answer."""
        given = [getattr(answer, name) for name in STATEMENTS]
        return cls(
            image=image,
            contains=[answer.contains[group] for group in groups],
            corners=list(answer.outline or ()),
            closed=answer.outline is not None,
            statements=[each for each in given if each is not None],
        )

    @property
    def is_empty(self) -> bool:
        """Whether no question was answered."""
        return not (self.contains or self.corners or self.statements)

    @property
    def outline(self) -> Outline:
        return tuple(self.corners)

    def object_of(self, groups: tuple[str, ...]) -> str | None:
        """The group whose largest object is asked about, once both groups are answered."""
        return None if len(self.contains) < len(groups) else self.answer(groups).object_of

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
        check_outline(self.outline, width, height)
        self.closed = True

    def take_back(self) -> bool:
        """Take the last step back; False if nothing was answered."""
        if self.closed and not self.statements:
            self.closed = False
        elif given := self.statements or self.corners or self.contains:
            given.pop()
        else:
            return False
        return True

    def answer(self, groups: tuple[str, ...]) -> JudgeAnswer:
        """The answers so far, in the form of the file."""
        contains = dict(zip(groups, self.contains, strict=True))
        statements = dict(zip(STATEMENTS, self.statements, strict=False))
        return JudgeAnswer(contains=contains, outline=self.outline if self.closed else None, **statements)


def read_answers(path: Path) -> dict[str, JudgeAnswer]:
    """The answers in a file, by image; empty without the file. Raises CleansetError for a file that is not valid."""
    return dict(validate(AnswerFile, read_content(path), path).answers) if path.exists() else {}


def as_yaml(judge: str, week: datetime.date, answers: Mapping[str, JudgeAnswer]) -> bytes:
    """The content of a file of answers, as JSON, which is YAML, too; empty without any."""
    if not answers:
        return b""
    file = AnswerFile(judge=judge, week=week, answers=dict(answers))
    return file.model_dump_json(indent=1, exclude_none=True).encode() + b"\n"
