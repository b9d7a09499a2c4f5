"""Who is eligible, staked, broken and won; shares of both sides; appeals, the board, judges who are left out."""

import io
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from rich.console import Console

from cleanset.errors import CleansetError
from cleanset.studies.contest.log import Log
from cleanset.studies.contest.report import as_json, as_text, notes_below
from cleanset.studies.contest.rules import week_of_day
from tests.studies.contest.made import (
    BIRD,
    FINAL,
    FRIDAY,
    JUDGES,
    LATER,
    SATURDAY,
    SECOND_FRIDAY,
    SECOND_SATURDAY,
    STAKED,
    UNSURE,
    WON,
    Entry,
    appeal,
    contest,
    course,
    day,
    decision,
    defence,
    judged,
    on,
    run,
    sha,
    stake,
    standing,
    statuses,
    submission,
)

WHOLE, HALF, THIRD = Fraction(1), Fraction(1, 2), Fraction(1, 3)
BROKEN = contest([submission("red", ["x"])], judged(["x"]))


def first_run(name: str = "gold/wall", speed: float = 100, **figures: int) -> Entry:
    """The run before there is any image, from which it is seen who is eligible."""
    return run({}, name, "2026-11-01", speed, **figures)


@pytest.mark.parametrize(
    ("date", "friday"), [(FRIDAY, FRIDAY), (SATURDAY, SECOND_FRIDAY), ("2026-10-31", FRIDAY), (STAKED, FRIDAY)]
)
def test_weeks_end_on_friday(date: str, friday: str) -> None:
    assert week_of_day(day(date)) == day(friday)


def test_a_valid_image_breaks_a_defence() -> None:
    """Once the days for appeals are over; in the week in which it was submitted."""
    assert statuses(BROKEN, "2026-11-01", STAKED, "2026-11-13", FINAL, WON) == [
        "eligible", "staked", "staked", "broken", "broken",
    ]  # fmt: skip
    found = on(BROKEN, FINAL)
    assert (found.broken_in, found.broken_by) == (day(FRIDAY), ("red",))
    assert found.shares == {"red": 1}
    assert standing(BROKEN, FINAL).attackers == {"red": 1}
    assert course(BROKEN, FINAL).final_on == day(FINAL)


@pytest.mark.parametrize("given", ["bird", "abstain"])
def test_the_correct_group_and_abstaining_break_nothing(given: str) -> None:
    files = contest([submission("red", ["x"])], judged(["x"]), [run({"x": given})])
    assert on(files, FINAL).status == "staked"


@pytest.mark.parametrize("content", [UNSURE, BIRD | {"real": False}, BIRD | {"outline": None}])
def test_an_invalid_image_breaks_nothing(content: dict[str, Any]) -> None:
    files = contest([submission("red", ["x"])], judged({"x": content}))
    assert on(files, WON).status == "awaiting"
    assert course(files, WON).verdict.reasons  # type: ignore[union-attr]


def test_an_image_is_not_published_before_its_week_ends() -> None:
    assert standing(BROKEN, "2026-11-05").contest.images == {}
    assert course(BROKEN, FRIDAY).stage == "open"
    assert course(BROKEN, SATURDAY).stage == "judged"


def test_two_judges_are_too_few() -> None:
    """Though one sends the same answers twice."""
    files = contest([submission("red", ["x"])], judged(["x"], [*JUDGES[:2], JUDGES[0]]))
    assert course(files, WON).stage == "open"
    assert on(files, WON).waits_for == ("verdicts", "last_run")


def test_an_image_aimed_at_another_defence_breaks_too() -> None:
    files = contest(
        [submission("red", ["x"], target="blue/roof")],
        judged(["x"]),
        [run({"x": "bird"}, "blue/roof"), run({"x": "bicycle"})],
        [defence(), defence("blue/roof")],
        stakes=[stake("gold/wall", "blue/roof")],
    )
    assert [each.status for each in standing(files, FINAL).defences] == ["staked", "broken"]


def breaking(teams: Sequence[str], later: Sequence[str] = ()) -> Log:
    """Each of the teams breaks gold/wall with an image of its own in the first week, the later ones in the second."""
    first = [submission(team, [team]) for team in teams]
    second = [submission(team, [team], SECOND_FRIDAY) for team in later]
    return contest([*first, *second], judged(teams) + judged(later, JUDGES[:3], SECOND_SATURDAY, SECOND_FRIDAY))


@pytest.mark.parametrize(
    ("teams", "later", "shares"),
    [
        (["red", "green", "blue"], [], {"red": THIRD, "green": THIRD, "blue": THIRD}),
        (["red"], ["green"], {"red": 1}),  # the second week comes too late
        (["red", "staff"], [], {"red": 1}),  # organizers have no share
        (["red", "green", "union"], [], {"red": HALF, "green": HALF}),  # nor has a team of the board
        (["staff"], ["red"], {}),  # it was broken in the first week, whoever did
    ],
)
def test_attackers_share(teams: list[str], later: list[str], shares: dict[str, Fraction]) -> None:
    found = on(breaking(teams, later), WON)
    assert (found.status, found.broken_by, found.shares) == ("broken", tuple(sorted(teams)), shares)
    assert found.settled
    assert standing(breaking(teams, later), WON).attackers == dict(sorted(shares.items()))


def test_two_images_of_a_team_are_one_share() -> None:
    files = contest([submission("red", ["x", "y"]), submission("blue", ["z"])], judged(["x", "y", "z"]))
    assert on(files, FINAL).shares == {"red": HALF, "blue": HALF}


def test_shares_are_settled_when_nothing_of_the_week_is_open() -> None:
    files = contest([submission("red", ["x"]), submission("blue", ["y"])], judged(["x"]))
    assert on(files, FINAL).shares == {"red": 1}
    assert not on(files, FINAL).settled
    assert standing(files, FINAL).attackers == {}


def winning(**changed: Any) -> Log:
    """One image aimed at gold/wall in vain: rejected, confirmed by the board; all is run again on day 90."""
    given: dict[str, Any] = {
        "submissions": [submission("red", ["x"])],
        "answers": judged({"x": UNSURE}),
        "runs": [run({"x": "bicycle"}), run({"x": "bicycle"}, date=WON)],
        "decisions": [decision("x", "invalid", "2027-01-20")],
    }
    return contest(**(given | changed))


def test_ninety_days_without_a_break_win() -> None:
    files = winning()
    assert statuses(files, "2027-01-30", WON) == ["staked", "won"]  # 89 and 90 days
    assert standing(files, WON).defenders == {"gold": 1}
    assert standing(files, "2027-01-30").defenders == {}


@pytest.mark.parametrize(
    ("changed", "waits_for"),
    [
        ({"decisions": []}, ("confirmations",)),
        ({"runs": [run({"x": "bicycle"}), run({"x": "bicycle"}, date="2027-01-30")]}, ("last_run",)),
        ({"answers": []}, ("verdicts",)),
    ],
)
def test_what_a_defence_waits_for(changed: dict[str, Any], waits_for: tuple[str, ...]) -> None:
    if "answers" in changed:
        changed = changed | {"decisions": []}
    found = on(winning(**changed), WON)
    assert (found.status, found.waits_for) == ("awaiting", waits_for)


def test_an_image_not_published_yet_is_waited_for() -> None:
    files = winning(
        submissions=[submission("red", ["x"]), submission("blue", ["y"], "2027-01-30")],
        runs=[run({"x": "bicycle"}), run({"x": "bicycle"}, date=WON)],
    )
    assert on(files, WON).waits_for == ("publication",)


@pytest.mark.parametrize(("date", "status"), [("2027-01-30", "broken"), ("2027-01-31", "won")])
def test_the_ninetieth_day_is_the_last_that_counts(date: str, status: str) -> None:
    """Day 89 after the stake is still within the 90 days."""
    files = contest(
        [submission("red", ["x"], date)],
        judged(["x"], date="2027-02-06", week="2027-02-05"),
        [run({"x": "bicycle"}, date="2027-02-20")],
    )
    assert on(files, "2027-02-21").status == status


def test_a_last_run_that_answers_otherwise_breaks() -> None:
    """As of a defence that draws its answers: one mistake in any run is enough."""
    runs = [run({"x": "abstain"}), run({"x": "bicycle"}, date=WON)]
    files = contest([submission("red", ["x"])], judged(["x"]), runs)
    assert statuses(files, "2027-01-30", WON) == ["staked", "broken"]


def test_a_closed_defence_cannot_win() -> None:
    files = winning(defences=[defence(open=False)])
    found = on(files, WON)
    assert (found.status, found.reasons) == ("ineligible", ("closed",))
    assert standing(files, WON).defenders == {}


@pytest.mark.parametrize(
    ("runs", "reasons"),
    [
        ([], ("not_run",)),
        ([first_run(correct=7)], ("abstains",)),
        ([first_run(correct=7, mistakes=3)], ("accuracy",)),
        ([first_run(speed=0.99)], ("too_slow",)),
        ([first_run(speed=1)], ()),
        ([first_run(correct=8, mistakes=2)], ()),
        ([first_run(correct=7, speed=0), run({}, date=STAKED)], ("abstains", "too_slow")),  # the first run counts
    ],
)
def test_who_is_eligible(runs: list[Entry], reasons: tuple[str, ...]) -> None:
    found = on(contest(runs=runs, stakes=[], first=False), STAKED)
    assert (found.reasons, found.status) == (reasons, "ineligible" if reasons else "eligible")


def later_stake(given: str) -> Log:
    """blue/roof is staked a week after the image that it answers was submitted."""
    return contest(
        [submission("red", ["x"])],
        judged(["x"]),
        [run({"x": "bird"}), run({"x": given}, "blue/roof")],
        [defence(), defence("blue/roof")],
        stakes=[stake("gold/wall"), stake("blue/roof", date="2026-11-20", batch="second")],
    )


def test_a_mistake_on_an_earlier_image() -> None:
    """Keeps a defence from being eligible, staked or not; it does not break it."""
    found = [on(later_stake("bicycle"), date, "blue/roof") for date in (FINAL, "2026-11-20", "2027-03-01")]
    assert [(each.status, each.reasons) for each in found] == [("ineligible", ("mistake_before",))] * 3
    assert on(later_stake("abstain"), "2026-11-20", "blue/roof").status == "staked"


OTHERS = ("bird", "abstain", "bicycle")
"""What the defences of a batch answer to an image that is rejected."""


def batch(broken: int, organizers: Sequence[str] = (), missing: str = "") -> Log:
    """Three defences in one batch, of gold, green and blue, the first ones broken."""
    names = ["gold/wall", "green/hedge", "blue/roof"]
    runs = [
        run({"x": "bicycle" if place < broken else "bird", "y": OTHERS[place]}, name, date)
        for place, name in enumerate(names)
        for date in (SATURDAY, WON)
        if (name, date) != (missing, WON)
    ]
    return contest(
        [submission("red", ["x", "y"])], judged({"x": BIRD, "y": UNSURE}), runs, [defence(each) for each in names],
        stakes=[stake(*names)], rules={"organizers": list(organizers)}, decisions=[decision("y", "invalid")],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "shares"),
    [
        (batch(0), {"blue": THIRD, "gold": THIRD, "green": THIRD}),
        (batch(1), {"blue": HALF, "green": HALF}),
        (batch(2), {"blue": 1}),
        (batch(3), {}),
        (batch(1, ["green"]), {"blue": 1}),  # an organizer's defence has none
    ],
)
def test_a_batch_shares(files: Log, shares: dict[str, Fraction]) -> None:
    assert standing(files, WON).defenders == shares


def test_nothing_is_shared_while_one_of_the_batch_may_still_win() -> None:
    later = batch(1, missing="blue/roof")
    assert [each.status for each in standing(later, WON).defences] == ["awaiting", "broken", "won"]
    assert standing(later, WON).defenders == {}


def test_an_appeal_holds_the_verdict_until_it_is_decided() -> None:
    waiting = contest([submission("red", ["x"])], judged(["x"]), appeals=[appeal("x", "gold")])
    assert statuses(waiting, FINAL, "2027-01-01") == ["staked", "staked"]
    assert course(waiting, FINAL).stage == "appealed"


@pytest.mark.parametrize(("verdict", "status"), [("bird", "broken"), ("invalid", "staked"), ("bicycle", "staked")])
def test_the_board_decides_an_appeal(verdict: str, status: str) -> None:
    """Others than ada have a conflict or not; a picture of the group that the defence gives breaks nothing."""
    decisions = [decision("x", verdict, "2026-11-20", recused=["eve"])]
    files = contest([submission("red", ["x"])], judged(["x"]), appeals=[appeal("x", "gold")], decisions=decisions)
    assert statuses(files, "2026-11-19", "2026-11-20") == ["staked", status]
    assert course(files, "2026-11-20").by_board


@pytest.mark.parametrize(("last", "status"), [(BIRD, "broken"), (UNSURE, "staked")])
def test_more_judges_decide_an_appeal(last: dict[str, Any], status: str) -> None:
    answers = judged(["x"]) + judged(["x"], JUDGES[3:4], "2026-11-21") + judged({"x": last}, JUDGES[4:], "2026-11-22")
    files = contest(
        [submission("red", ["x"])], answers, appeals=[appeal("x", "gold")],
        decisions=[decision("x", None, "2026-11-20", judges=5)],
    )  # fmt: skip
    assert statuses(files, "2026-11-21", "2026-11-22") == ["staked", status]


def test_an_attacker_appeals() -> None:
    files = contest(
        [submission("red", ["x"])], judged({"x": UNSURE}),
        appeals=[appeal("x", "red")], decisions=[decision("x", "bird", "2026-11-20")],
    )  # fmt: skip
    assert statuses(files, "2026-11-19", "2026-11-20") == ["staked", "broken"]


@pytest.mark.parametrize(
    ("team", "date", "content", "message"),
    [
        ("blue", "2026-11-09", BIRD, "may not appeal; expected gold"),
        ("red", "2026-11-09", BIRD, "may not appeal; expected gold"),  # nothing to win for red
        ("gold", "2026-11-09", UNSURE, "may not appeal; expected red"),
        ("gold", "2026-11-15", BIRD, "no time for appeals; expected 7 days after the judges' verdict: ask the board"),
    ],
)
def test_refused_appeals(team: str, date: str, content: dict[str, Any], message: str) -> None:
    files = contest([submission("red", ["x"])], judged({"x": content}), appeals=[appeal("x", team, date)])
    with pytest.raises(CleansetError, match=message):
        standing(files, "2026-12-01")
    assert standing(files, "2026-11-08")  # on an earlier day there is no appeal


def test_an_appeal_on_the_last_day_counts() -> None:
    files = contest([submission("red", ["x"])], judged(["x"]), appeals=[appeal("x", "gold", FINAL)])
    assert on(files, FINAL).status == "staked"


def test_the_board_overrules_a_rejection_at_any_time() -> None:
    """As when it looks at every rejected image before a defence wins."""
    files = winning(decisions=[decision("x", "bird", "2027-01-20")])
    assert statuses(files, "2027-01-19", "2027-01-20", WON) == ["staked", "broken", "broken"]


def test_the_board_never_takes_back_a_break() -> None:
    files = contest([submission("red", ["x"])], judged(["x"]), decisions=[decision("x", "invalid", "2026-11-15")])
    assert on(files, FINAL).status == "broken"
    with pytest.raises(CleansetError, match="invalid, but the image is finally bird since 2026-11-14"):
        standing(files, "2026-11-15")


def test_the_order_of_reasons_and_of_images() -> None:
    files = contest(
        [submission("red", ["y"], "2026-11-03"), submission("blue", ["x"])],
        judged({"x": BIRD | {"real": False, "complete": False}, "y": UNSURE}),
    )
    images = standing(files, FINAL).contest.images
    assert list(images) == [sha("x"), sha("y")]
    assert [each.verdict.reasons[0] for each in images.values() if each.verdict] == ["depiction", "ambiguous"]


def two_attackers(**others: Any) -> Log:
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
    early, late = submission("blue", ["y"]), submission("red", ["x"], "2026-11-09")
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


def test_until_when_it_may_change() -> None:
    first, second = submission("red", ["x"]), submission("blue", ["y"])
    later = judged(["x"]) + judged(["y"], date="2026-11-10")
    assert on(contest([first, second], later), FINAL).open_until == "2026-11-17"
    assert on(contest([first, second], judged(["x"])), FINAL).open_until == "verdicts are missing"
    table = printed(contest([first, second], later), FINAL)
    assert [line.rpartition("  ")[2] for line in table[3:5]] == ["red 1", "open: 2026-11-17"]


def won(**others: Any) -> Log:
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
    assert standing(files, "2027-06-01").defenders == {"gold": 1}
    in_time = won(decisions=[late[0], decision("x", "bird", WON)])
    assert on(in_time, "2027-06-01").status == "broken"
    early = [submission("red", ["x"])]
    runs = [run({"x": "bird"}), run({"x": "bird"}, date=WON), run({"x": "bicycle"}, date="2027-02-01")]
    assert on(contest(early, judged(["x"]), runs), "2027-06-01").status == "won"


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({"correct": 0}, "abstains"),
        ({"correct": 7, "mistakes": 3}, "accuracy"),
        ({"speed": 0.5}, "too_slow"),
    ],
)
def test_eligible_to_the_end(figures: dict[str, Any], reason: str) -> None:
    """In the run that decides a win, too; a later one mends nothing."""
    last = [run({"x": "bicycle"}, date=WON, **figures), run({"x": "bicycle"}, date="2027-02-02")]
    files = won(runs=[run({"x": "bicycle"}), *last])
    for date in (WON, "2027-03-01"):
        assert (on(files, date).status, on(files, date).reasons) == ("ineligible", (reason,))
        assert standing(files, date).defenders == {}


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
        ({"defences": [defence(open=False)]}, {}),
        ({"runs": [first_run(correct=0), run({"x": "bicycle"})], "first": False}, {}),
        ({"runs": [first_run(correct=8, mistakes=2), run({"x": "bicycle"})], "first": False}, {"red": WHOLE}),
    ],
)
def test_no_share_of_a_defence_that_was_never_eligible(others: dict[str, Any], shares: dict[str, Fraction]) -> None:
    found = on(contest([submission("red", ["x"])], judged(["x"]), **others), FINAL)
    assert (found.status, found.shares) == ("broken", shares)


@pytest.mark.parametrize(("staked", "shares"), [("2026-11-09", {"red": WHOLE}), (FINAL, {})])
def test_ineligible_by_a_mistake_before_the_stake(staked: str, shares: dict[str, Fraction]) -> None:
    """The image of the first week counts from the 14th: staked before, blue/roof was eligible for some days."""
    first, second = submission("green", ["x"]), submission("red", ["y"], staked)
    week = "2026-11-13" if staked < "2026-11-14" else "2026-11-20"
    saturday = str(day(week).replace(day=day(week).day + 1))
    runs = [
        run(dict.fromkeys(given, answer), name, date)
        for name, answer in (("gold/wall", "bird"), ("blue/roof", "bicycle"))
        for given, date in ((["x"], SATURDAY), (["x", "y"], saturday))
    ]
    files = contest(
        [first, second], judged(["x"]) + judged(["y"], date=saturday, week=week), runs,
        [defence(), defence("blue/roof")],
        stakes=[stake("gold/wall"), stake("blue/roof", date=staked, batch="second")],
    )  # fmt: skip
    found = on(files, LATER, "blue/roof")
    assert (found.status, found.reasons, found.shares) == ("broken", ("mistake_before",), shares)


LIST = sha("list")


def hidden(given: dict[str, str], date: str, *, eligible: bool) -> Entry:
    """A run of gold/wall, and what it comes to on an unpublished list."""
    return run(given, date=date, unpublished=eligible)


@pytest.mark.parametrize(
    ("eligible", "status", "reasons"), [(True, "staked", ()), (False, "ineligible", ("unpublished_list",))]
)
def test_an_unpublished_list_decides(eligible: bool, status: str, reasons: tuple[str, ...]) -> None:
    files = contest(runs=[hidden({}, "2026-11-01", eligible=eligible)], first=False, rules={"unpublished": LIST})
    assert (on(files, STAKED).status, on(files, STAKED).reasons) == (status, reasons)
    assert len(standing(files, STAKED).notes) == 1


def test_an_unpublished_list_decides_a_win() -> None:
    first = hidden({}, "2026-11-01", eligible=True)
    for eligible, status in ((True, "won"), (False, "ineligible")):
        runs = [first, hidden({}, WON, eligible=eligible)]
        assert on(contest(runs=runs, first=False, rules={"unpublished": LIST}), WON).status == status


def test_what_is_not_checked_is_reported_in_every_standing() -> None:
    found = standing(contest(), STAKED)
    assert found.notes[0].startswith("No unpublished list decides who is eligible")
    assert found.notes[1].startswith("This contest is made up")
    assert all(note in as_json(found) and note in notes_below(found) for note in found.notes)


CONTROLS = [sha(f"control {n}") for n in range(20)]
HALF_CONTROLS: dict[str, Any] = {"controls": 0.5}


def with_controls(correct: int, count: int = 5, date: str = SATURDAY, **judges: Any) -> Log:
    """As many images of red as controls; the first judge answers only some correctly."""
    names = [f"x{number}" for number in range(count)]
    ruled = {"judges": HALF_CONTROLS | judges}
    known = {sha: {"contains": {"bird": True, "bicycle": False}} for sha in CONTROLS}
    begun = [Entry("2026-11-01", "controls", {"controls": known})]
    weekly = [run(dict.fromkeys(names, "bicycle"))]
    drawn = standing(contest([submission("red", names)], runs=weekly, rules=ruled, begun=begun), FRIDAY).contest.drawn
    answers = []
    for place, entry in enumerate(judged(names, date=date)):
        wrong = count - correct if place == 0 else 0
        mine = drawn(JUDGES[place])[day(FRIDAY)]
        given = {sha: UNSURE if number < wrong else BIRD for number, sha in enumerate(mine)}
        answers.append(entry._replace(data={**entry.data, "answers": {**entry.data["answers"], **given}}))
    return contest([submission("red", names)], answers, weekly, rules=ruled, begun=begun)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (with_controls(4), None),  # .8
        (with_controls(3), "3 of 5 controls correct; expected a share of 0.7"),
        (with_controls(0, 4), None),  # too few to tell
        (with_controls(3, min_accuracy=0.6), None),
        (with_controls(2, 3, min_controls=3), "2 of 3 controls correct; expected a share of 0.7"),
    ],
)
def test_judges_whose_controls_are_bad_are_left_out(files: Log, problem: str | None) -> None:
    """By a rule with a number; the standing names them, and the image needs another judge."""
    found = standing(files, FINAL)
    assert found.left_out == ({} if problem is None else {JUDGES[0]: problem})
    image = course(files, FINAL, "x0")
    assert (image.stage, len(image.settling)) == (("final", 3) if problem is None else ("open", 2))
    if problem is not None:
        assert f"Judge {JUDGES[0]} is left out: {problem}." in notes_below(found)
        assert problem in as_json(found)


@pytest.mark.parametrize("date", [SATURDAY, "2026-11-08", FINAL])
def test_who_answers_after_three_judges_overturns_nothing(date: str) -> None:
    """Also on the evening of the third answer: the order is that of the lines. A fourth judge has read the others."""
    answers = judged(["x"]) + judged({"x": UNSURE}, JUDGES[3:4], date)
    image = course(contest([submission("red", ["x"])], answers), LATER)
    assert (image.stage, len(image.settling), image.valid_group) == ("final", 3, "bird")


def test_the_board_may_ask_for_more_judges_and_all_answers_count() -> None:
    answers = judged(["x"]) + judged({"x": UNSURE}, JUDGES[3:4], "2026-11-08") + judged(["x"], JUDGES[4:], "2026-11-12")
    asked = {
        number: contest(
            [submission("red", ["x"])], answers, decisions=[decision("x", judges=number, date="2026-11-11")]
        )
        for number in (4, 5)
    }
    with pytest.raises(CleansetError, match="4 judges, where 4 have answered; expected more, before the end: decide"):
        standing(asked[4], LATER)
    image = course(asked[5], LATER)
    assert (image.stage, len(image.settling), image.valid_group) == ("final", 5, None)


def test_defences_with_the_same_answers_count_once() -> None:
    """Ten copies of one model, broken with one image, bring one share, to the batch's winner that was entered first.

    So nobody gets a part of the shares of an open defence by a copy of it.
    """
    names = ["gold/wall", *(f"red/copy{number}" for number in range(3))]
    defences = [defence(each) for each in (*names, "blue/roof")]
    stakes = [stake(*names, "blue/roof")]
    images = [submission("blue", ["x", "y"], target=names[0])]
    judges = judged({"x": BIRD, "y": UNSURE})
    for answers, attackers, defenders in (
        ({"x": "bicycle", "y": "bird"}, {"blue": WHOLE}, {"blue": WHOLE}),
        ({"x": "bird", "y": "abstain"}, {}, {"blue": HALF, "gold": HALF}),
    ):
        given = {**dict.fromkeys(names, answers), "blue/roof": {"x": "bird", "y": "bird"}}
        runs = [run(given[name], name, date) for name in given for date in (SATURDAY, WON)]
        confirmed = [decision("y", "invalid", "2026-12-01")]
        found = standing(contest(images, judges, runs, defences, stakes=stakes, decisions=confirmed), WON)
        assert (found.attackers, found.defenders) == (attackers, defenders)
        copies = [each.copy_of for each in found.defences if each.name in names]
        assert copies == ([None, *[names[0]] * 3] if attackers else [None] * 4)


def printed(files: Log, date: str) -> list[str]:
    """The lines of a standing, without the spaces at their ends."""
    console = Console(file=io.StringIO(), width=80)
    console.print(as_text(standing(files, date)))
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]  # type: ignore[attr-defined]


def test_broken() -> None:
    files = contest([submission("red", ["x"])], judged(["x"]))
    assert printed(files, FINAL)[1:5] == [
        "  defence     status   dates               shares",
        " ─────────────────────────────────────────────────",
        "  gold/wall   broken   staked 2026-11-02   red 1",
        "                       broken 2026-11-06",
    ]


def test_waiting_and_winning() -> None:
    """Nobody has broken it: what is waited for, then its team's share."""
    submitted, answers = [submission("red", ["x"])], judged({"x": UNSURE})
    again, decided = [run({"x": "bicycle"}), run({"x": "bicycle"}, date=WON)], [decision("x", "invalid", "2027-01-20")]
    waiting = " ".join(printed(contest(submitted, answers, again[:1]), WON))
    assert "gold/wall waits for confirmations, last run. No unpublished" in " ".join(waiting.split())
    won = printed(contest(submitted, answers, again, decisions=decided), WON)
    place = won.index("  gold/wall   won      staked 2026-11-02")
    assert won[place + 1] == "Defenders' shares: gold 1."
