"""Verdicts of judges: every rule of Unrestricted Adversarial Examples, control images, kappa by question; outlines."""

import math
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cleanset.plumbing.validation import first_problem
from cleanset.studies.contest.judging import (
    ControlImage,
    ImageVerdict,
    JudgeAnswer,
    Outline,
    agreement_by_question,
    as_text,
    box_area,
    by_rule,
    doubled_area,
    filled_pixels,
    overlap,
    parse_outline,
    points_outside,
    question_counts,
    verdict,
)
from tests.properties import examples

SIDE = 100
YES, RATHER_YES, RATHER_NO, NO = "definitely_yes", "rather_yes", "rather_no", "definitely_no"


def rectangle(width: int, height: int) -> list[list[int]]:
    return [[0, 0], [width, 0], [width, height], [0, height]]


def answer(bird: str = YES, bicycle: str = NO, **others: Any) -> JudgeAnswer:
    """An answer that makes an image an unambiguous bird, but for what is given."""
    asked = (bird == NO) != (bicycle == NO)
    given = {"outline": rectangle(80, 80), "complete": True, "not_occluded": True, "real": True} if asked else {}
    contains = {"bird": bird, "bicycle": bicycle}
    return JudgeAnswer.model_validate({"date": "2026-11-28", "contains": contains} | given | others)


def test_an_unambiguous_image() -> None:
    assert verdict([answer()] * 3, SIDE, SIDE) == ImageVerdict("bird")
    assert verdict([answer(NO, YES)] * 4, SIDE, SIDE) == ImageVerdict("bicycle")
    assert verdict([answer()] * 3, SIDE, SIDE).reason is None


@pytest.mark.parametrize(
    ("other", "reasons"),
    [
        (answer(RATHER_YES), ("ambiguous",)),
        (answer(YES, RATHER_NO), ("ambiguous",)),
        (answer(NO, YES), ("ambiguous",)),
        (answer(YES, YES), ("ambiguous",)),
        (answer(NO, NO), ("ambiguous",)),
        (answer(RATHER_NO), ("ambiguous",)),
        (answer(outline=rectangle(49, 100)), ("too_small",)),
        (answer(outline=None), ("too_small",)),  # a missing answer is never a yes
        (answer(complete=False), ("truncated",)),
        (answer(complete=None), ("truncated",)),
        (answer(not_occluded=False), ("occluded",)),
        (answer(not_occluded=None), ("occluded",)),
        (answer(real=False), ("depiction",)),
        (answer(real=None), ("depiction",)),
        (answer(RATHER_YES, complete=False, not_occluded=False), ("occluded", "truncated", "ambiguous")),
        (
            answer(RATHER_YES, outline=None, real=None, not_occluded=None, complete=None),
            ("too_small", "depiction", "occluded", "truncated", "ambiguous"),
        ),
    ],
)
def test_one_judge_rejects(other: JudgeAnswer, reasons: tuple[str, ...]) -> None:
    """In whatever order the judges come; of several reasons the first of the published order is the reason."""
    for order in permutations([answer(), answer(), other]):
        found = verdict(order, SIDE, SIDE)
        assert found == ImageVerdict(None, reasons)  # type: ignore[arg-type]
        assert found.reason == reasons[0]


@pytest.mark.parametrize(
    ("outlines", "half", "quarter_box", "box_16_percent"),
    [
        ([rectangle(50, 100)] * 3, True, True, True),  # exactly half
        ([rectangle(50, 100)] * 2 + [rectangle(49, 100)], False, True, True),
        ([rectangle(50, 50)] * 3, False, True, True),  # a box of exactly 25 %
        ([rectangle(90, 90)] * 2 + [rectangle(49, 51)], False, False, True),  # the smallest box of any judge
        ([rectangle(40, 40)] * 3, False, False, False),  # exactly 16 % is not over 16 %
        ([rectangle(41, 40)] * 3, False, False, True),
        ([[[0, 0], [100, 0], [0, 99]]] * 3, False, True, True),  # a triangle: a large box, a little less than half
        ([[[0, 0], [100, 0], [0, 100]]] * 3, True, True, True),
    ],
)
def test_the_three_rules_of_size(
    outlines: list[list[list[int]]], half: bool, quarter_box: bool, box_16_percent: bool
) -> None:
    found = by_rule([answer(outline=outline) for outline in outlines], SIDE, SIDE)
    assert {rule: each.group for rule, each in found.items()} == {
        "half": "bird" if half else None,
        "quarter_box": "bird" if quarter_box else None,
        "box_16_percent": "bird" if box_16_percent else None,
    }
    assert {each.reason for each in found.values()} <= {None, "too_small"}


def test_the_published_script_in_its_own_pixels() -> None:
    """Of 299 x 299 the limit is (.4 * 299)^2 = 14,304.16 pixels: 119 x 120 is less, 120 x 120 more."""
    for height, group in ((119, None), (120, "bird")):
        answers = [answer(outline=rectangle(120, height))] * 3
        assert verdict(answers, 299, 299, "box_16_percent").group == group


def test_the_published_script_ignores_occlusion() -> None:
    found = by_rule([answer(not_occluded=False)] * 3, SIDE, SIDE)
    assert [each.reason for each in found.values()] == ["occluded", "occluded", None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"contains": {"bird": "yes"}}, "contains.bird: expected 'definitely_yes', 'rather_yes', "),
        ({"outline": [[0, 0], [5, 5]]}, "outline: an outline with 2 points; expected 3 to 1000"),
        ({"outline": [[0, 0], [4, 4], [4, 0], [0, 4]]}, "outline: an outline that crosses"),
        ({"outline": [[0, 0], [4, 4], [8, 8]]}, "outline: an outline of no area"),
        ({"contains": {"bird": YES, "bicycle": YES}}, "outline: answered, though not asked"),
        ({"contains": {"bird": NO, "bicycle": NO}, "outline": None}, "complete: answered, though not asked"),
        ({"complete": "yes"}, "complete: expected a boolean"),
        ({"date": "28.11.2026"}, "date: expected a day such as"),
        ({"sure": True}, "unknown key 'sure'; expected date, contains, outline"),
    ],
)
def test_refused_answers(content: dict[str, object], message: str) -> None:
    valid = answer().model_dump() | {"date": "2026-11-28", "outline": rectangle(80, 80)}
    with pytest.raises(ValidationError) as caught:
        JudgeAnswer.model_validate(valid | content)
    assert message in first_problem(caught.value)


def test_an_outline_is_of_the_object_that_may_be_there() -> None:
    asked = [answer(YES, NO), answer(NO, RATHER_NO), answer(YES, YES), answer(NO, NO), answer(RATHER_YES, YES)]
    assert [each.object_of for each in asked] == ["bird", "bicycle", None, None, None]


def test_control_images() -> None:
    """One of each is met, one with both groups, one with neither; an unsure answer is not correct."""
    controls = [(True, False), (True, True), (False, False)]
    answers = [answer(), answer(YES, YES), answer(NO, RATHER_NO)]
    met = [
        ControlImage(contains={"bird": bird, "bicycle": bicycle}).is_met_by(each)
        for (bird, bicycle), each in zip(controls, answers, strict=True)
    ]
    assert met == [True, True, False]


def test_agreement_by_question() -> None:
    """Kappa by hand: of bird, three images of two judges; statements count for those who were asked."""
    images = [
        [answer(), answer()],
        [answer(NO, YES), answer(NO, YES, real=False)],
        [answer(), answer(RATHER_YES, real=False)],
        [answer(YES, YES), answer(YES, YES)],
    ]
    counts = question_counts(images, ("bird", "bicycle"))
    assert counts["bird"].tolist() == [[2, 0, 0, 0], [0, 0, 0, 2], [1, 1, 0, 0], [2, 0, 0, 0]]
    assert counts["real"].tolist() == [[2, 0], [1, 1], [1, 1], [0, 0]]
    assert agreement_by_question(images, ("bird", "bicycle"))["bird"].kappa is None
    # of ten images and more there is a kappa
    found = agreement_by_question([*images, *images, *images, *images], ("bird", "bicycle"))
    # bird: agreement 3 of 4; shares 5/8, 1/8, 0, 2/8: by chance (25 + 1 + 4) / 64
    assert found["bird"].agreement == 0.75
    assert found["bird"].kappa == pytest.approx((0.75 - 30 / 64) / (1 - 30 / 64))
    assert found["real"].images == 12
    assert found["real"].agreement == pytest.approx(1 / 3)
    assert found["complete"].kappa is None  # only one answer was ever given


TRIANGLE = ((0, 0), (10, 0), (0, 6))
L_SHAPE = ((2, 1), (8, 1), (8, 3), (4, 3), (4, 9), (2, 9))


@pytest.mark.parametrize(
    ("outline", "doubled", "area"), [(TRIANGLE, 60, 60), (TRIANGLE[::-1], 60, 60), (L_SHAPE, 48, 48)]
)
def test_area_and_box(outline: Outline, doubled: int, area: int) -> None:
    assert (doubled_area(outline), box_area(outline)) == (doubled, area)
    assert parse_outline([list(point) for point in outline]) == outline


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0, 0], [5, 5]], "an outline with 2 points; expected 3 to 1000"),
        ([[0, 0]] * 1001, "an outline with 1001 points"),
        ([[0, 0], [4, 4], [4, 0], [0, 4]], "crosses or touches itself"),
        ([[0, 0], [4, 4], [9, 0], [9, 4], [4, 9], [0, 9], [4, 4]], "a point twice"),
        ([[0, 0], [8, 0], [8, 8], [4, 0], [0, 8]], "crosses or touches itself"),  # a corner on another edge
        ([[0, 0], [8, 0], [4, 0], [4, 4]], "crosses or touches itself"),  # an edge that runs back
        ([[4, 4], [0, 0], [8, 0], [2, 0]], "crosses or touches itself"),
        ([[0, 0], [5, 5], [10, 10]], "an outline of no area"),
        ([[0, 0], [10, 10], [5, 5], [3, 3]], "an outline of no area"),
        ([[0, 0], [5, 0], [5, -1]], "x and y of each point as whole numbers from 0 to 65,535"),
        ([[0, 0], [5, 0], [5, 65_536]], "whole numbers from 0"),
        ([[0, 0], [5, 0], [5, 1.5]], "whole numbers from 0"),
        ([[0, 0], [5, 0], [5, True]], "whole numbers from 0"),
        ([[0, 0], [5, 0], [5]], "whole numbers from 0"),
        ([[0, 0], [5, 0], "ab"], "whole numbers from 0"),
        ("0,0 5,5", "an outline with 2 points; expected 3 to 1000"),
        (" ".join(["0,0"] * 1001), "an outline with 1001 points"),
        ("0,0 4,4 4,0 0,4", "crosses or touches itself"),
        ("0,0 5,0 5,65536", "whole numbers from 0 to 65,535"),
        (None, "expected an outline: the corners as text"),
    ],
)
def test_refused(points: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_outline(points)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "0,0 5,0 5",
        "0,0  5,0 5,5",
        " 0,0 5,0 5,5",
        "0,0 5,0 5,5\n",
        "0,0\t5,0\t5,5",
        "0, 0 5, 0 5, 5",
        "0,0 5,0 5,-1",
        "0,0 5,0 5,1.5",
        "0,0 5,0 05,5",
        "0,0 5,0 5,123456",
        "0,0 5,0 5,٥",
    ],
)
def test_refused_texts(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected an outline: the corners as text, x,y of each, such as "):
        parse_outline(text)


def test_as_text() -> None:
    assert as_text(L_SHAPE) == "2,1 8,1 8,3 4,3 4,9 2,9"
    assert parse_outline("2,1 8,1 8,3 4,3 4,9 2,9") == L_SHAPE
    assert parse_outline("0,65535 65535,0 65535,65535") == ((0, 65535), (65535, 0), (65535, 65535))


def test_outside_the_image() -> None:
    assert points_outside(TRIANGLE, 10, 6) == []
    (wide,), (high,) = points_outside(TRIANGLE, 9, 6), points_outside(TRIANGLE, 10, 5)
    assert wide == "an outline with the point [10, 0], outside the image of 9 x 6 pixels; expected all points inside"
    assert "the point [0, 6], outside the image of 10 x 5 pixels" in high


def winding(outline: Outline, x: float, y: float) -> int:
    """How often an outline turns around a point."""
    angles = [math.atan2(below - y, right - x) for right, below in (*outline, outline[0])]
    turns = [(b - a + math.pi) % (2 * math.pi) - math.pi for a, b in pairwise(angles)]
    return round(sum(turns) / (2 * math.pi))


def crosses(outline: Outline) -> bool:
    """Whether edges that are no neighbors meet, by solving for the point in which their lines do."""
    count = len(outline)
    for i in range(count):
        for j in range(i + 2, count - (i == 0)):
            a, b, c, d = (np.array(outline[k % count], float) for k in (i, i + 1, j, j + 1))
            matrix = np.column_stack([b - a, c - d])
            if abs(np.linalg.det(matrix)) < 1e-9:
                ends = [(c, a, b), (d, a, b), (a, c, d), (b, c, d)]
                if any(abs(np.hypot(*(p - q)) + np.hypot(*(p - r)) - np.hypot(*(q - r))) < 1e-9 for p, q, r in ends):
                    return True
                continue
            s, t = np.linalg.solve(matrix, c - a)
            if -1e-9 <= s <= 1 + 1e-9 and -1e-9 <= t <= 1 + 1e-9:
                return True
    return False


POINTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=3, max_size=6, unique=True)


def runs_back(outline: Outline) -> bool:
    """Whether an edge turns by 180 degrees into the next."""
    for a, b, c in zip(outline, outline[1:] + outline[:1], outline[2:] + outline[:2], strict=True):
        before, behind = np.subtract(b, a), np.subtract(c, b)
        if math.isclose(before @ behind, -np.hypot(*before) * np.hypot(*behind)):
            return True
    return False


def accepted(points: Outline) -> bool:
    try:
        return parse_outline(points) == parse_outline(as_text(points)) == points
    except ValueError:
        return False


@given(POINTS)
@examples(300)
def test_simple_polygons_only(points: list[tuple[int, int]]) -> None:
    outline = tuple(points)
    assert accepted(outline) == (not crosses(outline) and not runs_back(outline))
    if accepted(outline):
        inside = filled_pixels(outline, 8, 8)
        for x, y in product(range(8), range(8)):
            if not on_edge(outline, x + 0.5, y + 0.5):
                assert inside[y, x] == (winding(outline, x + 0.5, y + 0.5) != 0)


def on_edge(outline: Outline, x: float, y: float) -> bool:
    edges = zip(outline, (*outline[1:], outline[0]), strict=True)
    return any(math.isclose(math.dist((x, y), a) + math.dist((x, y), b), math.dist(a, b)) for a, b in edges)


def test_the_overlap_with_a_mask() -> None:
    mask = np.zeros((10, 10), np.bool_)
    mask[0:4, 0:4] = True
    square = ((2, 0), (6, 0), (6, 4), (2, 4))
    assert filled_pixels(square, 10, 10).sum() == 16
    assert overlap(square, mask) == 8 / 24
    assert overlap(((0, 0), (4, 0), (4, 4), (0, 4)), mask) == 1
    assert overlap(((5, 5), (9, 5), (9, 9)), mask) == 0
