"""Properties of the standing over drawn contests: the order of files, later days, what the files held earlier."""

import datetime
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.studies.contest.files import Board, ContestFiles, DefenceRun, Stake, Submission, WeekOfAnswers, until
from cleanset.studies.contest.standing import Standing, standing
from tests.properties import examples
from tests.studies.contest.made import (
    BIRD,
    JUDGES,
    STAKED,
    UNSURE,
    answer,
    appeal,
    contest,
    day,
    decision,
    defence,
    run,
    sha,
    stake,
    submission,
)

ATTACKERS = ("red", "green", "blue", "staff", "union")
DEFENCES = ("gold/wall", "green/hedge", "gold/gate")
LAST = day(STAKED) + datetime.timedelta(130)
BICYCLE = BIRD | {"contains": {"bicycle": "definitely_yes", "bird": "definitely_no"}}


@st.composite
def contests(draw: st.DrawFn) -> ContestFiles:
    """Up to eight images over sixteen weeks, judged, appealed and decided within weeks, and defences run each week."""
    pick = draw(st.randoms(use_true_random=False))
    names = [f"image {place}" for place in range(pick.randint(1, 8))]
    submissions, answers, appeals, decisions = [], [], [], []
    for place, name in enumerate(names):
        when = day(STAKED) + datetime.timedelta(pick.randint(0, 110))
        one = submission(pick.choice(ATTACKERS), [name.replace(" ", "_")], f"{when}T12:00:00Z", number=place + 1)
        object.__setattr__(one.manifest.images[0], "sha256", sha(name))
        submissions.append(one)
        answers += judges_of(pick, name, one)
        if pick.random() < 0.3:
            team = pick.choice(("gold", "green", one.team))
            appeals.append(appeal(name, team, str(one.week + datetime.timedelta(pick.randint(1, 15)))))
        for later in sorted(pick.sample(range(1, 60), pick.choice((0, 0, 1, 2)))):
            verdict = pick.choice(("bird", "bicycle", "invalid", None))
            more: dict[str, Any] = {"judges": pick.randint(3, 5)} if verdict is None else {}
            decisions.append(decision(name, verdict, str(one.week + datetime.timedelta(later)), **more))
    return contest(
        submissions, answers, runs_of(pick, submissions), dict.fromkeys(DEFENCES, defence()),
        stakes=stakes_of(pick), appeals=appeals, decisions=decisions,
    )  # fmt: skip


def judges_of(pick: random.Random, name: str, one: Submission) -> list[WeekOfAnswers]:
    usual = pick.choice((BIRD, BIRD, BICYCLE, UNSURE))
    found = []
    for judge in JUDGES[: pick.randint(2, 5)]:
        content = usual if pick.random() < 0.9 else UNSURE
        date = str(one.week + datetime.timedelta(pick.randint(1, 12)))
        found.append(WeekOfAnswers(judge, one.week, {sha(name): answer(content, date)}))
    return found


def stakes_of(pick: random.Random) -> list[Stake]:
    if pick.random() < 0.5:
        return [stake(*DEFENCES)]
    return [stake("gold/wall"), stake(*DEFENCES[1:], date="2026-11-20", batch="second")]


def runs_of(pick: random.Random, submissions: list[Submission]) -> list[DefenceRun]:
    """On the Saturday after each week, over all images that were submitted by then."""
    found = []
    for name in DEFENCES:
        usual = pick.choice(("bird", "bicycle", "abstain"))
        for week in sorted({each.week for each in submissions} | {LAST}):
            shas = [one.sha256 for each in submissions if each.week <= week for one in each.manifest.images]
            given = run({}, name, str(week + datetime.timedelta(1)))
            answers = {each: usual if pick.random() < 0.8 else pick.choice(("bird", "bicycle")) for each in shas}
            found.append(given.model_copy(update={"answers": answers}))
    return found


def on(files: ContestFiles, date: datetime.date) -> Standing | str:
    """The standing, or why the files are refused."""
    try:
        return standing(files, date)
    except CleansetError as error:
        return str(error)


def shuffled(files: ContestFiles, pick: random.Random) -> ContestFiles:
    def other(entries: Any) -> Any:
        return pick.sample(list(entries), len(entries))

    board = Board(**{key: other(getattr(files.board, key)) for key in Board.model_fields})
    names, answers = other(files.defences), files.answers
    mixed = [
        WeekOfAnswers(each.judge, each.week, {key: each.answers[key] for key in other(each.answers)})
        for each in answers
    ]
    return replace(
        files, defences={name: files.defences[name] for name in names}, submissions=other(files.submissions),
        answers=other(mixed), board=board, runs=other(files.runs),
    )  # fmt: skip


DAYS = st.integers(0, 130).map(lambda later: day(STAKED) + datetime.timedelta(later))


@given(contests(), st.randoms(use_true_random=False), DAYS)
@examples(150)
def test_the_order_of_files_decides_nothing(files: ContestFiles, pick: random.Random, date: datetime.date) -> None:
    first, second = on(files, date), on(shuffled(files, pick), date)
    assert first == second
    assert repr(first) == repr(second)  # in the same order, too


@given(contests(), DAYS, DAYS)
@examples(300)
def test_a_later_day_never_mends_a_defence(files: ContestFiles, one: datetime.date, other: datetime.date) -> None:
    """A broken defence stays broken, a valid image valid, and of what is dated later nothing is known before."""
    early, late = on(files, min(one, other)), on(files, max(one, other))
    if isinstance(early, str):
        assert early == late or isinstance(late, str)  # what is refused stays refused
        return
    assert early == on(until(files, min(one, other)), min(one, other))
    if isinstance(late, str):
        return
    broken = [{each.name for each in found.defences if each.status == "broken"} for found in (early, late)]
    assert broken[0] <= broken[1]
    for sha256, state in early.images.items():
        if state.valid_group is not None:
            assert late.images[sha256].valid_group == state.valid_group
            assert late.images[sha256].final_on == state.final_on


@given(contests(), DAYS)
@examples(150)
def test_shares_add_up(files: ContestFiles, date: datetime.date) -> None:
    """To 1 for each broken defence, and for each batch that has won, or to nothing.

    Organizers, teams of the board and the defence's own have no share, nor has anybody of a defence that was broken
    before it was eligible.
    """
    found = on(files, date)
    if isinstance(found, str):
        return
    for each in found.defences:
        assert bool(each.broken_by) == (each.status == "broken")
        sharing = set(each.broken_by) - {"staff", "union", each.name.partition("/")[0]}
        assert set(each.shares) in (sharing, set())
        assert sum(each.shares.values()) == (1 if each.shares else 0)
    batches = {each.batch for each in found.defences if each.status == "won"}
    assert sum(found.defenders.values()) <= len(batches)


def kinds(files: ContestFiles) -> set[str]:
    """What is in the last standing of a contest."""
    found = on(files, LAST)
    if isinstance(found, str):
        return {"refused"}
    states = found.images.values()
    confirmed = {"confirmed" for each in states if each.confirmed}
    return {each.status for each in found.defences} | {each.stage for each in states} | confirmed


@pytest.mark.long
@pytest.mark.parametrize("kind", ["broken", "won", "awaiting", "refused", "open", "appealed", "final", "confirmed"])
def test_the_drawn_contests_have_all_there_is(kind: str) -> None:
    """Which examples are drawn changes with the modules that a session imports."""
    search = settings(max_examples=10_000, phases=[Phase.generate], deadline=None, derandomize=True)
    find(contests(), lambda files: kind in kinds(files), settings=search)
