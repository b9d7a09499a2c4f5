"""What each judge is asked about, and the file of answers, as people write it."""

import datetime

import pytest

from cleanset.studies.contest.judge_page.session import JudgeDraft
from cleanset.studies.contest.judging import Draw, JudgeAnswer, control_count, drawn_controls, tasks_of_week
from tests.studies.contest.made import BIRD, FRIDAY, day, sha

GROUPS = ("bicycle", "bird")


def answer(content: dict[str, object] = BIRD) -> JudgeAnswer:
    return JudgeAnswer.model_validate(content)


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


def test_a_draft_asks_step_by_step() -> None:
    draft = JudgeDraft(image=sha("image"))
    steps = [draft.step(GROUPS)]
    draft.contains += ["definitely_no", "rather_yes"]
    steps.append(draft.step(GROUPS))
    draft.corners += [(0, 0), (5, 0)]
    with pytest.raises(ValueError, match="2 corners"):
        draft.close_outline(9, 9)
    draft.corners.append((10, 5))
    with pytest.raises(ValueError, match="outside"):
        draft.close_outline(9, 9)
    draft.close_outline(10, 9)
    steps.append(draft.step(GROUPS))
    draft.statements += [True, False, True]
    steps.append(draft.step(GROUPS))
    assert steps == ["contains", "outline", "statement", "done"]
    found = draft.answer(GROUPS)
    statements = {"complete": True, "not_occluded": False, "real": True}
    assert found == answer(
        {"contains": {"bicycle": "definitely_no", "bird": "rather_yes"}, "outline": "0,0 5,0 10,5", **statements}
    )
    assert JudgeDraft.of(draft.image, found, GROUPS) == draft
    assert sum(iter(draft.take_back, False)) == 9
    assert draft == JudgeDraft(image=draft.image)
