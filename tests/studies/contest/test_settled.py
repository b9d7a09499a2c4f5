"""What cannot be won for nothing: settled shares and wins, eligibility to the end, own images, bad controls."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cleanset.errors import CleansetError
from cleanset.studies.contest.files import ContestFiles, UnpublishedFigures
from cleanset.studies.contest.judging import ControlImage
from cleanset.studies.contest.report import as_json, as_table, notes_below
from cleanset.studies.contest.rules import after
from cleanset.studies.contest.standing import DefenceStanding, history, standing
from tests.studies.contest.made import (
    BIRD,
    FINAL,
    JUDGES,
    SATURDAY,
    STAKED,
    UNSURE,
    WON,
    appeal,
    contest,
    day,
    decision,
    defence,
    first_run,
    judged,
    rules,
    run,
    sha,
    stake,
    submission,
)

LATER = "2026-12-20"
HALF, WHOLE = Fraction(1, 2), Fraction(1)


def on(files: ContestFiles, date: str, name: str = "gold/wall") -> DefenceStanding:
    (found,) = [each for each in standing(files, day(date)).defences if each.name == name]
    return found


def two_attackers(**others: Any) -> ContestFiles:
    """red's image breaks gold/wall, blue's of the same week does not; a later run gives both the other group."""
    runs = [run({"x": "bicycle", "y": "bird"}), run({"x": "bicycle", "y": "bicycle"}, date=others.pop("late"))]
    return contest([submission("red", ["x"]), submission("blue", ["y"])], judged(["x", "y"]), runs, **others)


def test_a_later_run_takes_no_share_back() -> None:
    """Settled on the day on which both images are final; a run of that day still counts."""
    assert on(two_attackers(late="2026-11-13"), LATER).shares == {"red": HALF, "blue": HALF}
    assert on(two_attackers(late=FINAL), LATER).shares == {"red": HALF, "blue": HALF}
    for date in (FINAL, LATER, WON):
        found = on(two_attackers(late="2026-11-15"), date)
        assert (found.shares, found.settled, found.broken_by) == ({"red": WHOLE}, True, ("red",))


def test_a_later_run_moves_no_break_to_an_earlier_week() -> None:
    early, late = submission("blue", ["y"]), submission("red", ["x"], "2026-11-09T12:00:00Z")
    runs = [run({"y": "bird"}), run({"y": "bird", "x": "bicycle"}, date="2026-11-14")]
    answers = judged(["y"]) + judged(["x"], date="2026-11-14", week="2026-11-13")
    files = contest([early, late], answers, [*runs, run({"y": "bicycle", "x": "bicycle"}, date="2026-11-22")])
    assert (on(files, LATER).broken_in, on(files, LATER).shares) == (day("2026-11-13"), {"red": WHOLE})
    in_time = contest([early, late], answers, [*runs, run({"y": "bicycle", "x": "bicycle"}, date="2026-11-21")])
    assert (on(in_time, LATER).broken_in, on(in_time, LATER).shares) == (day("2026-11-06"), {"blue": WHOLE})


def test_the_board_takes_no_share_back() -> None:
    """It overrules a rejection of the same week after the days for appeals: too late for a share."""
    answers = judged(["x"]) + judged({"y": UNSURE})
    for date, shares in (("2026-11-14", {"red": HALF, "blue": HALF}), ("2026-11-15", {"red": WHOLE})):
        files = contest(
            [submission("red", ["x"]), submission("blue", ["y"])], answers, decisions=[decision("y", "bird", date)]
        )
        assert on(files, LATER).shares == shares


def test_nothing_is_settled_before_a_run_over_the_whole_week() -> None:
    """A run within the week knows no later image of it."""
    runs = [run({"x": "bicycle"}, date="2026-11-05"), run({"x": "bicycle", "y": "bicycle"}, date="2026-11-20")]
    files = contest(
        [submission("red", ["x"]), submission("blue", ["y"], "2026-11-06T12:00:00Z")], judged(["x", "y"]), runs
    )
    found = on(files, FINAL)
    assert (found.shares, found.settled, found.open_until) == ({"red": WHOLE}, False, "a run over that week")
    assert on(files, "2026-11-20").shares == {"red": HALF, "blue": HALF}
    assert on(files, "2026-11-20").settled


def test_until_when_it_may_change() -> None:
    first, second = submission("red", ["x"]), submission("blue", ["y"])
    later = judged(["x"]) + judged(["y"], date="2026-11-10")
    assert on(contest([first, second], later), FINAL).open_until == "2026-11-17"
    assert on(contest([first, second], judged(["x"])), FINAL).open_until == "missing verdicts"
    table = as_table(standing(contest([first, second], later), day(FINAL)))
    assert "red 1\nopen until 2026-11-17" in list(table.columns[3].cells)


def won(**others: Any) -> ContestFiles:
    """red's image is rejected, the board confirms it, and gold/wall wins on the ninetieth day."""
    given: dict[str, Any] = {
        "runs": [run({"x": "bicycle"}), run({"x": "bicycle"}, date=WON)],
        "decisions": [decision("x", "invalid", "2027-01-20")],
    }
    return contest([submission("red", ["x"])], judged({"x": UNSURE}), **(given | others))


def test_nothing_takes_a_win_back() -> None:
    """Neither the board, which finds the image unambiguous after all, nor a later run with a mistake."""
    late = [decision("x", "invalid", "2027-01-20"), decision("x", "bird", "2027-02-05")]
    files = won(decisions=late)
    assert [on(files, date).status for date in (WON, "2027-02-05", "2027-06-01")] == ["won"] * 3
    assert standing(files, day("2027-06-01")).defenders == {"gold": 1}
    in_time = won(decisions=[late[0], decision("x", "bird", WON)])
    assert on(in_time, "2027-06-01").status == "broken"
    early = [submission("red", ["x"])]
    runs = [run({"x": "bird"}), run({"x": "bird"}, date=WON), run({"x": "bicycle"}, date="2027-02-01")]
    assert on(contest(early, judged(["x"]), runs), "2027-06-01").status == "won"


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({"correct": 0}, "abstains"),
        ({"correct": 7, "mistakes": 3, "mistakes_at_80": 1}, "accuracy"),
        ({"speed": 0.5}, "too_slow"),
    ],
)
def test_eligible_to_the_end(figures: dict[str, Any], reason: str) -> None:
    """In the run that decides a win, too; a later one mends nothing."""
    last = [run({"x": "bicycle"}, date=WON, **figures), run({"x": "bicycle"}, date="2027-02-02")]
    files = won(runs=[run({"x": "bicycle"}), *last])
    for date in (WON, "2027-03-01"):
        assert (on(files, date).status, on(files, date).reasons) == ("ineligible", (reason,))
        assert standing(files, day(date)).defenders == {}


def test_a_first_run_after_ninety_days_is_too_late() -> None:
    """Else the other defences of a batch would wait for it, or give a share back."""
    files = contest(runs=[run({}, date=WON)], first=False)
    assert (on(files, WON).status, on(files, WON).reasons) == ("ineligible", ("not_run",))


@pytest.mark.parametrize(("team", "shares"), [("gold", {}), ("red", {"red": WHOLE})])
def test_no_share_of_a_defence_of_ones_own(team: str, shares: dict[str, Fraction]) -> None:
    found = on(contest([submission(team, ["x"])], judged(["x"])), FINAL)
    assert (found.status, found.broken_by, found.shares, found.settled) == ("broken", (team,), shares, True)


@pytest.mark.parametrize(
    ("others", "shares"),
    [
        ({"defences": {"gold/wall": defence(open=False)}}, {}),
        ({"runs": [first_run(correct=0), run({"x": "bicycle"})], "first": False}, {}),
        ({"runs": [first_run(correct=8, mistakes=2), run({"x": "bicycle"})], "first": False}, {"red": WHOLE}),
    ],
)
def test_no_share_of_a_defence_that_was_never_eligible(others: dict[str, Any], shares: dict[str, Fraction]) -> None:
    found = on(contest([submission("red", ["x"])], judged(["x"]), **others), FINAL)
    assert (found.status, found.shares) == ("broken", shares)


@pytest.mark.parametrize(("staked", "shares"), [("2026-11-09", {"red": WHOLE}), (FINAL, {})])
def test_ineligible_by_a_mistake_before_the_stake(staked: str, shares: dict[str, Fraction]) -> None:
    """Of the 14th on the image of the first week counts: staked before, blue/roof was eligible for some days."""
    first, second = submission("green", ["x"]), submission("red", ["y"], f"{staked}T12:00:00Z")
    week = "2026-11-13" if staked < "2026-11-14" else "2026-11-20"
    saturday = str(day(week).replace(day=day(week).day + 1))
    runs = [
        run(dict.fromkeys(given, answer), name, date)
        for name, answer in (("gold/wall", "bird"), ("blue/roof", "bicycle"))
        for given, date in ((["x"], SATURDAY), (["x", "y"], saturday))
    ]
    files = contest(
        [first, second], judged(["x"]) + judged(["y"], date=saturday, week=week), runs,
        {"gold/wall": defence(), "blue/roof": defence()},
        stakes=[stake("gold/wall"), stake("blue/roof", date=staked, batch="second")],
    )  # fmt: skip
    found = on(files, LATER, "blue/roof")
    assert (found.status, found.reasons, found.shares) == ("broken", ("mistake_before",), shares)


LIST = sha("list")


def hidden(given: dict[str, str], date: str, correct: int, digest: str = LIST) -> Any:
    """A run of gold/wall that answers this many of the ten images of an unpublished list correctly."""
    content = {"images": 10, "correct": correct, "mistakes": 0, "mistakes_at_80": 0, "list_sha256": digest}
    return run(given, date=date).model_copy(update={"unpublished": UnpublishedFigures.model_validate(content)})


@pytest.mark.parametrize(
    ("runs", "status", "reasons"),
    [
        ([hidden({}, "2026-11-01", 9)], "staked", ()),
        ([hidden({}, "2026-11-01", 0)], "ineligible", ("abstains",)),  # as a table of the published images
        ([run({}, date="2026-11-01")], "ineligible", ("not_run",)),
        ([hidden({}, "2026-11-01", 9, sha("other"))], "ineligible", ("not_run",)),
    ],
)
def test_an_unpublished_list_decides(runs: list[Any], status: str, reasons: tuple[str, ...]) -> None:
    files = contest(runs=runs, first=False, rules=rules(unpublished=LIST))
    assert (on(files, STAKED).status, on(files, STAKED).reasons) == (status, reasons)
    assert standing(files, day(STAKED)).notes == ()


def test_who_is_found_eligible_after_it_was_settled_brings_no_share() -> None:
    """Settled without a run over the unpublished list; the first one comes a day later."""
    runs = [run({"x": "bicycle"}), hidden({"x": "bicycle"}, str(after(day(FINAL), 1)), 9)]
    files = contest([submission("red", ["x"])], judged(["x"]), runs, first=False, rules=rules(unpublished=LIST))
    for date in (FINAL, str(after(day(FINAL), 2))):
        found = on(files, date)
        assert (found.status, found.reasons, found.shares, found.settled) == ("broken", ("not_run",), {}, True)


def test_an_unpublished_list_decides_a_win() -> None:
    first = hidden({}, "2026-11-01", 9)
    for last, status in (
        (hidden({}, WON, 9), "won"), (hidden({}, WON, 0), "ineligible"), (run({}, date=WON), "awaiting")
    ):  # fmt: skip
        assert on(contest(runs=[first, last], first=False, rules=rules(unpublished=LIST)), WON).status == status


def test_what_is_not_checked_is_said_in_every_standing() -> None:
    files = contest(rules=rules(history="made_up"), runs=[run({}).model_copy(update={"confined": False})])
    for date, count in ((STAKED, 2), (FINAL, 3)):
        found = standing(files, day(date))
        assert len(found.notes) == count
        assert found.notes[0].startswith("No unpublished list decides who is eligible")
        assert found.notes[1].startswith("The history of this contest is made up")
        assert all(note in as_json(found) and note in notes_below(found) for note in found.notes)
    assert standing(files, day(FINAL)).notes[2].endswith("whatever the machine has: gold/wall.")


CONTROLS = {sha(f"control {n}"): ControlImage(contains={"bird": True, "bicycle": False}) for n in range(6)}
MASK = np.ones((100, 100), np.bool_)
NO_OVERLAP = "mean IoU 0.00 of 5 outlines with the masks; expected 0.5"
TWO_OF_THREE = "2 of 3 controls correct; expected a share of 0.7"


def with_controls(correct: int, controls: int = 5, date: str = SATURDAY, **others: Any) -> ContestFiles:
    """Image x has three judges, of whom the first answers so many controls, some of them correctly."""
    answers = judged(["x"])
    for place, sha256 in enumerate(list(CONTROLS)[:controls]):
        content = BIRD if place < correct else UNSURE
        (given,) = judged({"none": content}, JUDGES[:1], date)
        answers[0] = replace(answers[0], answers={**answers[0].answers, sha256: given.answers[sha("none")]})
    return contest([submission("red", ["x"])], answers, controls=CONTROLS, **others)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (with_controls(4), None),  # .8
        (with_controls(3), "3 of 5 controls correct; expected a share of 0.7"),
        (with_controls(0, 4), None),  # too few to tell
        (with_controls(5, masks=dict.fromkeys(CONTROLS, MASK)), None),  # IoU .81
        (with_controls(5, masks=dict.fromkeys(list(CONTROLS)[:4], ~MASK)), None),
        (with_controls(5, masks=dict.fromkeys(CONTROLS, ~MASK)), NO_OVERLAP),
        (with_controls(3, rules=rules(judges={"min_accuracy": 0.6})), None),
        (with_controls(2, 3, rules=rules(judges={"min_controls": 3})), TWO_OF_THREE),
    ],
)  # fmt: skip
def test_judges_whose_controls_are_bad_are_left_out(files: ContestFiles, problem: str | None) -> None:
    """By a rule with a number; the standing names them, and the image needs another judge."""
    found = standing(files, day(FINAL))
    assert found.left_out == ({} if problem is None else {JUDGES[0]: problem})
    state = found.images[sha("x")]
    assert (state.stage, state.judges) == (("final", 3) if problem is None else ("open", 2))
    if problem is not None:
        assert f"Judge {JUDGES[0]} is left out: {problem}." in notes_below(found)
        assert problem in as_json(found)


def test_controls_of_a_later_day_take_nothing_back() -> None:
    files = with_controls(0, date="2026-11-08")
    assert standing(files, day(LATER)).images[sha("x")].judges == 3
    assert list(standing(files, day(LATER)).left_out) == [JUDGES[0]]
    assert standing(files, day(SATURDAY)).left_out == {}


@pytest.mark.parametrize(
    ("date", "judges", "group"), [(SATURDAY, 4, None), ("2026-11-08", 3, "bird"), (FINAL, 3, "bird")]
)
def test_who_answers_when_the_others_have_answered_vetoes_nothing(date: str, judges: int, group: str | None) -> None:
    """On the day of the third answer, in whichever order, all count; later ones only if the board asks for more."""
    answers = judged(["x"]) + judged({"x": UNSURE}, JUDGES[3:4], date)
    state = standing(contest([submission("red", ["x"])], answers), day(LATER)).images[sha("x")]
    assert (state.stage, state.judges, state.valid_group) == ("final", judges, group)


def test_the_board_may_ask_for_more_judges_and_all_answers_count() -> None:
    answers = judged(["x"]) + judged({"x": UNSURE}, JUDGES[3:4], "2026-11-08") + judged(["x"], JUDGES[4:], "2026-11-12")
    for asked, found in ((5, ("final", 5, None)), (4, None)):
        files = contest(
            [submission("red", ["x"])], answers, decisions=[decision("x", judges=asked, date="2026-11-11")]
        )  # fmt: skip
        if found is None:
            with pytest.raises(CleansetError, match="judges 4; expected at least 5: 4 have answered"):
                standing(files, day(LATER))
        else:
            state = standing(files, day(LATER)).images[sha("x")]
            assert (state.stage, state.judges, state.valid_group) == found


def test_an_appeal_before_the_run_that_justifies_it() -> None:
    """Refused on every day from then on, not only before the run; so that every day's history comes out."""
    first, second = (run({"x": "bird"}, "blue/roof", SATURDAY), run({"x": "bicycle"}, "blue/roof", "2026-11-12"))
    given: dict[str, Any] = {
        "defences": {"gold/wall": defence(), "blue/roof": defence()},
        "runs": [run({"x": "bicycle"}), first, second],
    }
    early, late = (
        contest([submission("red", ["x"])], judged(["x"]), appeals=[appeal("x", "blue", date)], **given)
        for date in ("2026-11-11", "2026-11-12")
    )
    for date in ("2026-11-11", "2026-11-12", LATER):
        with pytest.raises(
            CleansetError, match="by blue on 2026-11-11: a team that may not appeal; expected one of gold"
        ):
            standing(early, day(date))
    assert standing(late, day(LATER)).images[sha("x")].stage == "appealed"
    assert [each.on for each in history(late, day(LATER))] == [day("2026-11-01"), day(STAKED), day("2026-12-20")][:2]
