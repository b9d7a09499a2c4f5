"""Drawn contests whose standing, on several days of each, is that of a second implementation."""

import datetime
import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.contest.entries import AnswerFile, DefenceRun, UnpublishedResult
from cleanset.studies.contest.files import ContestFiles, Submission
from cleanset.studies.contest.history import history
from cleanset.studies.contest.judging import ControlImage
from cleanset.studies.contest.standing import Standing
from tests.properties import examples
from tests.studies.contest.made import (
    BIRD,
    JUDGES,
    OF_BOARD,
    STAKED,
    UNSURE,
    answer,
    appeal,
    contest,
    day,
    decision,
    defence,
    rules,
    run,
    sha,
    stake,
    standing,
    submission,
)
from tests.studies.contest.second_standing import Days, RefusedError

NAMES = ("gold/wall", "green/hedge", "gold/gate")
TEAMS = ("red", "green", "blue", "staff", "union", "gold")
BICYCLE = BIRD | {"contains": {"bicycle": "definitely_yes", "bird": "definitely_no"}}
CONTROLS = {sha(f"control {n}"): ControlImage(contains={"bird": True, "bicycle": False}) for n in range(4)}
START, LAST = day(STAKED), day(STAKED) + datetime.timedelta(75)
GOOD = {"images": 10, "correct": 9, "mistakes": 0, "mistakes_at_80": 0}
BAD = GOOD | {"correct": 7, "mistakes": 0}
BOARD: dict[str, Any] = {
    "ada": {}, "bob": {"teams": ["union"]}, "eve": {"conflicts": ["red"]}, "abe": {"teams": ["green"]},
}  # fmt: skip


def later(start: datetime.date, days: int) -> str:
    return str(start + datetime.timedelta(days))


def drawn(pick: random.Random) -> ContestFiles:
    """Up to six images in five weeks, won after 40 days; appeals, decisions, controls and late runs as they come."""
    names = [f"image_{place}" for place in range(pick.randint(0, 6))]
    submissions: list[Submission] = []
    answers: list[AnswerFile] = []
    appeals, decisions = [], []
    for place, name in enumerate(names):
        when = later(START, pick.randint(0, 42))
        one = submission(pick.choice(TEAMS), [name], f"{when}T12:00:00Z", pick.choice(("gold/wall",) * 3), place + 1)
        submissions.append(one)
        usual = pick.choice((BIRD, BIRD, BICYCLE, UNSURE))
        first = pick.choice((1, 1, 1, 5))
        for judge in JUDGES[: pick.choice((2, 3, 3, 3, 4, 5))]:
            content = usual if pick.random() < 0.93 else UNSURE
            date = later(one.week, first + pick.choice((0, 0, 0, 3, 9)))
            answers.append(AnswerFile(judge=judge, week=one.week, answers={sha(name): answer(content, date)}))
        if pick.random() < 0.25:
            appeals.append(
                appeal(name, pick.choice(("gold", "gold", "green", one.team)), later(one.week, pick.randint(1, 12)))
            )
        for days in sorted(pick.sample(range(1, 45), pick.choice((0, 0, 1, 1, 2)))):
            verdict = pick.choice(("bird", "invalid", "invalid", "bicycle", None))
            more: dict[str, Any] = {"judges": pick.randint(3, 5)} if verdict is None else {}
            members = pick.choice((["ada"],) * 8 + (["ada", "bob"], ["eve"], ["abe"], ["abe", "ada"]))
            decisions.append(decision(name, verdict, later(one.week, days), members=members, **more))
    answers += drawn_controls(pick, submissions)
    hidden = sha("list") if pick.random() < 0.3 else None
    ruled = rules(
        limits={"unbroken_days": 40}, board=BOARD, unpublished=hidden, quorum=pick.choice((1,) * 9 + (2,)),
        judges={"min_controls": 2},
    )  # fmt: skip
    stakes = [stake(*NAMES)]
    if pick.random() < 0.5:
        stakes = [stake("gold/wall"), stake(*NAMES[1:], date=later(START, pick.randint(0, 15)), batch="second")]
    return contest(
        submissions, answers, [one for name in NAMES for one in drawn_runs(pick, name, submissions, hidden)],
        {name: defence(open=pick.random() < 0.93) for name in NAMES}, first=False, rules=ruled, stakes=stakes,
        appeals=appeals, decisions=decisions, controls=CONTROLS,
    )  # fmt: skip


def drawn_controls(pick: random.Random, submissions: list[Submission]) -> list[AnswerFile]:
    found = []
    for judge in JUDGES:
        if not submissions or pick.random() < 0.6:
            continue
        week = min(each.week for each in submissions)
        given = {
            each: answer(BIRD if pick.random() < 0.8 else UNSURE, later(week, pick.randint(1, 12)))
            for each in pick.sample(list(CONTROLS), pick.randint(1, 4))
        }
        found.append(AnswerFile(judge=judge, week=week, answers=given))
    return found


def drawn_runs(pick: random.Random, name: str, submissions: list[Submission], hidden: str | None) -> list[DefenceRun]:
    usual, loyalty = pick.choice(("bird", "abstain", "bird", "bicycle")), pick.choice((0.8, 0.97, 1))
    dates = {later(each.week, pick.randint(1, 6)) for each in submissions}
    dates |= {later(START, 40 + pick.randint(0, 35)) for _ in range(pick.randint(0, 2))}
    dates |= {"2026-11-01"} if pick.random() < 0.93 else set()
    found = []
    for date in sorted(dates):
        given = {
            one.sha256: usual if pick.random() < loyalty else pick.choice(("bird", "bicycle", "abstain"))
            for each in submissions
            if str(each.week) < date or (str(each.day) <= date and pick.random() < 0.9)
            for one in each.manifest.images
        }
        figures = BAD if pick.random() < 0.04 else GOOD
        one = run({}, name, date, pick.choice((100,) * 19 + (0.5,)), **figures).model_copy(update={"answers": given})
        if hidden and pick.random() < 0.9:
            content = {"list_sha256": hidden, "against": [], "figures": BAD if pick.random() < 0.05 else GOOD}
            one = one.model_copy(update={"unpublished": UnpublishedResult.model_validate(content)})
        found.append(one)
    return found


def shuffled(files: ContestFiles, pick: random.Random) -> ContestFiles:
    """The same files in another order."""

    def other(entries: Any) -> Any:
        return pick.sample(list(entries), len(entries))

    board = {key: other(getattr(files, key)) for key in OF_BOARD}
    mixed = [
        each.model_copy(update={"answers": {key: each.answers[key] for key in other(each.answers)}})
        for each in files.answers
    ]
    return replace(
        files, defences={name: files.defences[name] for name in other(files.defences)}, answers=other(mixed),
        submissions=other(files.submissions), **board, runs=other(files.runs),
    )  # fmt: skip


def on_day(files: ContestFiles, on: datetime.date) -> Standing | str:
    """The standing, or why the files are refused."""
    try:
        return standing(files, on)
    except CleansetError as error:
        return str(error)


def first(found: Standing | str) -> object:
    """All of a standing that the second one knows, too."""
    if isinstance(found, str):
        return "refused"
    return (
        {
            each.name: (
                each.status, each.reasons, each.broken_in, each.broken_by, each.shares, each.settled, each.waits_for
            )
            for each in found.defences
        },
        {key: (each.stage, each.valid_group, each.judges) for key, each in found.images.items()},
        found.attackers, found.defenders, sorted(found.left_out),
    )  # fmt: skip


def second(files: ContestFiles, on: datetime.date) -> object:
    try:
        days = Days(files, on)
    except RefusedError:
        return "refused"
    keys = ("status", "reasons", "broken_in", "broken_by", "shares", "settled", "waits_for")
    return (
        {name: tuple(each[key] for key in keys) for name, each in days.table.items()},
        {key: (each.stage(), each.group, len(each.said)) for key, each in days.images.items()},
        days.attackers(), days.defenders(), [judge for judge in JUDGES if not days.is_good(judge)],
    )  # fmt: skip


@pytest.mark.long
def test_two_implementations_agree() -> None:
    """And the order of files decides nothing, not even that of the standing."""
    for seed in range(examples(1000, fast=300).max_examples):
        pick = random.Random(seed)
        files = drawn(pick)
        for on in (START + datetime.timedelta(pick.randint(-1, 60)), LAST):
            found = on_day(files, on)
            assert first(found) == second(files, on), (seed, on)
        assert repr(on_day(shuffled(files, pick), on)) == repr(found), (seed, on)


@cache
def drawn_kinds(seed: int) -> set[str]:
    """The stages, statuses and answers that occur in a drawn contest at its end."""
    found = on_day(drawn(random.Random(seed)), LAST)
    if isinstance(found, str):
        return {"refused"}
    states = found.images.values()
    kinds = {each.status for each in found.defences} | {each.stage for each in states}
    return kinds | {"confirmed" for each in states if each.confirmed}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["broken", "won", "awaiting", "refused", "open", "appealed", "final", "confirmed"])
def test_the_drawn_contests_have_all_there_is(kind: str) -> None:
    assert any(kind in drawn_kinds(seed) for seed in range(1000))


def test_a_history_has_the_standing_of_each_day() -> None:
    """Though it goes on from one day to the next, and from a day to a later one."""
    for seed in range(examples(60, fast=15).max_examples):
        pick = random.Random(seed)
        files = drawn(pick)
        if isinstance(on_day(files, LAST), str):
            continue
        days = sorted(pick.sample([START + datetime.timedelta(count) for count in range(-1, 76)], 40))
        for past in history(files, days):
            found = standing(files, past.on)
            expected = (past.on, found.defences, found.attackers, found.defenders)
            assert (past.on, list(past.defences), past.attackers, past.defenders) == expected, (seed, past.on)
