"""What a judge has answered of one image so far, step by step, and which question comes next."""

import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from cleanset.sections import Section, Sha256
from cleanset.studies.contest.judging import STATEMENTS, Answer, Contains
from cleanset.studies.contest.outlines import MAX_POINTS, Point, check_inside, checked_outline

Step = Literal["contains", "outline", "statement", "done"]


class Draft(Section):
    """The answers to an image, in the order in which they are asked; `closed`: the outline is finished."""

    model_config = ConfigDict(frozen=False, strict=False)  # JSON has lists, no tuples

    image: Sha256
    contains: list[Contains] = Field(default_factory=list)
    corners: Annotated[list[Point], Field(max_length=MAX_POINTS)] = Field(default_factory=list)
    closed: bool = False
    statements: list[bool] = Field(default_factory=list)

    @classmethod
    def of(cls, image: str, answer: Answer, groups: tuple[str, ...]) -> "Draft":
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

    def step(self, groups: tuple[str, ...]) -> Step:
        """What is asked next."""
        if len(self.contains) < len(groups):
            return "contains"
        if self.object_of(groups) is None:
            return "done"
        if not self.closed:
            return "outline"
        return "statement" if len(self.statements) < len(STATEMENTS) else "done"

    def close_outline(self, width: int, height: int) -> None:
        """Finish the outline. Raises ValueError, and leaves it open, if it is no simple polygon inside the image."""
        check_inside(checked_outline(self.corners), width, height)
        self.closed = True

    def take_back(self) -> bool:
        """Take the last step back; False if there is none."""
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

    def answer(self, groups: tuple[str, ...], date: datetime.date) -> Answer:
        """The answers so far as they are saved."""
        return Answer.model_validate(
            {
                "date": date,
                "contains": dict(zip(groups, self.contains, strict=True)),
                "outline": self.corners if self.closed else None,
                **dict(zip(STATEMENTS, self.statements, strict=False)),
            }
        )
