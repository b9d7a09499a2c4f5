"""Verdicts of judges: every rule of source 004, where its texts differ, control images, kappa by question."""

from itertools import permutations
from typing import Any

import pytest
from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.studies.contest.judging import (
    ControlImage,
    ControlScore,
    ImageVerdict,
    JudgeAnswer,
    agreement_by_question,
    by_rule,
    control_score,
    question_counts,
    verdict,
)
from cleanset.validation import first_problem

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


def test_too_few_judges() -> None:
    with pytest.raises(CleansetError, match="2 judges; expected at least 3: ask another"):
        verdict([answer()] * 2, SIDE, SIDE)
    with pytest.raises(CleansetError, match="4 judges; expected at least 5"):
        verdict([answer()] * 4, SIDE, SIDE, min_judges=5)


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
    controls = {
        "a": ControlImage(contains={"bird": True, "bicycle": False}),
        "b": ControlImage(contains={"bird": True, "bicycle": True}),
        "c": ControlImage(contains={"bird": False, "bicycle": False}),
        "d": ControlImage(contains={"bird": False, "bicycle": True}),
    }
    answers = {"a": answer(), "b": answer(YES, YES), "c": answer(NO, RATHER_NO), "x": answer()}
    assert control_score(answers, controls) == ControlScore(3, 2)
    assert control_score(answers, controls).accuracy == 2 / 3
    assert control_score({"x": answer()}, controls).accuracy is None


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
    found = agreement_by_question(images, ("bird", "bicycle"))
    # bird: agreement 3 of 4; shares 5/8, 1/8, 0, 2/8: by chance (25 + 1 + 4) / 64
    assert found["bird"].agreement == 0.75
    assert found["bird"].kappa == pytest.approx((0.75 - 30 / 64) / (1 - 30 / 64))
    assert found["real"].images == 3
    assert found["real"].agreement == pytest.approx(1 / 3)
    assert found["complete"].kappa is None  # only one answer was ever given
