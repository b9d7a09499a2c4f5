"""The standing of small contests, written out by hand: weeks, breaks, shares, appeals, the board, winning."""

import datetime
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.contest.files import ContestFiles, EligibilityFigures
from cleanset.studies.contest.rules import week_of
from cleanset.studies.contest.standing import DefenceStanding, standing
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
    judged,
    rules,
    run,
    sha,
    stake,
    submission,
)

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def on(files: ContestFiles, date: str, name: str = "gold/wall") -> DefenceStanding:
    """The standing of one defence on a day."""
    (found,) = [each for each in standing(files, day(date)).defences if each.name == name]
    return found


def statuses(files: ContestFiles, *dates: str) -> list[str]:
    return [on(files, date).status for date in dates]


BROKEN = contest([submission("red", ["x"])], judged(["x"]))


@pytest.mark.parametrize(
    ("instant", "friday"),
    [
        ("2026-11-06T23:59:59", FRIDAY),
        ("2026-11-07T00:00:00", SECOND_FRIDAY),  # a second later
        ("2026-10-31T00:00:00", FRIDAY),
        ("2026-11-02T12:00:00", FRIDAY),
    ],
)
def test_weeks_end_on_friday(instant: str, friday: str) -> None:
    assert week_of(datetime.datetime.fromisoformat(f"{instant}+00:00")) == day(friday)


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
    hidden = EligibilityFigures(images=20, correct=15, mistakes=5, mistakes_at_80=0)
    runs = [first_run(), run({}, date=STAKED).model_copy(update={"unpublished": hidden}), run({}, date=SATURDAY)]
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
