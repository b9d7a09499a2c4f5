"""The standing of small contests, written by hand: weeks, breaks, shares, appeals, the board, winning."""

import io
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from cleanset.errors import CleansetError
from cleanset.statistics.coverage import Eligibility
from cleanset.studies.contest.defences_by_day import DefenceStanding
from cleanset.studies.contest.entries import UnpublishedResult, reasons_against
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.judging import ControlImage, ImageVerdict
from cleanset.studies.contest.report import as_json, as_table, as_text, notes_below, notices
from cleanset.studies.contest.rules import after, week_of_day
from tests.studies.contest.made import (
    BIRD,
    FINAL,
    FRIDAY,
    JUDGES,
    SATURDAY,
    SECOND_FRIDAY,
    SECOND_SATURDAY,
    STAKED,
    UNSURE,
    WON,
    appeal,
    contest,
    day,
    decision,
    defence,
    first_run,
    history,
    judged,
    rules,
    run,
    sha,
    stake,
    standing,
    submission,
)

HALF, THIRD, WHOLE = Fraction(1, 2), Fraction(1, 3), Fraction(1)
MODEL: dict[str, Any] = {"role": "standard", "confidence": "softmax", "threshold": 0.5}


def on(files: ContestFiles, date: str, name: str = "gold/wall") -> DefenceStanding:
    """The standing of one defence on a day."""
    (found,) = [each for each in standing(files, day(date)).defences if each.name == name]
    return found


def statuses(files: ContestFiles, *dates: str) -> list[str]:
    return [on(files, date).status for date in dates]


BROKEN = contest([submission("red", ["x"])], judged(["x"]))


@pytest.mark.parametrize(
    ("date", "friday"),
    [(FRIDAY, FRIDAY), (SATURDAY, SECOND_FRIDAY), ("2026-10-31", FRIDAY), (STAKED, FRIDAY)],
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
    assert standing(BROKEN, day(FINAL)).attackers == {"red": 1}
    assert standing(BROKEN, day(FINAL)).images[sha("x")].final_on == day(FINAL)


@pytest.mark.parametrize("given", ["bird", "abstain"])
def test_the_correct_group_and_abstaining_break_nothing(given: str) -> None:
    files = contest([submission("red", ["x"])], judged(["x"]), [run({"x": given})])
    assert on(files, FINAL).status == "staked"


@pytest.mark.parametrize("content", [UNSURE, BIRD | {"real": False}, BIRD | {"outline": None}])
def test_an_invalid_image_breaks_nothing(content: dict[str, Any]) -> None:
    files = contest([submission("red", ["x"])], judged({"x": content}))
    assert on(files, WON).status == "awaiting"
    assert standing(files, day(WON)).images[sha("x")].verdict.reason is not None  # type: ignore[union-attr]


def test_an_image_is_not_published_before_its_week_ends() -> None:
    assert standing(BROKEN, day("2026-11-05")).images == {}
    assert standing(BROKEN, day(FRIDAY)).images[sha("x")].stage == "open"
    assert standing(BROKEN, day(SATURDAY)).images[sha("x")].stage == "judged"


def test_two_judges_are_too_few() -> None:
    files = contest([submission("red", ["x"])], judged(["x"], JUDGES[:2]))
    assert standing(files, day(WON)).images[sha("x")].stage == "open"
    assert on(files, WON).waits_for == ("verdicts", "last_run")


def test_an_image_aimed_at_another_defence_breaks_too() -> None:
    files = contest(
        [submission("red", ["x"], target="blue/roof")],
        judged(["x"]),
        [run({"x": "bird"}, "blue/roof"), run({"x": "bicycle"})],
        {"gold/wall": defence(), "blue/roof": defence()},
        stakes=[stake("gold/wall", "blue/roof")],
    )
    assert [each.status for each in standing(files, day(FINAL)).defences] == ["staked", "broken"]


def breaking(teams: Sequence[str], later: Sequence[str] = ()) -> ContestFiles:
    """Each of the teams breaks gold/wall with an image of its own in the first week, the later ones in the second."""
    first = [submission(team, [team]) for team in teams]
    second = [submission(team, [team], f"{SECOND_FRIDAY}T23:59:59Z") for team in later]
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
    assert standing(breaking(teams, later), day(WON)).attackers == dict(sorted(shares.items()))


def test_two_images_of_a_team_are_one_share() -> None:
    files = contest([submission("red", ["x", "y"]), submission("blue", ["z"])], judged(["x", "y", "z"]))
    assert on(files, FINAL).shares == {"red": HALF, "blue": HALF}


def test_shares_are_settled_when_nothing_of_the_week_is_open() -> None:
    files = contest([submission("red", ["x"]), submission("blue", ["y"])], judged(["x"]))
    assert on(files, FINAL).shares == {"red": 1}
    assert not on(files, FINAL).settled
    assert standing(files, day(FINAL)).attackers == {}


def winning(**changed: Any) -> ContestFiles:
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
    assert standing(files, day(WON)).defenders == {"gold": 1}
    assert standing(files, day("2027-01-30")).defenders == {}


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
    files = winning(submissions=[submission("red", ["x"]), submission("blue", ["y"], "2027-01-30T12:00:00Z")])
    assert on(files, WON).waits_for == ("publication", "last_run")


@pytest.mark.parametrize(("date", "status"), [("2027-01-30", "broken"), ("2027-01-31", "won")])
def test_the_ninetieth_day_is_the_last_that_counts(date: str, status: str) -> None:
    """Day 89 after the stake is still within the 90 days."""
    files = contest(
        [submission("red", ["x"], f"{date}T12:00:00Z")],
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
    files = winning(defences={"gold/wall": defence(open=False)})
    found = on(files, WON)
    assert (found.status, found.reasons) == ("ineligible", ("closed",))
    assert standing(files, day(WON)).defenders == {}


@pytest.mark.parametrize(
    ("runs", "reasons"),
    [
        ([], ("not_run",)),
        ([first_run(correct=7)], ("abstains",)),
        ([first_run(correct=7, mistakes=3, mistakes_at_80=1)], ("accuracy",)),
        ([first_run(speed=0.99)], ("too_slow",)),
        ([first_run(speed=1)], ()),
        ([first_run(correct=8, mistakes=2, mistakes_at_80=1)], ()),
        ([first_run(correct=7, speed=0), run({}, date=STAKED)], ("abstains", "too_slow")),  # the first run counts
    ],
)
def test_who_is_eligible(runs: list[Any], reasons: tuple[str, ...]) -> None:
    found = on(contest(runs=runs, stakes=[], first=False), STAKED)
    assert (found.reasons, found.status) == (reasons, "ineligible" if reasons else "eligible")


def test_the_other_reading_of_eligible() -> None:
    runs = [first_run(correct=8, mistakes=2, mistakes_at_80=1)]
    for images, reasons in ((10, ("accuracy",)), (11, ("accuracy", "too_few_images"))):
        ruled = rules(eligibility="perfect_at_80", limits={"eligibility_images": images})
        files = contest(runs=runs, rules=ruled, stakes=[], first=False)
        assert on(files, STAKED).reasons == reasons


def test_overfitting_is_shown() -> None:
    """9 of 10 on the published list, 15 of 20 on the other; of the first run over both."""
    hidden = Eligibility(images=20, correct=15, mistakes=5, mistakes_at_80=0)
    result = UnpublishedResult(list_sha256=LIST, against=[], figures=hidden)
    runs = [first_run(), run({}, date=STAKED).model_copy(update={"unpublished": result}), run({}, date=SATURDAY)]
    files = contest(runs=runs, first=False)
    assert on(files, "2026-11-01").overfitting is None
    assert on(files, FINAL).overfitting == Fraction(3, 20)


def later_stake(given: str) -> ContestFiles:
    """blue/roof is staked a week after the image that it answers was submitted."""
    return contest(
        [submission("red", ["x"])],
        judged(["x"]),
        [run({"x": "bird"}), run({"x": given}, "blue/roof")],
        {"gold/wall": defence(), "blue/roof": defence()},
        stakes=[stake("gold/wall"), stake("blue/roof", date="2026-11-20", batch="second", by="blue")],
    )


def test_a_mistake_on_an_earlier_image() -> None:
    """Keeps a defence from being eligible, staked or not; it does not break it."""
    found = [on(later_stake("bicycle"), date, "blue/roof") for date in (FINAL, "2026-11-20", "2027-03-01")]
    assert [(each.status, each.reasons) for each in found] == [("ineligible", ("mistake_before",))] * 3
    assert on(later_stake("abstain"), "2026-11-20", "blue/roof").status == "staked"


def batch(broken: int, organizers: Sequence[str] = ()) -> ContestFiles:
    """Three defences in one batch, of gold, green and blue, the first so many broken."""
    names = ["gold/wall", "green/hedge", "blue/roof"]
    runs = [
        run({"x": "bicycle" if place < broken else "bird"}, name, date)
        for place, name in enumerate(names)
        for date in (SATURDAY, WON)
    ]
    return contest(
        [submission("red", ["x"])], judged(["x"]), runs, dict.fromkeys(names, defence()),
        stakes=[stake(*names)], rules=rules(organizers=list(organizers)),
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
def test_a_batch_shares(files: ContestFiles, shares: dict[str, Fraction]) -> None:
    assert standing(files, day(WON)).defenders == shares


def test_nothing_is_shared_while_one_of_the_batch_may_still_win() -> None:
    files = batch(1)
    later = replace(files, runs=[each for each in files.runs if (each.defence, each.date) != ("blue/roof", day(WON))])
    assert [each.status for each in standing(later, day(WON)).defences] == ["awaiting", "broken", "won"]
    assert standing(later, day(WON)).defenders == {}


def test_an_appeal_holds_the_verdict_until_it_is_decided() -> None:
    waiting = contest([submission("red", ["x"])], judged(["x"]), appeals=[appeal("x", "gold")])
    assert statuses(waiting, FINAL, "2027-01-01") == ["staked", "staked"]
    assert standing(waiting, day(FINAL)).images[sha("x")].stage == "appealed"


@pytest.mark.parametrize(("verdict", "status"), [("bird", "broken"), ("invalid", "staked"), ("bicycle", "staked")])
def test_the_board_decides_an_appeal(verdict: str, status: str) -> None:
    """Others than ada have a conflict or not; a picture of the group that the defence gives breaks nothing."""
    decisions = [decision("x", verdict, "2026-11-20", recused=["eve"])]
    files = contest([submission("red", ["x"])], judged(["x"]), appeals=[appeal("x", "gold")], decisions=decisions)
    assert statuses(files, "2026-11-19", "2026-11-20") == ["staked", status]
    assert standing(files, day("2026-11-20")).images[sha("x")].by_board


@pytest.mark.parametrize(("last", "status"), [(BIRD, "broken"), (UNSURE, "staked")])
def test_more_judges_decide_an_appeal(last: dict[str, Any], status: str) -> None:
    answers = judged(["x"]) + judged(["x"], JUDGES[3:4], "2026-11-21") + judged({"x": last}, JUDGES[4:], "2026-11-22")
    files = contest(
        [submission("red", ["x"])], answers, appeals=[appeal("x", "gold")],
        decisions=[decision("x", None, "2026-11-20", judges=5)],
    )  # fmt: skip
    assert statuses(files, "2026-11-21", "2026-11-22") == ["staked", status]


def test_a_notice_while_the_board_waits_for_more_judges() -> None:
    """The verdict so far stays, and no day for appeals is known."""
    files = contest(
        [submission("red", ["x"])], judged(["x"]), appeals=[appeal("x", "gold")],
        decisions=[decision("x", None, "2026-11-10", judges=5)],
    )  # fmt: skip
    found = standing(files, day(FINAL))
    assert (found.images[sha("x")].stage, found.images[sha("x")].verdict) == ("open", ImageVerdict("bird"))
    text = f"{sha('x')}: gold/wall gives bicycle, judged bird; more judges are to answer\n"
    assert notices(files, found) == {f"{FRIDAY}/gold.txt": text}


def test_an_attacker_appeals() -> None:
    files = contest(
        [submission("red", ["x"])], judged({"x": UNSURE}),
        appeals=[appeal("x", "red")], decisions=[decision("x", "bird", "2026-11-20")],
    )  # fmt: skip
    assert statuses(files, "2026-11-19", "2026-11-20") == ["staked", "broken"]


@pytest.mark.parametrize(
    ("team", "date", "content", "message"),
    [
        ("blue", "2026-11-09", BIRD, "a team that may not appeal; expected one of gold"),
        ("red", "2026-11-09", BIRD, "a team that may not appeal; expected one of gold"),  # nothing to win for red
        ("gold", "2026-11-09", UNSURE, "a team that may not appeal; expected one of red"),
        ("gold", "2026-11-15", BIRD, "not within the days for appeals; expected it at most 7 days after the judges'"),
    ],
)
def test_refused_appeals(team: str, date: str, content: dict[str, Any], message: str) -> None:
    files = contest([submission("red", ["x"])], judged({"x": content}), appeals=[appeal("x", team, date)])
    with pytest.raises(CleansetError, match=message):
        standing(files, day("2026-12-01"))
    assert standing(files, day("2026-11-08"))  # on an earlier day there is no appeal


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
        standing(files, day("2026-11-15"))


def test_the_order_of_reasons_and_of_images() -> None:
    files = contest(
        [submission("red", ["y"], "2026-11-03T00:00:00Z"), submission("blue", ["x"])],
        judged({"x": BIRD | {"real": False, "complete": False}, "y": UNSURE}),
    )
    images = standing(files, day(FINAL)).images
    assert list(images) == [sha("x"), sha("y")]
    assert [each.verdict.reason for each in images.values() if each.verdict] == ["depiction", "ambiguous"]


LATER = "2026-12-20"


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
    assert found.unsettled == "open: no run over that week yet"
    assert on(files, "2026-11-20").shares == {"red": HALF, "blue": HALF}
    assert on(files, "2026-11-20").settled


def test_until_when_it_may_change() -> None:
    first, second = submission("red", ["x"]), submission("blue", ["y"])
    later = judged(["x"]) + judged(["y"], date="2026-11-10")
    assert on(contest([first, second], later), FINAL).open_until == "2026-11-17"
    assert on(contest([first, second], judged(["x"])), FINAL).open_until == "missing verdicts"
    table = as_table(standing(contest([first, second], later), day(FINAL)))
    assert "red 1\nopen until 2026-11-17" in list(table.columns[3].cells)
    table = as_table(standing(contest([first, second], judged(["x"])), day(FINAL)))
    assert "red 1\nopen: verdicts are missing" in list(table.columns[3].cells)


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
    figures = Eligibility.model_validate({"images": 10, "correct": correct, "mistakes": 0, "mistakes_at_80": 0})
    content = {"list_sha256": digest, "against": reasons_against(figures, rules())}
    return run(given, date=date).model_copy(update={"unpublished": UnpublishedResult.model_validate(content)})


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
    files = contest(rules=rules(made_up=True), runs=[run({}).model_copy(update={"confined": False})])
    for date, count in ((STAKED, 2), (FINAL, 3)):
        found = standing(files, day(date))
        assert len(found.notes) == count
        assert found.notes[0].startswith("No unpublished list decides who is eligible")
        assert found.notes[1].startswith("This contest is made up")
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
        answers[0] = answers[0].model_copy(
            update={"answers": {**answers[0].answers, sha256: given.answers[sha("none")]}}
        )
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
        with pytest.raises(CleansetError, match=r"blue on .* of 2026-11-11: a team that may not appeal; expected one"):
            standing(early, day(date))
    assert standing(late, day(LATER)).images[sha("x")].stage == "appealed"
    assert [each.on for each in history(late, day(LATER))] == [day("2026-11-01"), day(STAKED), day("2026-12-20")][:2]


def test_a_defence_without_a_stake_in_a_history() -> None:
    """It changes with its first run, and with a mistake."""
    roof = [run({}, "blue/roof", "2026-11-04"), run({"x": "bicycle"}, "blue/roof", SATURDAY)]
    defences = {"gold/wall": defence(), "blue/roof": defence()}
    runs = [run({}, "gold/wall", "2026-11-01"), run({"x": "bicycle"}), *roof]
    files = contest([submission("red", ["x"])], judged(["x"]), runs, defences, first=False)
    found = [(str(each.on), each.defences[0].status) for each in history(files, day(LATER))]
    assert found[-3:] == [(STAKED, "ineligible"), ("2026-11-04", "eligible"), ("2026-11-14", "ineligible")]


def printed(files: object, date: str) -> list[str]:
    """The lines of a standing, without the spaces at their ends."""
    console = Console(file=io.StringIO(), width=80)
    console.print(as_text(standing(files, day(date))))  # type: ignore[arg-type]
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]  # type: ignore[attr-defined]


def test_broken() -> None:
    files = contest([submission("red", ["x"])], judged(["x"]))
    assert printed(files, FINAL)[1:] == [
        "  defence     status   dates               shares",
        " ─────────────────────────────────────────────────",
        "  gold/wall   broken   staked 2026-11-02   red 1",
        "                       broken 2026-11-06",
        "No unpublished list decides who is eligible: a defence that knows the published",
        "images by heart is, too.",
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


def test_an_image_larger_than_a_defence_sees() -> None:
    """Submitted before that defence was staked: it is no mistake of it, as a smaller one is."""
    small = defence(name="green/gate", model=MODEL | {"pixels": 100, "crop": 88})
    names = ("gold/wall", "green/gate")
    found = {}
    for side in (100, 101):
        files = contest(
            [submission("red", ["x"], width=side, height=side)],
            judged(["x"]),
            [run({"x": "bicycle"}, name, "2026-11-07") for name in names],
            {"gold/wall": defence(), "green/gate": small},
            stakes=[stake("gold/wall"), stake("green/gate", date="2026-11-20", batch="second")],
        )
        found[side] = [on(files, "2026-11-21", name) for name in names]
    assert [each.status for each in found[100]] == ["broken", "ineligible"]
    assert found[100][1].reasons == ("mistake_before",)
    assert [each.status for each in found[101]] == ["broken", "staked"]
