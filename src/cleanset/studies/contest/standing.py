"""The standing of a contest on a day, from its files alone, and its history: defences broken and won, and shares."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from typing import Literal, NamedTuple

from cleanset.statistics.coverage import Eligibility, overfitting
from cleanset.studies.contest.consistency import Parties, check_files
from cleanset.studies.contest.files import (
    ContestFiles,
    DefenceRun,
    Submission,
    SubmittedImage,
    counted,
    days_of,
    in_order,
    repeats,
    submitted_images,
    team_of,
    until,
)
from cleanset.studies.contest.judges import Events, ImageCourse, ImageState, events_by_image, left_out
from cleanset.studies.contest.rules import ABSTAIN, after

DefenceStatus = Literal["ineligible", "eligible", "staked", "broken", "awaiting", "won"]
"""May not be staked; may be staked; staked; broken; staked long enough, with open questions (`waits_for`); won."""
Shares = dict[str, Fraction]
"""Shares of one stake or one batch, by team."""


@dataclass(frozen=True, slots=True)
class DefenceStanding:
    """A defence on a day.

    `reasons`: why it is not eligible. `broken_in`: the first week, by its Friday, with a valid image that the defence
    gives the other group; `broken_by`: the teams of that week; `shares`: their parts of the stake. `settled`: nothing
    dated later changes that it is broken in this week and by these teams, or that it has won; `open_until`: of a broken
    defence that is not settled, the last day for appeals against images of that week and before, or what is missing.
    `waits_for`: open questions before it wins. `overfitting`: accuracy on the eligibility list
    minus accuracy on an unpublished one, in its first run over both; None without such a run.
    """

    name: str
    status: DefenceStatus
    staked_on: datetime.date | None = None
    batch: str | None = None
    reasons: tuple[str, ...] = ()
    broken_in: datetime.date | None = None
    broken_by: tuple[str, ...] = ()
    shares: Shares = field(default_factory=dict)
    settled: bool = False
    open_until: str = ""
    waits_for: tuple[str, ...] = ()
    overfitting: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The contest at the end of a day.

    `images`: the state of every published image, by its SHA-256, in the order of submission. `attackers`: the sum of
    a team's settled shares of the stakes of broken defences; `defenders`: of its shares of the batches that have won.
    `left_out`: by id, the judges whose answers do not count, and why. `notes`: sentences on what this contest does not
    check.
    """

    on: datetime.date
    images: Mapping[str, ImageState]
    defences: Sequence[DefenceStanding]
    attackers: Shares
    defenders: Shares
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def standing(files: ContestFiles, on: datetime.date) -> Standing:
    """The standing at the end of a day, from entries dated up to it; the order of files does not matter.

    Raises CleansetError for files that contradict each other or the rules.
    """
    files = until(files, on)
    check_files(files)
    said = notes(files)
    files = replace(files, submissions=counted(files.submissions))
    contest = _Contest(files, on)
    defences = [contest.defence(name) for name in sorted(files.defences)]
    attackers = _summed(each.shares for each in defences if each.settled)
    defenders = _shares_of_batches(files, defences)
    return Standing(on, contest.states, defences, attackers, defenders, left_out(files, on), said)


def notes(files: ContestFiles) -> tuple[str, ...]:
    """The sentences on what the contest does not check."""
    found = []
    if files.rules.unpublished is None:
        found.append(
            "No unpublished list decides who is eligible: a defence that knows the published images by heart is, too."
        )
    if files.rules.history == "made_up":
        found.append("The history of this contest is made up: git is not asked whether anything was changed.")
    unconfined = sorted({run.defence for run in files.runs if run.confined is False})
    if unconfined:
        found.append(f"Ran unconfined, so that it could read whatever the machine has: {', '.join(unconfined)}.")
    return (*found, *(f"Left out: {each}, which counts." for each in repeats(files.submissions)))


class _Mistake(NamedTuple):
    """A valid image that a defence gives the other group; `day`: from which on both are known."""

    day: datetime.date
    sha256: str
    submission: Submission


class _Before(NamedTuple):
    """Images submitted before a day: all of them, the states of published ones by target, the last day of a verdict."""

    submitted: set[str]
    aimed: Mapping[str, Sequence[ImageState]]
    is_unpublished: bool
    is_open: bool
    closed_on: Sequence[datetime.date]


class _Contest:
    """The published images with their states, and the answers of each defence to them."""

    def __init__(self, files: ContestFiles, on: datetime.date) -> None:
        self._files, self._on = files, on
        self._runs: dict[str, list[DefenceRun]] = {name: [] for name in files.defences}
        for run in sorted(files.runs, key=lambda each: each.date):
            self._runs[run.defence].append(run)
        self._stakes = {name: stake for stake in files.board.stakes for name in stake.defences}
        # the files come in any order; the order of submission is that of the standing and the page
        published = [
            (image, each)
            for each in in_order(files.submissions)
            if each.week <= on
            for image in sorted(each.manifest.images, key=lambda image: image.sha256)
        ]
        events, parties = events_by_image(files), Parties(files)
        self.states = {image.sha256: self._state(image, each, events, parties) for image, each in published}
        self._images = [(self.states[image.sha256], each) for image, each in published]
        self._valid = [
            (image.sha256, group, each)
            for image, each in published
            if (group := self.states[image.sha256].valid_group) is not None
        ]
        # many defences are staked on one day
        self._submitted_before = cache(self._images_before)
        self._last_of_weeks = cache(self._last_closed_by_week)

    def _state(
        self, image: SubmittedImage, submission: Submission, events: Mapping[str, Events], parties: Parties
    ) -> ImageState:
        defenders = partial(parties.defenders, image.sha256, team_of(submission.manifest.target))
        course = ImageCourse(self._files.rules, image, submission.team, defenders)
        return course.state_on(self._on, events.get(image.sha256, []))

    def mistakes(self, name: str) -> list[_Mistake]:
        """The valid images that a defence gives the other group in any of its runs, by the day of the mistake."""
        found: dict[str, _Mistake] = {}
        # the runs are in the order of their days, so that the first wrong one stays
        for run in self._runs[name]:
            for sha256, group, submission in self._valid:
                if sha256 not in found and run.answers.get(sha256, ABSTAIN) not in (group, ABSTAIN):
                    valid_on = self.states[sha256].final_on
                    assert valid_on is not None
                    found[sha256] = _Mistake(max(run.date, valid_on), sha256, submission)
        return sorted(found.values())

    def defence(self, name: str) -> DefenceStanding:
        """The standing of one defence."""
        found = (
            overfitting(run.eligibility, run.unpublished) for run in self._runs[name] if run.unpublished is not None
        )
        return replace(self._status(name), overfitting=next(found, None))

    def _status(self, name: str) -> DefenceStanding:
        stake, mistakes = self._stakes.get(name), self.mistakes(name)
        if stake is None:
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
            return DefenceStanding(name, "ineligible", stake.date, stake.batch, reasons)
        if self._on < ends:
            return DefenceStanding(name, "staked", stake.date, stake.batch)
        return DefenceStanding(
            name, "awaiting", stake.date, stake.batch, waits_for=self._waits_for(name, ends, last is not None)
        )

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
        first = self._counting_runs(name)[0][0].date if not reasons else None
        if first is None or any(each.day <= max(first, stake.date) for each in before):
            sharing = []
        # fractions, because three thirds of a stake have to be the whole of it
        shares = {team: Fraction(1, len(sharing)) for team in sharing}
        return DefenceStanding(
            name, "broken", stake.date, stake.batch, self._with_mistake(reasons, before), week, teams, shares,
            settled=settled_on is not None,
            open_until="" if settled_on else self._open_until(name, week),
        )  # fmt: skip

    def _settled_on(self, name: str, within: Sequence[_Mistake]) -> tuple[datetime.date | None, datetime.date]:
        """The day from which on nothing changes who has broken a defence, None if it has not come, and the week.

        On that day no image of the week or before is open, and the defence has answered all of them.
        """
        days = sorted({each.day for each in within})
        for day, following in zip(days, [*days[1:], None], strict=True):
            week = min(each.submission.week for each in within if each.day <= day)
            closed = [each.closed_on for each in self._states_until(name, week)]
            # the first run over all images of the week
            run = next((each.date for each in self._runs[name] if each.date > week), None)
            if run is None or None in closed:
                continue
            settled = max((day, run, *(each for each in closed if each is not None)))
            if following is None or settled < following:
                return settled, week
        return None, week

    def _states_until(self, name: str, week: datetime.date) -> list[ImageState]:
        """The states of the images submitted from the stake on that could break it in a week or before."""
        weeks = self._last_of_weeks(self._stakes[name].date)
        return [each for one, states in weeks.items() if one <= week for each in states]

    def _last_closed_by_week(self, staked: datetime.date) -> dict[datetime.date, list[ImageState]]:
        """The open images of each week of a stake, or else the one that was closed last: nothing comes after these."""
        ends, weeks = after(staked, self._files.rules.limits.unbroken_days), dict[datetime.date, list[ImageState]]()
        for state, submission in self._images:
            if staked <= submission.day < ends:
                weeks.setdefault(submission.week, []).append(state)
        return {week: _last_closed(states) for week, states in weeks.items()}

    def _open_until(self, name: str, week: datetime.date) -> str:
        last = [each for each in self._states_until(name, week) if each.closed_on is None]
        if any(each.appeals_until is None for each in last):
            return "missing verdicts"
        return str(max(each.appeals_until for each in last if each.appeals_until)) if last else "a run over that week"

    def _counting_runs(self, name: str) -> list[tuple[DefenceRun, Eligibility]]:
        """The runs over the list that decides who is eligible, with the figures on it."""
        wanted = self._files.rules.unpublished
        if wanted is None:
            return [(run, run.eligibility) for run in self._runs[name]]
        hidden = [(run, run.unpublished) for run in self._runs[name] if run.unpublished is not None]
        return [each for each in hidden if each[1].list_sha256 == wanted]

    def _why_ineligible(self, name: str, ends: datetime.date = datetime.date.max) -> tuple[str, ...]:
        """The reasons against eligibility, by the first run; one of a staked defence has to be before `ends`."""
        reasons = () if self._files.defences[name].open else ("closed",)
        first = next((self._against(*each) for each in self._counting_runs(name) if each[0].date < ends), ("not_run",))
        return (*reasons, *first)

    def _against(self, run: DefenceRun, eligibility: Eligibility) -> tuple[str, ...]:
        """The reasons against eligibility in one run over the list that decides."""
        rules = self._files.rules
        too_few = rules.eligibility == "perfect_at_80" and eligibility.images < rules.limits.eligibility_images
        found = {
            "abstains": not eligibility.answers_enough,
            "accuracy": eligibility.answers_enough and not eligibility.fulfils(rules.eligibility),
            "too_few_images": too_few,
            "too_slow": run.images_per_minute < rules.limits.images_per_minute,
        }
        return tuple(reason for reason, applies in found.items() if applies)

    def _last_run(self, name: str, ends: datetime.date) -> tuple[DefenceRun, Eligibility] | None:
        """The run that decides a win: the first one from `ends` on over all images submitted before, and the list."""
        if self._on < ends:
            return None
        submitted = self._submitted_before(ends).submitted
        runs = (each for each in self._counting_runs(name) if each[0].date >= ends)
        return next((each for each in runs if submitted <= each[0].answers.keys()), None)

    def _won_on(self, name: str, ends: datetime.date, last: datetime.date) -> datetime.date | None:
        """The day on which a defence wins unless it is broken by then; None while something is missing."""
        if self._waits_for(name, ends, has_run=True):
            return None
        before = self._submitted_before(ends)
        days = [last, *before.closed_on]
        for state in before.aimed.get(name, ()):
            # an image that the board found unambiguous needs no confirmation from then on
            found_valid = state.final_on if state.valid_group else None
            days.append(min(day for day in (state.confirmed_on, found_valid) if day is not None))
        return max(days)

    def _waits_for(self, name: str, ends: datetime.date, has_run: bool) -> tuple[str, ...]:
        """Open questions: verdicts on images submitted before `ends`, confirmations by the board, a last run."""
        before = self._submitted_before(ends)
        found = []
        if before.is_unpublished:
            found.append("publication")
        if before.is_open:
            found.append("verdicts")
        aimed = before.aimed.get(name, ())
        if any(each.stage == "final" and each.valid_group is None and not each.confirmed for each in aimed):
            found.append("confirmations")
        return tuple(found) if has_run else (*found, "last_run")

    def _images_before(self, day: datetime.date) -> _Before:
        submissions = [each for each in self._files.submissions if each.day < day]
        aimed: dict[str, list[ImageState]] = {}
        for state, submission in self._images:
            if submission.day < day:
                aimed.setdefault(submission.manifest.target, []).append(state)
        closed = [each.closed_on for states in aimed.values() for each in states]
        return _Before(
            {image.sha256 for _, image in submitted_images(submissions)},
            aimed,
            any(each.week > self._on for each in submissions),
            None in closed,
            # of all the days only the last one counts
            sorted(each for each in closed if each is not None)[-1:],
        )


def _last_closed(states: Sequence[ImageState]) -> list[ImageState]:
    still_open = [each for each in states if each.closed_on is None]
    return still_open or [max(states, key=lambda each: each.closed_on or datetime.date.min)]


def _shares_of_batches(files: ContestFiles, defences: Sequence[DefenceStanding]) -> Shares:
    """Share each batch equally among its defences that have won, once no other can still win."""
    found: list[Shares] = []
    for stake in files.board.stakes:
        members = [each for each in defences if each.batch == stake.batch]
        if any(each.status in ("staked", "awaiting") for each in members):
            continue
        winners = [team_of(each.name) for each in members if each.status == "won"]
        sharing = [team for team in winners if team not in files.rules.without_shares()]
        found += [{team: Fraction(1, len(sharing))} for team in sharing]
    return _summed(found)


def _summed(shares: Iterable[Shares]) -> Shares:
    total: Shares = {}
    for each in shares:
        for team, share in each.items():
            total[team] = total.get(team, Fraction(0)) + share
    return dict(sorted(total.items()))


def days_of_change(files: ContestFiles, on: datetime.date) -> list[datetime.date]:
    """The days up to `on` on which anything is dated or due, sorted; the standing changes on no other day."""
    limits = files.rules.limits
    answered = {one.date for each in files.answers for one in each.answers.values()}
    found = days_of(files) | {after(day, limits.appeal_days) for day in answered}
    found |= {after(each.date, limits.unbroken_days) for each in files.board.stakes}
    return sorted(day for day in found if day <= on)


def history(files: ContestFiles, on: datetime.date) -> list[Standing]:
    """The standings up to `on` that differ from the previous one in the state of a defence or in shares."""
    found: list[Standing] = []
    for day in days_of_change(files, on):
        next_one = standing(files, day)
        if not found or _shown(next_one) != _shown(found[-1]):
            found.append(next_one)
    return found


def _shown(each: Standing) -> tuple[Sequence[tuple[str, str, tuple[str, ...]]], object, object]:
    return [(one.name, one.status, one.waits_for) for one in each.defences], each.attackers, each.defenders
