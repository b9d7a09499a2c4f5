"""The standing of a contest day by day, and the days on which it can be another."""

import datetime
from collections.abc import Sequence

from cleanset.studies.contest.days import after
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.standing import Standing, standing


def days_of_change(files: ContestFiles, on: datetime.date) -> list[datetime.date]:
    """The days up to `on` on which anything is dated or due, sorted: no other day changes the standing."""
    board, limits = files.board, files.rules.limits
    answered = {one.date for each in files.answers for one in each.answers.values()}
    found = answered | {after(day, limits.appeal_days) for day in answered}
    found |= {each.submitted for each in files.defences.values()} | {each.date for each in files.runs}
    found |= {day for each in files.submissions for day in (each.day, each.week)}
    found |= {each.date for kind in (board.decisions, board.appeals, board.stakes, board.accepted) for each in kind}
    found |= {after(each.date, limits.unbroken_days) for each in board.stakes}
    return sorted(day for day in found if day <= on)


def history(files: ContestFiles, on: datetime.date) -> list[Standing]:
    """The standings up to `on` that differ from the one before in the state of a defence or in shares."""
    found: list[Standing] = []
    for day in days_of_change(files, on):
        next_one = standing(files, day)
        if not found or _shown(next_one) != _shown(found[-1]):
            found.append(next_one)
    return found


def _shown(each: Standing) -> tuple[Sequence[tuple[str, str, tuple[str, ...]]], object, object]:
    return [(one.name, one.status, one.waits_for) for one in each.defences], each.attackers, each.defenders
