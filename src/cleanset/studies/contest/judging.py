"""A judge's answers on an image, and the rule that makes several judges' answers one verdict.

A verdict has its group, or the reasons for rejection. The questions come from Unrestricted Adversarial Examples,
appendix G. The published rules of size contradict each other; each has a name here.

Outlines that judges draw are simple polygons with corners on whole pixels; their area and box are exact.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, model_validator

from cleanset.plumbing.validation import Section
from cleanset.review.agreement import Agreement, VerdictCounts, overall
from cleanset.studies.contest.rules import SIZE_RULES, Day, SizeRule

Point = tuple[int, int]
Outline = tuple[Point, ...]
"""Corners as x to the right and y down, in pixels from the top left corner; the last is joined to the first."""
MIN_POINTS = 3
MAX_CORNERS = 1000
MAX_COORDINATE = 65_535

_NUMBER = "(?:0|[1-9][0-9]{0,4})"
_OUTLINE = re.compile(f"{_NUMBER},{_NUMBER}( {_NUMBER},{_NUMBER})*")
_EXPECTED = 'expected an outline: the corners as text, x,y of each, such as "10,10 40,10 40,30", or a list of points'
_EXPECTED_POINT = f"expected x and y of each point as whole numbers from 0 to {MAX_COORDINATE:,}"


def parse_outline(points: object) -> Outline:
    """The outline in the text of a file, as `as_text` writes it, or in a list of [x, y].

    Raises ValueError unless it is a polygon that does not cross or touch itself.
    """
    from shapely import LinearRing, is_simple, linearrings

    if isinstance(points, str):
        if not _OUTLINE.fullmatch(points):
            raise ValueError(_EXPECTED)
        points = [tuple(map(int, point.split(","))) for point in points.split(" ")]
    if not isinstance(points, Sequence):
        raise ValueError(_EXPECTED)
    outline = tuple(map(_point, points))
    if not MIN_POINTS <= len(outline) <= MAX_CORNERS:
        raise ValueError(f"an outline with {len(outline)} points; expected {MIN_POINTS} to {MAX_CORNERS}")
    if len(set(outline)) < len(outline):
        raise ValueError(
            "an outline with a point twice; expected each corner once, and the last not equal to the first"
        )
    # a corner on a straight edge is allowed, one at which the outline turns back is not
    if not is_simple(linearrings(outline)):
        if not LinearRing(outline).convex_hull.area:
            raise ValueError("an outline of no area; expected corners that are not all on one line")
        raise ValueError("an outline that crosses or touches itself; expected a simple polygon: draw it again")
    return outline


def as_text(outline: Outline) -> str:
    """The corners as SVG's `points` has them: `x,y` of each, with a space between two corners."""
    return " ".join(f"{x},{y}" for x, y in outline)


def _point(point: object) -> Point:
    if isinstance(point, list | tuple) and len(point) == 2:
        x, y = point
        # not isinstance, for which True is an int
        if type(x) is type(y) is int and 0 <= x <= MAX_COORDINATE and 0 <= y <= MAX_COORDINATE:
            return x, y
    raise ValueError(_EXPECTED_POINT)


def points_outside(outline: Outline, width: int, height: int) -> list[str]:
    """The problem of each point of an outline that is neither inside an image nor on its border."""
    return [
        f"an outline with the point [{x}, {y}], outside the image of {width} x {height} pixels; "
        "expected all points inside"
        for x, y in outline
        if x > width or y > height
    ]


def doubled_area(outline: Outline) -> int:
    """Twice the area in square pixels, by the shoelace formula: a whole number."""
    return abs(sum(x * below - right * y for (x, y), (right, below) in _edges(outline)))


def box_area(outline: Outline) -> int:
    """The area of the smallest box around an outline, in square pixels."""
    xs = [x for x, _ in outline]
    ys = [y for _, y in outline]
    return (max(xs) - min(xs)) * (max(ys) - min(ys))


def filled_pixels(outline: Outline, width: int, height: int) -> NDArray[np.bool_]:
    """The pixels whose centers are inside the outline, shape (height, width)."""
    # inside: an odd number of edges to the right of a center; in half pixels a center is never on a corner's row
    centers_x = np.arange(width) * 2 + 1
    centers_y = np.arange(height) * 2 + 1
    inside = np.zeros((height, width), np.bool_)
    for (x, y), (right, below) in _edges(outline):
        if y == below:
            continue
        rows = np.flatnonzero((centers_y > 2 * min(y, below)) & (centers_y < 2 * max(y, below)))
        crossing = 2 * x + (centers_y[rows] - 2 * y) * (right - x) / (below - y)
        inside[rows] ^= centers_x[None, :] < crossing[:, None]
    return inside


def overlap(outline: Outline, mask: NDArray[np.bool_]) -> float:
    """Intersection over union of an outline's pixels and a mask of shape (height, width), 0 to 1."""
    pixels = filled_pixels(outline, mask.shape[1], mask.shape[0])
    union = int((pixels | mask).sum())
    return int((pixels & mask).sum()) / union if union else 0.0


def _edges(outline: Outline) -> list[tuple[Point, Point]]:
    return list(zip(outline, (*outline[1:], outline[0]), strict=True))


Contains = Literal["definitely_yes", "rather_yes", "rather_no", "definitely_no"]
CONTAINS: tuple[str, ...] = get_args(Contains)
RejectionReason = Literal["too_small", "depiction", "occluded", "truncated", "ambiguous"]
FAULTS: tuple[RejectionReason, ...] = get_args(RejectionReason)
"""Reasons for a rejection, in the order of the published script, which gives the first that applies."""
STATEMENTS = ("complete", "not_occluded", "real")


class JudgeAnswer(Section):
    """One judge's answers to one image.

    Outline and statements are asked only where one group is definitely absent and the other may be present; None for a
    question that was not asked or not answered.
    """

    date: Day
    contains: dict[str, Contains]
    """By the name of each group: does the image contain a member of it, or a depiction of one?"""

    outline: Annotated[Outline, BeforeValidator(parse_outline)] | None = None
    """The outline of the largest single object, which the statements are about, too."""

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


class ImageVerdict(NamedTuple):
    """A verdict of judges or the board: the group of an unambiguous image, else None and all reasons, in order."""

    group: str | None
    reasons: tuple[RejectionReason, ...] = ()

    @property
    def reason(self) -> RejectionReason | None:
        """The first reason, as in the published script; None for an unambiguous image, and without reasons."""
        return self.reasons[0] if self.reasons else None


_LARGE_ENOUGH: Mapping[str, Callable[[Outline, int], bool]] = {
    "half": lambda outline, area: doubled_area(outline) >= area,
    "quarter_box": lambda outline, area: 4 * box_area(outline) >= area,
    # strictly: the published script asks for more than (0.4 * 299) ** 2 pixels of 299 ** 2
    "box_16_percent": lambda outline, area: 100 * box_area(outline) > 16 * area,
}


def verdict(answers: Sequence[JudgeAnswer], width: int, height: int, rule: SizeRule = "half") -> ImageVerdict:
    """The verdict of several judges on an image of `width` x `height` pixels; their order does not matter.

    An image is unambiguous if all of them call it definitely one group and definitely not the other, and its largest
    object large enough, neither truncated nor occluded, and real. A question that a judge was asked and did not answer
    counts against the image. `rule`: `half`, the outline is at least half of the image (the paper);
    `quarter_box`, the smallest box is at least 25 % of it (contest_proposal.md); `box_16_percent`, every box is over
    16 % of it, and occlusion is ignored (process_tasker_data.py).

    A judge who was not asked for an outline, for example because both groups are present, makes the image ambiguous;
    the published script takes the missing outline for an area of 0 and calls the image too_small.
    """
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
    reasons = tuple(reason for reason in FAULTS if found[reason])
    return ImageVerdict(None, reasons) if reasons else ImageVerdict(answers[0].object_of)


def by_rule(answers: Sequence[JudgeAnswer], width: int, height: int) -> dict[SizeRule, ImageVerdict]:
    """The verdict on an image under each rule of size."""
    return {rule: verdict(answers, width, height, rule) for rule in SIZE_RULES}


class ControlImage(Section):
    """An image whose answers are known."""

    contains: dict[str, bool]
    """By the name of each group: is it present?"""

    mask: str | None = None
    """A PNG in base64, white where the largest object is."""

    def is_met_by(self, answer: JudgeAnswer) -> bool:
        """Whether the judge is certain of both groups, and correct."""
        expected = {name: "definitely_yes" if there else "definitely_no" for name, there in self.contains.items()}
        return dict(answer.contains) == expected


def question_counts(images: Iterable[Sequence[JudgeAnswer]], groups: Sequence[str]) -> dict[str, VerdictCounts]:
    """Numbers of judges by question: a row for each image, a column for each possible answer.

    The questions are the two groups and the three statements; judges who did not answer a question do not count.
    """
    by_image = list(images)
    found: dict[str, VerdictCounts] = {}
    for question in (*groups, *STATEMENTS):
        choices: tuple[str | bool, ...] = CONTAINS if question in groups else (True, False)
        given = [[each.contains.get(question, getattr(each, question, None)) for each in one] for one in by_image]
        counts = [[answers.count(choice) for choice in choices] for answers in given]
        found[question] = np.array(counts, np.int64).reshape(-1, len(choices))
    return found


def agreement_by_question(images: Iterable[Sequence[JudgeAnswer]], groups: Sequence[str]) -> dict[str, Agreement]:
    """Observed agreement and Fleiss' kappa of the judges, by question."""
    return {question: overall(counts) for question, counts in question_counts(images, groups).items()}
