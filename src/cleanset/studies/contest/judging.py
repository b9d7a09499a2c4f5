"""The judges' verdict on an image: the group that it unambiguously shows, or the reasons why it is rejected.

The questions are those of source 004, appendix G. The published rules of size contradict each other; each has a name
here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, model_validator

from cleanset.errors import CleansetError
from cleanset.review.agreement import Agreement, Counts, overall
from cleanset.studies.contest.outlines import Outline, box_area, doubled_area, parse_outline
from cleanset.studies.contest.rules import MIN_JUDGES, SIZE_RULES, Day, SizeRule
from cleanset.validation import Section

Contains = Literal["definitely_yes", "rather_yes", "rather_no", "definitely_no"]
CONTAINS: tuple[str, ...] = get_args(Contains)
RejectionReason = Literal["too_small", "depiction", "occluded", "truncated", "ambiguous"]
REASONS: tuple[RejectionReason, ...] = get_args(RejectionReason)
"""Reasons for a rejection, in the order of the published script, which gives the first that applies."""
STATEMENTS = ("complete", "not_occluded", "real")


class JudgeAnswer(Section):
    """One judge's answers to one image.

    `contains`: by the name of each group, does the image contain a member of it or a depiction of one? The others are
    asked only where one group is definitely absent and the other may be present: `outline`, of the largest single
    object, and three statements on it; None for a question that was not asked or not answered.
    """

    date: Day
    contains: dict[str, Contains]
    outline: Annotated[Outline, BeforeValidator(parse_outline)] | None = None
    complete: bool | None = None
    not_occluded: bool | None = None
    real: bool | None = None

    @model_validator(mode="after")
    def _only_what_is_asked(self) -> "JudgeAnswer":
        given = [name for name in ("outline", *STATEMENTS) if getattr(self, name) is not None]
        if given and self.object_of is None:
            raise ValueError(
                f"{given[0]}: answered, though not asked; expected it only where one group is definitely_no and the "
                "other is not: remove it"
            )
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
        return sorted(self.contains.values()) == ["definitely_no", "definitely_yes"]


@dataclass(frozen=True, slots=True)
class ImageVerdict:
    """A verdict of judges or the board: the group of an unambiguous image, else None and all reasons, in order."""

    group: str | None
    reasons: tuple[RejectionReason, ...] = ()

    @property
    def reason(self) -> RejectionReason | None:
        """The first reason, as in the published script; None for an unambiguous image, and without reasons."""
        return self.reasons[0] if self.reasons else None


def _half(outline: Outline, area: int) -> bool:
    return doubled_area(outline) >= area


def _quarter_box(outline: Outline, area: int) -> bool:
    return 4 * box_area(outline) >= area


def _box_16_percent(outline: Outline, area: int) -> bool:
    # strictly: the published script asks for more than (0.4 * 299) ** 2 pixels of 299 ** 2
    return 100 * box_area(outline) > 16 * area


_LARGE_ENOUGH: Mapping[str, Callable[[Outline, int], bool]] = {
    "half": _half,
    "quarter_box": _quarter_box,
    "box_16_percent": _box_16_percent,
}


def verdict(
    answers: Sequence[JudgeAnswer], width: int, height: int, rule: SizeRule = "half", min_judges: int = MIN_JUDGES
) -> ImageVerdict:
    """The verdict of several judges on an image of `width` x `height` pixels; their order does not matter.

    An image is unambiguous if all of them call it definitely one group and definitely not the other, and its largest
    object large enough, neither truncated nor occluded, and real. A question that a judge was asked and did not answer
    counts against the image. `rule`: `half`, the outline is at least half of the image (the paper);
    `quarter_box`, the smallest box is at least 25 % of it (contest_proposal.md); `box_16_percent`, every box is over
    16 % of it, and occlusion is ignored (process_tasker_data.py).

    A judge who was not asked for an outline, for example because both groups are present, makes the image ambiguous;
    the published script takes the missing outline for an area of 0 and calls the image too_small. Raises
    CleansetError for too few judges.
    """
    if len(answers) < min_judges:
        raise CleansetError(f"{len(answers)} judges; expected at least {min_judges}: ask another")
    asked = [answer for answer in answers if answer.object_of is not None]
    large = _LARGE_ENOUGH[rule]
    found = {
        "too_small": any(each.outline is None or not large(each.outline, width * height) for each in asked),
        "depiction": any(each.real is not True for each in asked),
        "occluded": rule != "box_16_percent" and any(each.not_occluded is not True for each in asked),
        "truncated": any(each.complete is not True for each in asked),
        "ambiguous": not all(each.is_certain for each in answers) or len({each.object_of for each in answers}) > 1,
    }
    # in the order of the published script, which reports the first one
    reasons = tuple(reason for reason in REASONS if found[reason])
    return ImageVerdict(None, reasons) if reasons else ImageVerdict(answers[0].object_of)


def by_rule(
    answers: Sequence[JudgeAnswer], width: int, height: int, min_judges: int = MIN_JUDGES
) -> dict[SizeRule, ImageVerdict]:
    """The verdict on an image under each rule of size."""
    return {rule: verdict(answers, width, height, rule, min_judges) for rule in SIZE_RULES}


class ControlImage(Section):
    """An image whose answers are known: by the name of each group, is it present?"""

    contains: dict[str, bool]

    def is_met_by(self, answer: JudgeAnswer) -> bool:
        """Whether the judge is certain of both groups, and correct."""
        expected = {name: "definitely_yes" if there else "definitely_no" for name, there in self.contains.items()}
        return dict(answer.contains) == expected


@dataclass(frozen=True, slots=True)
class ControlScore:
    """Numbers of control images that a judge has answered, and answered correctly."""

    answered: int
    correct: int

    @property
    def accuracy(self) -> float | None:
        return self.correct / self.answered if self.answered else None


def control_score(answers: Mapping[str, JudgeAnswer], controls: Mapping[str, ControlImage]) -> ControlScore:
    """Compare a judge's answers with the controls, both by the SHA-256 of the image. For organizers, not for judges."""
    answered = sorted(set(answers) & set(controls))
    return ControlScore(len(answered), sum(controls[image].is_met_by(answers[image]) for image in answered))


def question_counts(images: Iterable[Sequence[JudgeAnswer]], groups: Sequence[str]) -> dict[str, Counts]:
    """Numbers of judges by question: a row for each image, a column for each possible answer.

    The questions are the two groups and the three statements; judges who did not answer a question do not count.
    """
    rows: dict[str, list[list[int]]] = {question: [] for question in (*groups, *STATEMENTS)}
    for answers in images:
        for group in groups:
            given = [each.contains[group] for each in answers]
            rows[group].append([given.count(answer) for answer in CONTAINS])  # type: ignore[arg-type]
        for statement in STATEMENTS:
            stated = [getattr(each, statement) for each in answers]
            rows[statement].append([stated.count(True), stated.count(False)])
    return {
        question: np.array(counts, np.int64).reshape(-1, len(CONTAINS) if question in groups else 2)
        for question, counts in rows.items()
    }


def agreement_by_question(images: Iterable[Sequence[JudgeAnswer]], groups: Sequence[str]) -> dict[str, Agreement]:
    """Observed agreement and Fleiss' kappa of the judges, by question."""
    return {question: overall(counts) for question, counts in question_counts(images, groups).items()}
