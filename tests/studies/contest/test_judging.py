"""What a judge is asked; verdicts by the rule of Unrestricted Adversarial Examples, control images; outlines."""

import datetime
import math
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cleanset.images.outlines import Outline, as_text, check_outline, doubled_area, parse_outline
from cleanset.plumbing.validation import first_problem
from cleanset.studies.contest.judge_page.session import JudgeDraft
from cleanset.studies.contest.judging import (
    ControlImage,
    Draw,
    ImageVerdict,
    JudgeAnswer,
    control_count,
    drawn_controls,
    tasks_of_week,
    verdict,
)
from tests.properties import examples
from tests.studies.contest.made import FRIDAY, day, sha

SIDE = 100
YES, RATHER_YES, RATHER_NO, NO = "definitely_yes", "rather_yes", "rather_no", "definitely_no"


def rectangle(width: int, height: int) -> str:
    return f"0,0 {width},0 {width},{height} 0,{height}"


def answer(bird: str = YES, bicycle: str = NO, **others: Any) -> JudgeAnswer:
    """An answer that makes an image an unambiguous bird, but for what is given."""
    asked = (bird == NO) != (bicycle == NO)
    given = {"outline": rectangle(80, 80), "complete": True, "not_occluded": True, "real": True} if asked else {}
    return JudgeAnswer.model_validate({"contains": {"bird": bird, "bicycle": bicycle}} | given | others)


def test_an_unambiguous_image() -> None:
    assert verdict([answer()] * 3, SIDE, SIDE) == ImageVerdict("bird")
    assert verdict([answer(NO, YES)] * 4, SIDE, SIDE) == ImageVerdict("bicycle")
    assert verdict([answer()] * 3, SIDE, SIDE).reasons == ()


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
        (answer(real=False, complete=False), ("depiction", "truncated")),
        (answer(RATHER_YES, real=None), ("depiction", "ambiguous")),
    ],
)
def test_one_judge_rejects(other: JudgeAnswer, reasons: tuple[str, ...]) -> None:
    """In whichever order; the first reason is that of the published script."""
    for answers in permutations([answer(), answer(), other]):
        found = verdict(answers, SIDE, SIDE)
        assert found == (None, reasons)


@pytest.mark.parametrize(
    ("share", "width", "group"),
    [(0.5, 50, "bird"), (0.5, 49, None), (0.1, 10, "bird"), (0.1, 9, None), (0.0, 1, "bird"), (1.0, 100, "bird")],
)
def test_the_size_of_the_object(share: float, width: int, group: str | None) -> None:
    """At least the share of the image, exactly: 0.1 as a float is more than a tenth."""
    assert verdict([answer(outline=rectangle(width, 100))] * 3, SIDE, SIDE, share).group == group


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"contains": {"bird": YES, "bicycle": YES}, "real": True}, "real: answered, though not asked"),
        ({"contains": {"bird": NO, "bicycle": NO}, "outline": "0,0 1,0 1,1"}, "outline: answered, though not asked"),
        ({"contains": {"bird": "yes", "bicycle": NO}}, "contains.bird"),
        ({"contains": {"bird": YES, "bicycle": NO}, "date": "2026-11-07"}, "unknown key 'date'"),
    ],
)
def test_refused_answers(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        JudgeAnswer.model_validate(content)
    assert message in first_problem(caught.value)


def test_control_images() -> None:
    control = ControlImage(contains={"bird": True, "bicycle": False})
    assert control.is_met_by(answer())
    assert not control.is_met_by(answer(RATHER_YES))
    assert not control.is_met_by(answer(NO, YES))


TRIANGLE = ((0, 0), (10, 0), (0, 6))
L_SHAPE = ((2, 1), (8, 1), (8, 3), (4, 3), (4, 9), (2, 9))


@pytest.mark.parametrize(("outline", "doubled"), [(TRIANGLE, 60), (TRIANGLE[::-1], 60), (L_SHAPE, 48)])
def test_an_area_and_a_text(outline: Outline, doubled: int) -> None:
    assert doubled_area(outline) == doubled
    assert parse_outline(as_text(outline)) == outline
    assert as_text(L_SHAPE) == "2,1 8,1 8,3 4,3 4,9 2,9"


@pytest.mark.parametrize(
    "text",
    ["", "abc", "0,0 5,0 5", "0,0  5,0 5,5", " 0,0 5,0 5,5", "0,0 5,0 5,5\n", "0,0\t5,0\t5,5", "0, 0 5, 0 5, 5",
     "0,0 5,0 5,-1", "0,0 5,0 5,1.5", "0,0 5,0 05,5", "0,0 5,0 5,123456", "0,0 5,0 5,٥", None, [[0, 0], [1, 0]]],
)  # fmt: skip
def test_refused_texts(text: object) -> None:
    with pytest.raises(ValueError, match=r"^expected an outline: the corners as text, x,y of each, such as "):
        parse_outline(text)


@pytest.mark.parametrize("count", [2, 1001])
def test_too_few_and_too_many_corners(count: int) -> None:
    with pytest.raises(ValueError, match=f"an outline with {count} corners; expected 3 to 1000"):
        parse_outline(" ".join(["0,0"] * count))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([(0, 0), (4, 4), (4, 0), (0, 4)], "crosses or touches itself"),
        ([(0, 0), (4, 4), (9, 0), (9, 4), (4, 9), (0, 9), (4, 4)], "a corner twice"),
        ([(0, 0), (8, 0), (8, 8), (4, 0), (0, 8)], "crosses or touches itself"),  # a corner on another edge
        ([(0, 0), (8, 0), (4, 0), (4, 4)], "crosses or touches itself"),  # an edge that runs back
        ([(0, 0), (5, 5), (9, 9)], "an outline of no area"),
        ([(0, 0), (10, 0), (9, 9)], "the corner 10,0, outside the image of 9 x 9 pixels"),
        ([(0, 0), (9, 0), (9, 10)], "the corner 9,10, outside the image"),
        ([(0, 0), (9, 0)], "an outline with 2 corners"),
    ],
)
def test_outlines_that_are_none(points: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_outline(tuple(points), 9, 9)
    check_outline(TRIANGLE, 10, 6)


def crosses(outline: Outline) -> bool:
    """Whether edges that are not neighbors meet, by solving for the point in which their lines do."""
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


def runs_back(outline: Outline) -> bool:
    """Whether an edge turns by 180 degrees into the next."""
    for (a, b), c in zip(pairwise((*outline, outline[0])), (*outline[2:], *outline[:2]), strict=True):
        before, behind = np.subtract(b, a), np.subtract(c, b)
        if math.isclose(before @ behind, -np.hypot(*before) * np.hypot(*behind)):
            return True
    return False


POINTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=3, max_size=6, unique=True)


@given(POINTS)
@examples(300)
def test_simple_polygons_only(points: list[tuple[int, int]]) -> None:
    outline = tuple(points)
    try:
        check_outline(outline, 8, 8)
        is_accepted = True
    except ValueError:
        is_accepted = False
    assert is_accepted == (not crosses(outline) and not runs_back(outline))


@pytest.mark.parametrize(
    ("images", "share", "expected"), [(9, 0.1, 1), (10, 0.1, 2), (18, 0.1, 2), (1, 0.5, 1), (5, 0.0, 0), (0, 0.1, 0)]
)
def test_how_many_controls(images: int, share: float, expected: int) -> None:
    assert control_count(images, share) == expected


def test_the_order_is_the_judges_own_and_always_the_same() -> None:
    names = [sha(str(number)) for number in range(20)]
    week = day(FRIDAY)
    one, other = (tasks_of_week(week, names, judge, 5) for judge in ("a" * 8, "b" * 8))
    assert one == tasks_of_week(week, names[::-1], "a" * 8, 5)
    assert [each.sha256 for each in one] != [each.sha256 for each in other]
    # an added image leaves the order of the others unchanged
    more = tasks_of_week(week, [*names, sha("more")], "a" * 8, 5)
    assert [each for each in more if each.sha256 != sha("more")] == one


def test_a_control_is_asked_once() -> None:
    """What comes later changes no draw."""
    pool = frozenset(sha(str(number)) for number in range(5))
    first = Draw(day(FRIDAY), pool, 2)
    second = Draw(day(FRIDAY) + datetime.timedelta(7), pool | {sha("more")}, 4)
    found = drawn_controls([first, second], "a" * 8, 0)
    assert [len(each) for each in found.values()] == [2, 4]
    assert len({each for drawn in found.values() for each in drawn}) == 6
    assert drawn_controls([first], "a" * 8, 0)[day(FRIDAY)] == found[day(FRIDAY)]


@pytest.mark.parametrize(
    ("contains", "step"),
    [((YES, YES), "done"), ((NO, NO), "done"), ((RATHER_NO, RATHER_YES), "done"), ((RATHER_NO, NO), "outline")],
)
def test_an_outline_is_asked_where_one_group_alone_may_be_there(contains: tuple[str, str], step: str) -> None:
    assert JudgeDraft.model_validate({"image": sha("image"), "contains": list(contains)}).step(("a", "b")) == step


def test_a_draft_asks_step_by_step() -> None:
    groups = ("bicycle", "bird")
    draft = JudgeDraft(image=sha("image"))
    steps = [draft.step(groups)]
    draft.contains += ["definitely_no", "rather_yes"]
    steps.append(draft.step(groups))
    draft.corners += [(0, 0), (5, 0)]
    draft.corners.append((10, 5))
    draft.closed = True
    steps.append(draft.step(groups))
    draft.statements += [True, False, True]
    steps.append(draft.step(groups))
    assert steps == ["contains", "outline", "statement", "done"]
    found = draft.answer(groups)
    statements = {"complete": True, "not_occluded": False, "real": True}
    contains = {"bicycle": NO, "bird": RATHER_YES}
    assert found == JudgeAnswer.model_validate({"contains": contains, "outline": "0,0 5,0 10,5", **statements})
    assert JudgeDraft.of(draft.image, found, groups) == draft
    assert sum(iter(draft.take_back, False)) == 9
    assert draft == JudgeDraft(image=draft.image)
