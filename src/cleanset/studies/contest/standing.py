"""The standing of a contest at the end of a day, from the log alone."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cleanset.errors import CleansetError
from cleanset.plumbing.machine import without_garbage_collection
from cleanset.studies.contest.courses import DefenceCourse, DefenceStanding, Shares, those_that_apply
from cleanset.studies.contest.entries import team_of
from cleanset.studies.contest.log import Log
from cleanset.studies.contest.rules import after
from cleanset.studies.contest.state import Contest, apply_line


@without_garbage_collection()
def replay(log: Log, on: datetime.date | None = None, *, lines: int | None = None) -> Contest:
    """The contest at the end of a day, from the lines up to it: at the end of the log without one.

    `lines`: only the first ones, on the day `on`, which is not over. Lines that are void by then have no effect. Raises
    CleansetError for a line that breaks a rule.
    """
    last = max(each.day for each in log.lines) if on is None else on
    counting = [each for each in log.lines[:lines] if each.day <= last or each.n == 0]
    voiding = {each.n for each in counting if each.kind == "void"}
    contest = Contest(log.rules)
    for line in counting:
        if log.void.get(line.n) not in voiding:
            apply_line(contest, line)
    contest.begin_day(last)
    if lines is None:
        contest.begin_day(after(last, 1))
        contest.on = last
    return contest


def check_voids(log: Log) -> None:
    """Raise CleansetError for a line that makes others void, and by that changes what has been final."""
    for line in (each for each in log.lines if each.kind == "void"):
        found = replay(log, line.day, lines=line.n + 1).final()
        for key, one in replay(log, line.day, lines=line.n).final().items():
            if found.get(key) != one:
                raise CleansetError(f"{line}: changes {key}, which is final; expected no such lines: leave it out")


@dataclass(frozen=True, slots=True)
class Standing:
    """The contest at the end of a day.

    `attackers`: the sum of each team's settled shares of the stakes of broken defences; `defenders`: that of the
    batches that have won. `left_out`: the judges whose answers do not count now, by id, each with the reason. `notes`:
    sentences on the limits of this contest's checks. `head`: the digest of the last line of the log.
    """

    on: datetime.date
    contest: Contest
    defences: Sequence[DefenceStanding]
    attackers: Shares
    defenders: Shares
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    head: str


def standing(log: Log, on: datetime.date) -> Standing:
    """The standing at the end of a day. Raises CleansetError as `replay` does."""
    contest = replay(log, on)
    defences = [course.standing(on) for _, course in sorted(contest.defences.items())]
    problems = {judge: each.problem(contest.rules.judges) for judge, each in sorted(contest.judges.items())}
    notes = {
        "No unpublished list decides who is eligible: a defence that knows the published images by heart is, too.": (
            contest.rules.unpublished is None
        ),
        "This contest is made up: none of it has happened, and its dates were chosen.": contest.rules.made_up,
    }
    return Standing(
        on=on,
        contest=contest,
        defences=defences,
        attackers=_summed(each.shares for each in defences if each.settled),
        defenders=_summed(_shares_of_batches(contest, defences)),
        left_out={judge: problem for judge, problem in problems.items() if problem is not None},
        notes=those_that_apply(notes),
        head=next(each for each in reversed(log.lines) if each.day <= on or each.n == 0).digest,
    )


def _shares_of_batches(contest: Contest, defences: Sequence[DefenceStanding]) -> Iterable[Shares]:
    """Each batch is shared equally among its defences that have won, once no other can still win.

    If several give the same answers to all images, only the first one entered counts.
    """
    without = contest.rules.without_shares()
    for batch in {each.batch for each in defences} - {None}:
        members = [each for each in defences if each.batch == batch]
        if any(each.status in ("staked", "awaiting") for each in members):
            continue
        won = {each.name for each in members if each.status == "won" and team_of(each.name) not in without}
        sharing: list[DefenceCourse] = []
        for course in (each for name, each in contest.defences.items() if name in won):
            if not any(course.answers_as(other) for other in sharing):
                sharing.append(course)
        yield from ({team_of(each.defence.name): Fraction(1, len(sharing))} for each in sharing)


def _summed(shares: Iterable[Shares]) -> Shares:
    total: dict[str, Fraction] = {}
    for each in shares:
        for team, share in each.items():
            total[team] = total.get(team, Fraction(0)) + share
    return dict(sorted(total.items()))
