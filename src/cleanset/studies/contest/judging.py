"""A judge's answers on an image, the rule that makes several judges' answers one verdict, and controls.

The questions and the rule come from Unrestricted Adversarial Examples, appendix G. What a judge answers counts by
images whose answers are known (controls).
"""

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Annotated, Literal, NamedTuple, Self, get_args

from pydantic import BeforeValidator, PlainSerializer, model_validator

from cleanset.images.outlines import Outline, as_text, doubled_area, parse_outline
from cleanset.plumbing.validation import Section
from cleanset.statistics.seeds import names_digest
from cleanset.studies.contest.rules import JudgingRules

Contains = Literal["definitely_yes", "rather_yes", "rather_no", "definitely_no"]
CONTAINS: tuple[Contains, ...] = get_args(Contains)
STATEMENTS = ("complete", "not_occluded", "real")
RejectionReason = Literal["too_small", "depiction", "occluded", "truncated", "ambiguous"]
REASONS: tuple[RejectionReason, ...] = get_args(RejectionReason)
"""Reasons for a rejection, in the order of the published script, which gives the first that applies."""


class JudgeAnswer(Section):
    """One judge's answers to one image: whether it contains a member of each group, or a depiction of one.

    Outline and statements are of the largest single object, asked only where one group is definitely absent and the
    other may be present; None for a question that was not asked or not answered.
    """

    contains: dict[str, Contains]
    outline: Annotated[Outline, BeforeValidator(parse_outline), PlainSerializer(as_text)] | None = None
    complete: bool | None = None
    not_occluded: bool | None = None
    real: bool | None = None

    @model_validator(mode="after")
    def _only_what_is_asked(self) -> Self:
        if self.object_of is None:
            for name in ("outline", *STATEMENTS):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}: answered, though not asked; expected only for one group: leave it out")
        return self

    @property
    def object_of(self) -> str | None:
        """The group whose largest object the judge is asked about; None if no object is asked about."""
        # an uncertain answer counts as possible: only a group that is surely absent is left out
        possible = [name for name, answer in self.contains.items() if answer != "definitely_no"]
        return possible[0] if len(possible) == 1 else None

    @property
    def is_certain(self) -> bool:
        """Whether one group is definitely present and the other definitely absent."""
        answers = [*self.contains.values()]
        return answers.count("definitely_yes") == answers.count("definitely_no") == 1


class ImageVerdict(NamedTuple):
    """A verdict of judges or the board: the group of an unambiguous image, else None and all reasons, in order.

    The published script gives the first one alone.
    """

    group: str | None
    reasons: tuple[RejectionReason, ...] = ()


@cache
def _min_doubled_area(object_share: float, width: int, height: int) -> int:
    # of the text: 0.1 as a float is slightly more than 1/10
    return math.ceil(2 * Fraction(str(object_share)) * width * height)


def verdict(answers: Sequence[JudgeAnswer], width: int, height: int, object_share: float = 0.5) -> ImageVerdict:
    """The verdict of several judges on an image of `width` x `height` pixels; their order does not matter.

    An image is unambiguous only if all of them call it definitely one group and definitely not the other, and its
    largest object at least `object_share` of the image, neither truncated nor occluded, and real. A question that a
    judge was asked and did not answer counts against the image.
    """
    least = _min_doubled_area(object_share, width, height)
    group = answers[0].object_of
    found: set[RejectionReason] = set()
    for each in answers:
        object_of = group if each is answers[0] else each.object_of
        if object_of != group or not each.is_certain:
            found.add("ambiguous")
        if object_of is None:
            continue
        if each.outline is None or doubled_area(each.outline) < least:
            found.add("too_small")
        if each.real is not True:
            found.add("depiction")
        if each.not_occluded is not True:
            found.add("occluded")
        if each.complete is not True:
            found.add("truncated")
    if found:
        return ImageVerdict(None, tuple(reason for reason in REASONS if reason in found))
    return ImageVerdict(group)


class ControlImage(Section):
    """An image whose answers are known: by the name of each group, whether it is present."""

    contains: dict[str, bool]

    def is_met_by(self, answer: JudgeAnswer) -> bool:
        """Whether the judge is certain of both groups, and correct."""
        expected = {name: "definitely_yes" if there else "definitely_no" for name, there in self.contains.items()}
        return dict(answer.contains) == expected


EDGES = ("left", "right", "top", "bottom")


class JudgeTask(NamedTuple):
    """An image that a judge is asked about in a week; the one nearest to `side` of equally large objects counts."""

    week: datetime.date
    sha256: str
    side: str


class Draw(NamedTuple):
    """What controls are drawn from when a week is published, and how many each judge gets."""

    week: datetime.date
    pool: frozenset[str]
    number: int


def drawn_controls(draws: Iterable[Draw], judge: str, seed: int) -> dict[datetime.date, list[str]]:
    """By week, the controls that are drawn for a judge; none is drawn twice."""
    found: dict[datetime.date, list[str]] = {}
    drawn = set[str]()
    for week, pool, number in draws:
        found[week] = _shuffled(pool - drawn, seed, judge, "controls")[:number]
        drawn |= {*found[week]}
    return found


def control_count(images: int, share: float) -> int:
    """The number of control images that, added to `images` submitted ones, make up at least this share of all."""
    # of the text: the float 0.1 is slightly more than 1/10, and would ask for one image too many
    exact = Fraction(str(share))
    return math.ceil(images * exact / (1 - exact))


def tasks_of_week(week: datetime.date, images: Iterable[str], judge: str, seed: int) -> list[JudgeTask]:
    """The tasks of a judge in a week, in the judge's own order."""
    order = _shuffled(images, seed, judge, str(week))
    return [JudgeTask(week, each, EDGES[names_digest(seed, judge, each)[0] % len(EDGES)]) for each in order]


def _shuffled(images: Iterable[str], seed: int, judge: str, what: str) -> list[str]:
    # by digest, not by a generator: an added image leaves the order of the others unchanged
    return sorted(images, key=lambda each: (names_digest(seed, judge, what, each), each))


@dataclass(slots=True)
class JudgeRecord:
    """The answers of a judge by the SHA-256 of the image; how many are to controls, and how many of these correct."""

    answers: dict[str, JudgeAnswer] = field(default_factory=dict)
    control_count: int = 0
    correct: int = 0

    def problem(self, rules: JudgingRules) -> str | None:
        """Why what the judge answers now does not count; None if it does."""
        controls = self.control_count
        # of the text: 0.7 as a float is slightly less than 7/10
        if controls < rules.min_controls or Fraction(self.correct, controls) >= Fraction(str(rules.min_accuracy)):
            return None
        return f"{self.correct} of {controls} controls correct; expected a share of {rules.min_accuracy:g}"
