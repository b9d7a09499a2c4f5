"""The history of a contest: its defences and shares at the end of each of some days, and the days of changes."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from cleanset.studies.contest.cross_checks import check_files
from cleanset.studies.contest.defences_by_day import DefencesByDay, DefenceStanding, Shares
from cleanset.studies.contest.files import ContestFiles, counted
from cleanset.studies.contest.standing import shares_of


class PastStanding(NamedTuple):
    """The defences of a contest at the end of a day that is over."""

    on: datetime.date
    defences: Sequence[DefenceStanding]
    attackers: Shares
    defenders: Shares


def history(files: ContestFiles, days: Iterable[datetime.date]) -> Iterator[PastStanding]:
    """The standings at the end of some days, in their order, each from what is dated up to it.

    Raises CleansetError as `standing` does on the last day.
    """
    check_files(files)
    files = replace(files, submissions=counted(files.submissions))
    contest = DefencesByDay(files)
    for day in days:
        contest.advance(day)
        defences = contest.defences()
        attackers, defenders = shares_of(files, defences)
        yield PastStanding(day, defences, attackers, defenders)


def changed(standings: Iterable[PastStanding]) -> list[PastStanding]:
    """The standings that differ from the previous one in the state of a defence or in shares."""
    found: list[PastStanding] = []
    for each in standings:
        if not found or _shown(each) != _shown(found[-1]):
            found.append(each)
    return found


def _shown(each: PastStanding) -> tuple[Sequence[tuple[str, str, tuple[str, ...]]], object, object]:
    return [(one.name, one.status, one.waits_for) for one in each.defences], each.attackers, each.defenders
