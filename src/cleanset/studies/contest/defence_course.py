"""A defence as the days go by: eligible, staked, broken and by whom, won; and what it waits for.

What is settled never changes. A broken defence is settled on the first day at whose end no image of that week or before
is open; it has answered all of them by then, since a run answers every image that is published.
"""

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from cleanset.studies.contest.entries import Defence, DefenceRun, team_of
from cleanset.studies.contest.image_course import ImageCourse
from cleanset.studies.contest.rules import ContestRules

DefenceStatus = Literal["ineligible", "eligible", "staked", "broken", "awaiting", "won"]
"""May not be staked; may be staked; staked; broken; staked long enough, with open questions (`waits_for`); won."""
Shares = Mapping[str, Fraction]
"""Shares of one stake or one batch, by team."""


class Stake(NamedTuple):
    """The stake of a defence: the number of its line, its day and batch, and the day from which it can win."""

    number: int
    day: datetime.date
    batch: str
    ends: datetime.date


class PastRun(NamedTuple):
    """A run, with the number of its line, its day, and the reasons against eligibility in it."""

    number: int
    day: datetime.date
    run: DefenceRun
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DefenceStanding:
    """A defence on a day.

    `reasons`: why it is not eligible. `broken_in`: the first week, by its publication, with a valid image that it gives
    the other group; `broken_by`: the teams of that week; `shares`: their parts of the stake; `copy_of`: a broken
    defence with the same answers to all images, with which it counts once. `settled`: nothing changes this any more;
    `open_until`: the last day for appeals against images of that week and before, or what is missing, "" once settled.
    `waits_for`: open questions before it wins.
    """

    name: str
    status: DefenceStatus
    staked_on: datetime.date | None = None
    batch: str | None = None
    reasons: tuple[str, ...] = ()
    broken_in: datetime.date | None = None
    broken_by: tuple[str, ...] = ()
    shares: Shares = field(default_factory=dict)
    copy_of: str | None = None
    settled: bool = False
    open_until: str = ""
    waits_for: tuple[str, ...] = ()


class Surroundings(NamedTuple):
    """What else a standing depends on: open images and those aimed at the defence; weeks, and what is not published.

    `weeks`: of each the number of its line, and the day of its first submission. `waiting_since`: that of the next one.
    """

    open_images: Collection[ImageCourse]
    aimed: Sequence[ImageCourse]
    weeks: Sequence[tuple[int, datetime.date]]
    waiting_since: datetime.date | None


def reasons_against(run: DefenceRun, rules: ContestRules) -> tuple[str, ...]:
    """The reasons in a run why a defence is not eligible: on the list that decides, and its rate."""
    found = {
        "unpublished_list": run.unpublished is not None and not run.unpublished.eligible,
        "abstains": run.unpublished is None and not run.eligibility.answers_enough,
        "accuracy": run.unpublished is None and run.eligibility.answers_enough and not run.eligibility.is_eligible,
        "too_slow": run.images_per_minute < rules.limits.images_per_minute,
    }
    return tuple(reason for reason, applies in found.items() if applies)


@dataclass(slots=True)
class DefenceCourse:
    """A defence, and what has happened to it so far.

    `mistakes`: by SHA-256, the valid images that it gives the other group, and the day from which both are known.
    """

    rules: ContestRules
    defence: Defence
    stake: Stake | None = None
    runs: list[PastRun] = field(default_factory=list)
    mistakes: dict[str, tuple[ImageCourse, datetime.date]] = field(default_factory=dict)
    settled: DefenceStanding | None = None

    @property
    def answers(self) -> Mapping[str, str]:
        """The answers of its last run."""
        return self.runs[-1].run.answers if self.runs else {}

    def answers_as(self, other: "DefenceCourse") -> bool:
        """Whether both have answered some image, and none that both have answered differently."""
        both = self.answers.keys() & other.answers.keys()
        return bool(both) and all(self.answers[each] == other.answers[each] for each in both)

    def _is_within(self, image: ImageCourse) -> bool:
        """Whether an image was submitted while the defence was staked."""
        stake = self.stake
        return stake is not None and image.submission.number > stake.number and image.submission.day < stake.ends

    def _known_before(self) -> list[datetime.date]:
        """The days from which mistakes on images that were submitted before the stake are known."""
        before = self.stake.number if self.stake is not None else None
        return [day for each, day in self.mistakes.values() if before is None or each.submission.number < before]

    def _reasons(self) -> tuple[str, ...]:
        """The reasons against eligibility, by the first run and by images that were submitted before the stake."""
        closed = () if self.defence.open else ("closed",)
        is_run = self.runs and (self.stake is None or self.runs[0].day < self.stake.ends)
        mistake = ("mistake_before",) if self._known_before() else ()
        return (*closed, *(self.runs[0].reasons if is_run else ("not_run",)), *mistake)

    def standing(self, on: datetime.date, around: Surroundings) -> DefenceStanding:
        """The standing at the end of a day."""
        if self.settled is not None:
            return self.settled
        stake = self.stake
        reasons = self._reasons()
        name = self.defence.name
        if stake is None:
            return DefenceStanding(name, "ineligible" if reasons else "eligible", reasons=reasons)
        within = [each for each, _ in self.mistakes.values() if self._is_within(each)]
        if within:
            return self._broken(stake, within, reasons, around.open_images)
        # the run that decides a win: the first one from the end on over all images submitted before it
        last_week = max((number for number, first in around.weeks if first < stake.ends), default=0)
        last = next((each for each in self.runs if each.day >= stake.ends and each.number > last_week), None)
        reasons = reasons or (() if last is None else last.reasons)
        if reasons or on < stake.ends:
            status: DefenceStatus = "ineligible" if reasons else "staked"
            return DefenceStanding(name, status, stake.day, stake.batch, reasons=reasons)
        waits_for = self._waits_for(stake, around, has_run=last is not None)
        status = "awaiting" if waits_for else "won"
        return DefenceStanding(name, status, stake.day, stake.batch, waits_for=waits_for, settled=not waits_for)

    def _broken(
        self, stake: Stake, within: Sequence[ImageCourse], reasons: tuple[str, ...], images: Collection[ImageCourse]
    ) -> DefenceStanding:
        """The teams of the first week share equally.

        Organizers, the board's teams and the defence's own have no share; nobody has one of a defence that was never
        eligible while it was staked.
        """
        name = self.defence.name
        week = min(each.week for each in within)
        teams = tuple(sorted({each.submission.team for each in within if each.week == week}))
        sharing = {*teams} - self.rules.without_shares() - {team_of(name)}
        was_mistaken = any(day <= max(self.runs[0].day, stake.day) for day in self._known_before())
        if was_mistaken or {*reasons} - {"mistake_before"}:
            sharing = set()
        waiting = [each for each in images if each.week <= week and self._is_within(each)]
        until = [each.appeals_until for each in waiting if each.stage == "judged" and each.appeals_until is not None]
        open_until = str(max(until, default="")) if len(until) == len(waiting) else "verdicts are missing"
        return DefenceStanding(
            name, "broken", stake.day, stake.batch, reasons=reasons, broken_in=week, broken_by=teams,
            # fractions, because three thirds of a stake have to be the whole of it
            shares={team: Fraction(1, len(sharing)) for team in sorted(sharing)},
            settled=not open_until, open_until=open_until,
        )  # fmt: skip

    def _waits_for(self, stake: Stake, around: Surroundings, *, has_run: bool) -> tuple[str, ...]:
        """Open questions: verdicts on images submitted before the end, confirmations by the board, a last run."""
        rejected = [each for each in around.aimed if each.final_on and each.valid_group is None and not each.confirmed]
        found = {
            "publication": around.waiting_since is not None and around.waiting_since < stake.ends,
            "verdicts": any(each.submission.day < stake.ends for each in around.open_images),
            "confirmations": any(each.submission.day < stake.ends for each in rejected),
            "last_run": not has_run,
        }
        return tuple(question for question, is_open in found.items() if is_open)
