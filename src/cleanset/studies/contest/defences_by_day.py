"""The status of each defence as the days go by: eligible, staked, broken and by whom, won; and what it waits for."""

import datetime
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Literal, NamedTuple

from cleanset.statistics.coverage import overfitting
from cleanset.studies.contest.entries import DefenceRun, SubmittedImage, reasons_against, team_of
from cleanset.studies.contest.files import ContestFiles, Submission, in_order, submitted_images
from cleanset.studies.contest.image_course import ImageCourse, ImageState, events_by_image
from cleanset.studies.contest.parties import Parties
from cleanset.studies.contest.rules import ABSTAIN, after

DefenceStatus = Literal["ineligible", "eligible", "staked", "broken", "awaiting", "won"]
"""May not be staked; may be staked; staked; broken; staked long enough, with open questions (`waits_for`); won."""
MISSING_VERDICTS = "missing verdicts"
MISSING_RUN = "a run over that week"
_UNSETTLED = {MISSING_VERDICTS: "open: verdicts are missing", MISSING_RUN: "open: no run over that week yet"}
Shares = Mapping[str, Fraction]
"""Shares of one stake or one batch, by team."""


@dataclass(frozen=True, slots=True)
class DefenceStanding:
    """A defence on a day."""

    name: str
    status: DefenceStatus
    staked_on: datetime.date | None = None
    batch: str | None = None
    """The name of the batch that it is staked in."""

    reasons: tuple[str, ...] = ()
    """Reasons why it is not eligible."""

    broken_in: datetime.date | None = None
    """The first week, by its Friday, with a valid image that the defence gives the other group."""

    broken_by: tuple[str, ...] = ()
    """The teams of that week."""

    shares: Shares = field(default_factory=dict)
    """These teams' parts of the stake."""

    settled: bool = False
    """Whether nothing dated later changes that it is broken in this week and by these teams, or that it has won."""

    open_until: str = ""
    """The last day for appeals against images of that week and before, or the missing part; "" once settled."""

    waits_for: tuple[str, ...] = ()
    """Open questions before it wins."""

    overfitting: Fraction | None = None
    """Accuracy on the eligibility list minus accuracy on an unpublished one, in its first run over both."""

    @property
    def unsettled(self) -> str:
        """Until when it is open, or why, in words; "" once settled."""
        return _UNSETTLED.get(self.open_until, f"open until {self.open_until}") if self.open_until else ""


class _Mistake(NamedTuple):
    """A valid image that a defence gives the other group; `day`: from which on both are known."""

    day: datetime.date
    sha256: str
    submission: Submission


@dataclass(slots=True)
class _DayImages:
    """The published images of a week that were submitted on one day."""

    week: datetime.date
    open: dict[str, ImageState] = field(default_factory=dict)
    """Those without a final verdict."""

    closed_on: datetime.date | None = None
    """The last of the first days with a final verdict of the others; None without any."""


class DefencesByDay:
    """The published images with their states, and the answers of each defence to them, as the days go by.

    Each day costs as much as its entries, and as the defences that are staked and not settled.
    """

    def __init__(self, files: ContestFiles) -> None:
        self._files = files
        self._on = datetime.date.min
        self._stakes = {name: stake for stake in files.stakes for name in stake.defences}
        # the files come in any order; the order of submission is that of the standing and the page
        self._unpublished: dict[datetime.date, list[tuple[SubmittedImage, Submission]]] = {}
        for each in in_order(files.submissions):
            images = [(image, each) for image in sorted(each.manifest.images, key=lambda image: image.sha256)]
            self._unpublished.setdefault(each.week, []).extend(images)
        self._events = events_by_image(files)
        self._due = [(event[0], sha256) for sha256, events in self._events.items() for event in events]
        """When the state of an image may change: a heap."""
        heapify(self._due)
        self._waiting_runs = sorted(files.runs, key=lambda each: each.date, reverse=True)
        self._breaking = Parties(files).breaking
        self._courses: dict[str, ImageCourse] = {}
        self._submissions: dict[str, Submission] = {}
        self.states: dict[str, ImageState] = {}
        """By SHA-256, in the order of submission."""
        self._days: dict[tuple[datetime.date, datetime.date], _DayImages] = {}
        """By the day of submission and the week."""
        self._aimed: dict[str, list[str]] = {}
        """By defence, the published images that are aimed at it."""
        self._valid: dict[str, str] = {}
        """The group of each valid image."""
        self._runs: dict[str, list[DefenceRun]] = {name: [] for name in files.defences}
        self._counting: dict[str, list[tuple[DefenceRun, Sequence[str]]]] = {name: [] for name in files.defences}
        """The runs over the list that decides who is eligible, with the reasons against it in their results on it."""
        self._mistakes: dict[str, dict[str, _Mistake]] = {name: {} for name in files.defences}
        self._kept: dict[str, DefenceStanding] = {}
        """The standings that change only with a run, a stake or a mistake."""
        self._sides: dict[str, int] = {}
        """Of each published image the longer side."""
        # many defences are staked on one day
        self._submitted_before = cache(self._images_before)

    def advance(self, on: datetime.date) -> None:
        """Go on to the end of a day."""
        self._on = on
        touched = dict.fromkeys(self._publish())
        while self._due and self._due[0][0] <= on:
            touched[heappop(self._due)[1]] = None
        valid = [sha256 for sha256 in touched if sha256 in self._courses and self._is_newly_valid(sha256)]
        for run in chain.from_iterable(self._runs.values() if valid else ()):
            self._find_mistakes(run, valid)
        while self._waiting_runs and self._waiting_runs[-1].date <= on:
            run = self._waiting_runs.pop()
            self._runs[run.defence].append(run)
            self._count(run)
            self._kept.pop(run.defence, None)
            self._find_mistakes(run, self._valid)

    def _publish(self) -> list[str]:
        """Add the images of the weeks that have ended; their SHA-256."""
        found = []
        for week in sorted(each for each in self._unpublished if each <= self._on):
            for image, submission in self._unpublished.pop(week):
                found.append(image.sha256)
                self._submissions[image.sha256] = submission
                self._sides[image.sha256] = max(image.width, image.height)
                self.states[image.sha256] = ImageState("open")
                self._aimed.setdefault(submission.manifest.target, []).append(image.sha256)
                self._courses[image.sha256] = ImageCourse(
                    self._files.rules,
                    image,
                    attacker=submission.team,
                    target_team=team_of(submission.manifest.target),
                    breaking=partial(self._breaking, image.sha256),
                )
        return found

    def _is_newly_valid(self, sha256: str) -> bool:
        """Bring an image up to the day; whether it is valid since."""
        events = self._events.get(sha256, [])
        new = [each for each in events if each[0] <= self._on]
        self._events[sha256] = events[len(new) :]
        state = self.states[sha256] = self._courses[sha256].state_on(self._on, new)
        if state.appeals_until is not None:
            heappush(self._due, (state.appeals_until, sha256))
        submission = self._submissions[sha256]
        of_day = self._days.setdefault((submission.day, submission.week), _DayImages(submission.week))
        if state.closed_on is None:
            of_day.open[sha256] = state
        else:
            of_day.open.pop(sha256, None)
            of_day.closed_on = max(of_day.closed_on or state.closed_on, state.closed_on)
        if state.valid_group is None or sha256 in self._valid:
            return False
        self._valid[sha256] = state.valid_group
        return True

    def _count(self, run: DefenceRun) -> None:
        rules = self._files.rules
        hidden = run.unpublished
        if rules.unpublished is None:
            self._counting[run.defence].append((run, reasons_against(run.eligibility, rules)))
        elif hidden is not None and hidden.list_sha256 == rules.unpublished:
            against = hidden.against if hidden.figures is None else reasons_against(hidden.figures, rules)
            self._counting[run.defence].append((run, against))

    def _find_mistakes(self, run: DefenceRun, images: Iterable[str]) -> None:
        """Add the valid images among some that a run gives the other group; the first run that does so stays.

        None is larger than what the defence sees: it was submitted before the defence was staked, and people may have
        seen more.
        """
        known = self._mistakes[run.defence]
        answers = run.answers
        valid = self._valid
        most = self._files.defences[run.defence].pixels
        for sha256 in images:
            is_mistaken = answers.get(sha256, ABSTAIN) not in (valid[sha256], ABSTAIN)
            if is_mistaken and self._sides[sha256] <= most and sha256 not in known:
                valid_on = self.states[sha256].final_on
                assert valid_on is not None
                known[sha256] = _Mistake(max(run.date, valid_on), sha256, self._submissions[sha256])
                self._kept.pop(run.defence, None)

    def defences(self) -> list[DefenceStanding]:
        """The standings of the defences that were submitted by then, by name."""
        there = (name for name, each in sorted(self._files.defences.items()) if each.submitted <= self._on)
        return [self._kept.get(name) or self._defence(name) for name in there]

    def _defence(self, name: str) -> DefenceStanding:
        figures = (
            overfitting(run.eligibility, run.unpublished.figures)
            for run in self._runs[name]
            if run.unpublished is not None and run.unpublished.figures is not None
        )
        found = replace(self._status(name), overfitting=next(figures, None))
        if found.settled or name not in self._stakes:
            self._kept[name] = found
        return found

    def _status(self, name: str) -> DefenceStanding:
        stake = self._stakes.get(name)
        mistakes = sorted(self._mistakes[name].values())
        if stake is None or stake.date > self._on:
            reasons = self._with_mistake(self._why_ineligible(name), mistakes)
            return DefenceStanding(name, "ineligible" if reasons else "eligible", reasons=reasons)
        ends = after(stake.date, self._files.rules.limits.unbroken_days)
        within = [each for each in mistakes if stake.date <= each.submission.day < ends]
        before = [each for each in mistakes if each.submission.day < stake.date]
        reasons = self._why_ineligible(name, ends)
        last = self._last_run(name, ends)
        of_last = () if last is None else self._against(*last)
        won_on = None if last is None or reasons or of_last else self._won_on(name, ends, last[0].date)
        # what is seen after the win takes nothing back
        if won_on is not None and not any(each.day <= won_on for each in (*within, *before)):
            return DefenceStanding(name, "won", stake.date, stake.batch, settled=True)
        if within:
            return self._broken(name, within, before, ends)
        reasons = self._with_mistake(reasons or of_last, before)
        if reasons:
            return DefenceStanding(name, "ineligible", stake.date, stake.batch, reasons=reasons)
        if self._on < ends:
            return DefenceStanding(name, "staked", stake.date, stake.batch)
        waits_for = self._waits_for(name, ends, has_run=last is not None)
        return DefenceStanding(name, "awaiting", stake.date, stake.batch, waits_for=waits_for)

    @staticmethod
    def _with_mistake(reasons: tuple[str, ...], mistakes: Sequence[_Mistake]) -> tuple[str, ...]:
        return (*reasons, "mistake_before") if mistakes else reasons

    def _broken(
        self, name: str, within: Sequence[_Mistake], before: Sequence[_Mistake], ends: datetime.date
    ) -> DefenceStanding:
        """A broken defence, staked until `ends`: the teams of the first week share equally.

        Organizers, the board's teams and the defence's own have no share; nobody has one of a defence that was never
        eligible while it was staked.
        """
        stake = self._stakes[name]
        settled_on, week = self._settled_on(name, within)
        if settled_on is not None:
            within = [each for each in within if each.day <= settled_on]
            before = [each for each in before if each.day <= settled_on]
            # a later run makes nobody eligible any more
            ends = min(ends, after(settled_on, 1))
        reasons = self._why_ineligible(name, ends)
        teams = tuple(sorted({each.submission.team for each in within if each.submission.week == week}))
        without = self._files.rules.without_shares() | {team_of(name)}
        sharing = [team for team in teams if team not in without]
        first = self._counting[name][0][0].date if not reasons else None
        if first is None or any(each.day <= max(first, stake.date) for each in before):
            sharing = []
        # fractions, because three thirds of a stake have to be the whole of it
        shares = {team: Fraction(1, len(sharing)) for team in sharing}
        return DefenceStanding(
            name,
            "broken",
            stake.date,
            stake.batch,
            reasons=self._with_mistake(reasons, before),
            broken_in=week,
            broken_by=teams,
            shares=shares,
            settled=settled_on is not None,
            open_until="" if settled_on else self._open_until(name, week),
        )

    def _settled_on(self, name: str, within: Sequence[_Mistake]) -> tuple[datetime.date | None, datetime.date]:
        """The day from which on nothing changes who has broken a defence, None if it has not come, and the week.

        On that day no image of the week or before is open, and the defence has answered all of them.
        """
        days = sorted({each.day for each in within})
        for day, following in zip(days, [*days[1:], None], strict=True):
            week = min(each.submission.week for each in within if each.day <= day)
            images = self._images_until(name, week)
            # the first run over all images of the week; a later one was over all of them, or it was refused
            runs = (each for each in self._runs[name] if each.date >= week)
            run = next((each.date for each in runs if each.date > week or self._is_over_all(each, week)), None)
            if run is None or any(each.open for each in images):
                continue
            settled = max((day, run, *(each.closed_on for each in images if each.closed_on is not None)))
            if following is None or settled < following:
                return settled, week
        return None, week

    def _is_over_all(self, run: DefenceRun, week: datetime.date) -> bool:
        return all(each.week > week or sha256 in run.answers for sha256, each in self._submissions.items())

    def _images_until(self, name: str, week: datetime.date) -> list[_DayImages]:
        """The images submitted from the stake on that could break a defence in a week or before."""
        staked = self._stakes[name].date
        ends = after(staked, self._files.rules.limits.unbroken_days)
        return [each for (day, _), each in self._days.items() if staked <= day < ends and each.week <= week]

    def _open_until(self, name: str, week: datetime.date) -> str:
        last = [each for of_day in self._images_until(name, week) for each in of_day.open.values()]
        if any(each.appeals_until is None for each in last):
            return MISSING_VERDICTS
        return str(max(each.appeals_until for each in last if each.appeals_until)) if last else MISSING_RUN

    def _why_ineligible(self, name: str, ends: datetime.date = datetime.date.max) -> tuple[str, ...]:
        """The reasons against eligibility, by the first run; one of a staked defence has to be before `ends`."""
        reasons = () if self._files.defences[name].open else ("closed",)
        first = next((self._against(*each) for each in self._counting[name] if each[0].date < ends), ("not_run",))
        return (*reasons, *first)

    def _against(self, run: DefenceRun, on_list: Sequence[str]) -> tuple[str, ...]:
        """The reasons against eligibility in one run, with those on the list that decides."""
        too_slow = run.images_per_minute < self._files.rules.limits.images_per_minute
        return (*on_list, "too_slow") if too_slow else tuple(on_list)

    def _last_run(self, name: str, ends: datetime.date) -> tuple[DefenceRun, Sequence[str]] | None:
        """The run that decides a win: the first one from `ends` on over all images submitted before, and the list."""
        if self._on < ends:
            return None
        submitted, _ = self._submitted_before(ends)
        runs = (each for each in self._counting[name] if each[0].date >= ends)
        return next((each for each in runs if submitted <= each[0].answers.keys()), None)

    def _won_on(self, name: str, ends: datetime.date, last: datetime.date) -> datetime.date | None:
        """The day on which a defence wins unless it is broken by then; None while something is missing."""
        if self._waits_for(name, ends, has_run=True):
            return None
        days = [last, *(each.closed_on for each in self._published_before(ends) if each.closed_on is not None)]
        for state in self._aimed_before(name, ends):
            # an image that the board found unambiguous needs no confirmation from then on
            found_valid = state.final_on if state.valid_group else None
            days.append(min(day for day in (state.confirmed_on, found_valid) if day is not None))
        return max(days)

    def _waits_for(self, name: str, ends: datetime.date, *, has_run: bool) -> tuple[str, ...]:
        """Open questions: verdicts on images submitted before `ends`, confirmations by the board, a last run."""
        aimed = self._aimed_before(name, ends)
        rejected = [each for each in aimed if each.stage == "final" and each.valid_group is None]
        _, last_week = self._submitted_before(ends)
        found = {
            "publication": last_week > self._on,
            "verdicts": any(each.open for each in self._published_before(ends)),
            "confirmations": not all(each.confirmed for each in rejected),
            "last_run": not has_run,
        }
        return tuple(question for question, is_open in found.items() if is_open)

    def _published_before(self, ends: datetime.date) -> list[_DayImages]:
        """The published images that were submitted before a day."""
        return [each for (day, _), each in self._days.items() if day < ends]

    def _aimed_before(self, name: str, ends: datetime.date) -> list[ImageState]:
        """The states of the published images that were submitted before a day and aimed at a defence."""
        return [self.states[each] for each in self._aimed.get(name, ()) if self._submissions[each].day < ends]

    def _images_before(self, day: datetime.date) -> tuple[Set[str], datetime.date]:
        """All images submitted before a day that has come, and the last of their weeks."""
        submissions = [each for each in self._files.submissions if each.day < day]
        images = {image.sha256 for _, image in submitted_images(submissions)}
        return images, max((each.week for each in submissions), default=datetime.date.min)
