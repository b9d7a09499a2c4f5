"""The standing of a contest on a day, from its files alone, and its history: defences broken and won, and shares."""

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from cleanset.statistics.coverage import overfitting
from cleanset.studies.contest.consistency import check_files
from cleanset.studies.contest.days import after
from cleanset.studies.contest.entries import Appeal, BoardDecision, SubmittedImage
from cleanset.studies.contest.files import ContestFiles, Submission, team_of, until
from cleanset.studies.contest.image_state import ImageCase, ImageState, state_of
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.runs import DefenceRun

DefenceStatus = Literal["ineligible", "eligible", "staked", "broken", "awaiting", "won"]
"""May not be staked; may be staked; staked; broken; staked long enough, with open questions (`waits_for`); won."""
Shares = dict[str, Fraction]
"""Shares of one stake or one batch, by team."""


@dataclass(frozen=True, slots=True)
class DefenceStanding:
    """A defence on a day.

    `reasons`: why it is not eligible. `broken_in`: the first week, by its Friday, with a valid image that the defence
    gives the other group; `broken_by`: the teams of that week; `shares`: their parts of the stake, `settled` once no
    image up to that week can change them. `waits_for`: open questions before it wins. `overfitting`: accuracy on the
    eligibility list minus accuracy on an unpublished one, in its first run over both; None without such a run.
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
    waits_for: tuple[str, ...] = ()
    overfitting: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The contest at the end of a day.

    `images`: the state of every published image, by its SHA-256, in the order of submission. `attackers`: the sum of
    a team's settled shares of the stakes of broken defences; `defenders`: of its shares of the batches that have won.
    """

    on: datetime.date
    images: Mapping[str, ImageState]
    defences: Sequence[DefenceStanding]
    attackers: Shares
    defenders: Shares


def standing(files: ContestFiles, on: datetime.date) -> Standing:
    """The standing at the end of a day, from entries dated up to it; the order of files does not matter.

    Raises CleansetError for files that contradict each other or the rules.
    """
    files = until(files, on)
    check_files(files)
    contest = _Contest(files, on)
    defences = [contest.defence(name) for name in sorted(files.defences)]
    attackers = _summed(each.shares for each in defences if each.settled)
    return Standing(on, contest.states, defences, attackers, _shares_of_batches(files, defences))


@dataclass(frozen=True, slots=True)
class _Published:
    """An image whose week has ended, and its submission."""

    image: SubmittedImage
    submission: Submission


class _Contest:
    """The published images with their states, and the answers of each defence to them."""

    def __init__(self, files: ContestFiles, on: datetime.date) -> None:
        self._files, self._on = files, on
        self._runs: dict[str, list[DefenceRun]] = {name: [] for name in files.defences}
        for run in sorted(files.runs, key=lambda each: each.date):
            self._runs[run.defence].append(run)
        self._stakes = {name: stake for stake in files.board.stakes for name in stake.defences}
        # the files come in any order; the order of submission is that of the standing and the page
        ordered = sorted(files.submissions, key=lambda each: (each.manifest.submitted, each.team, each.number))
        self._images = [
            _Published(image, each)
            for each in ordered
            if each.week <= on
            for image in sorted(each.manifest.images, key=lambda image: image.sha256)
        ]
        self.states = self._states()
        self._valid = [
            (each.image.sha256, group, each.submission)
            for each in self._images
            if (group := self.states[each.image.sha256].valid_group) is not None
        ]
        self._before: dict[datetime.date, Mapping[str, str]] = {}
        self._open = [each for each in self._images if self.states[each.image.sha256].stage != "final"]

    def _states(self) -> dict[str, ImageState]:
        answers: dict[str, list[tuple[str, JudgeAnswer]]] = {}
        for each in self._files.answers:
            for sha256, answer in each.answers.items():
                answers.setdefault(sha256, []).append((each.judge, answer))
        appeals: dict[str, list[Appeal]] = {}
        for appeal in self._files.board.appeals:
            appeals.setdefault(appeal.image, []).append(appeal)
        decisions: dict[str, list[BoardDecision]] = {}
        for decision in self._files.board.decisions:
            decisions.setdefault(decision.image, []).append(decision)
        return {
            (sha256 := each.image.sha256): state_of(
                ImageCase(
                    each.image,
                    each.submission.team,
                    self._defenders_of(each),
                    answers.get(sha256, ()),
                    appeals.get(sha256, ()),
                    decisions.get(sha256, ()),
                ),
                self._files.rules,
                self._on,
            )
            for each in self._images
        }

    def _defenders_of(self, published: _Published) -> "_Defenders":
        return _Defenders(self._runs, published.image.sha256, team_of(published.submission.manifest.target))

    def mistakes(self, name: str) -> list[tuple[str, Submission]]:
        """The valid images that a defence gives the other group in any of its runs, in the order of submission."""
        found = {
            sha256: submission
            for run in self._runs[name]
            for sha256, group, submission in self._valid
            if run.answers.get(sha256, ABSTAIN) not in (group, ABSTAIN)
        }
        return sorted(found.items(), key=lambda each: (each[1].manifest.submitted, each[1].team, each[0]))

    def defence(self, name: str) -> DefenceStanding:
        """The standing of one defence."""
        found = (
            overfitting(run.eligibility.eligibility(), run.unpublished.eligibility())
            for run in self._runs[name]
            if run.unpublished is not None
        )
        return replace(self._status(name), overfitting=next(found, None))

    def _status(self, name: str) -> DefenceStanding:
        stake, mistakes = self._stakes.get(name), self.mistakes(name)
        if stake is None:
            reasons = self._why_ineligible(name, bool(mistakes))
            return DefenceStanding(name, "ineligible" if reasons else "eligible", reasons=reasons)
        ends = after(stake.date, self._files.rules.limits.unbroken_days)
        broken = [submission for _, submission in mistakes if stake.date <= submission.day < ends]
        reasons = self._why_ineligible(name, any(submission.day < stake.date for _, submission in mistakes))
        if broken:
            return self._broken(name, broken, reasons)
        if reasons:
            return DefenceStanding(name, "ineligible", stake.date, stake.batch, reasons)
        if self._on < ends:
            return DefenceStanding(name, "staked", stake.date, stake.batch)
        waits_for = self._waits_for(name, ends)
        return DefenceStanding(name, "awaiting" if waits_for else "won", stake.date, stake.batch, waits_for=waits_for)

    def _broken(self, name: str, by: list[Submission], reasons: tuple[str, ...]) -> DefenceStanding:
        """A broken defence: the teams of the first week share equally, except organizers and the board's teams."""
        stake, week = self._stakes[name], min(submission.week for submission in by)
        teams = tuple(sorted({submission.team for submission in by if submission.week == week}))
        sharing = [team for team in teams if team not in self._files.rules.without_shares()]
        # an open image of that week or an earlier one could still change who shares
        settled = all(each.submission.week > week or each.submission.day < stake.date for each in self._open)
        # fractions, because three thirds of a stake have to be the whole of it
        shares = {team: Fraction(1, len(sharing)) for team in sharing}
        return DefenceStanding(name, "broken", stake.date, stake.batch, reasons, week, teams, shares, settled)

    def _why_ineligible(self, name: str, mistaken_before: bool) -> tuple[str, ...]:
        """The reasons against eligibility, by the first run; mistakes on images from before the stake always count."""
        reasons = [] if self._files.defences[name].open else ["closed"]
        if not self._runs[name]:
            reasons.append("not_run")
        else:
            first, rules = self._runs[name][0], self._files.rules
            if not first.eligibility.eligibility().answers_enough:
                reasons.append("abstains")
            elif not first.eligibility.eligibility().fulfils(rules.eligibility):
                reasons.append("accuracy")
            if first.images_per_minute < rules.limits.images_per_minute:
                reasons.append("too_slow")
        return (*reasons, "mistake_before") if mistaken_before else tuple(reasons)

    def _waits_for(self, name: str, ends: datetime.date) -> tuple[str, ...]:
        """Open questions: verdicts on images submitted before `ends`, confirmations by the board, a last run."""
        within, found = self._submitted_before(ends), []
        if any(submission.day < ends and submission.week > self._on for submission in self._files.submissions):
            found.append("publication")
        if any(each.submission.day < ends for each in self._open):
            found.append("verdicts")
        aimed = [self.states[sha256] for sha256, target in within.items() if target == name]
        if any(each.stage == "final" and each.valid_group is None and not each.confirmed for each in aimed):
            found.append("confirmations")
        if not any(run.date >= ends and within.keys() <= run.answers.keys() for run in self._runs[name]):
            found.append("last_run")
        return tuple(found)

    def _submitted_before(self, day: datetime.date) -> Mapping[str, str]:
        """The targets of the images submitted before a day, by SHA-256; cached, since a batch ends on one day."""
        if day not in self._before:
            self._before[day] = {
                each.image.sha256: each.submission.manifest.target for each in self._images if each.submission.day < day
            }
        return self._before[day]


@dataclass(frozen=True, slots=True)
class _Defenders:
    """The teams that may appeal against an image, once it is judged unambiguous."""

    runs: Mapping[str, Sequence[DefenceRun]]
    sha256: str
    target_team: str

    def __call__(self, group: str) -> Collection[str]:
        given = {
            team_of(name)
            for name, runs in self.runs.items()
            if any(run.answers.get(self.sha256, ABSTAIN) not in (group, ABSTAIN) for run in runs)
        }
        return given | {self.target_team}


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
    board, limits = files.board, files.rules.limits
    answered = {one.date for each in files.answers for one in each.answers.values()}
    found = answered | {after(day, limits.appeal_days) for day in answered}
    found |= {each.submitted for each in files.defences.values()} | {each.date for each in files.runs}
    found |= {day for each in files.submissions for day in (each.day, each.week)}
    found |= {each.date for kind in (board.decisions, board.appeals, board.stakes, board.accepted) for each in kind}
    found |= {after(each.date, limits.unbroken_days) for each in board.stakes}
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
