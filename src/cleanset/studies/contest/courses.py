"""Images and defences as the days go by, in the order of the lines.

An image goes from open to final: judges' answers, appeals, decisions of the board. The answers that settle it are the
first ones, as many as are needed: whoever has read them and answers later overturns nothing. What is final stays; the
board may still overrule a rejection, since nobody loses what was won.

A defence is eligible, staked, broken and by whom, won; and waits for what. What is settled never changes. A broken one
is settled on the first day at whose end no image of that week or before is open; it has answered all of them by then,
since a run answers every image that is published.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.studies.contest import entries
from cleanset.studies.contest.entries import DefenceRun, Line, Stake, SubmissionManifest, SubmittedImage, team_of
from cleanset.studies.contest.judging import ImageVerdict, JudgeAnswer, verdict
from cleanset.studies.contest.rules import INVALID, ContestRules, after

ImageStage = Literal["open", "judged", "appealed", "final"]
"""Fewer judges than are needed; judged, and open to appeals; appealed and not decided; final."""


@dataclass(slots=True)
class ImageCourse:
    """A published image, and what has happened to it so far.

    `week`: the day on which it was published. `answers`: by judge, in the order of the lines; `counting`: those of
    judges whose controls let them count. `verdict`: of the judges or of the board; None while fewer judges have
    answered than are needed. `confirmed`: whether the board has reviewed a rejected image, and rejects it, too.
    `appeals_until`: the last day for appeals against the judges' verdict, at whose end it becomes final. `asked`: the
    number of judges that the board asks for; 0: the contest's minimum.
    """

    rules: ContestRules
    image: SubmittedImage
    submission: Line[SubmissionManifest]
    week: datetime.date
    answers: dict[str, JudgeAnswer] = field(default_factory=dict)
    counting: list[JudgeAnswer] = field(default_factory=list)
    appeals: list[Line[entries.Appeal]] = field(default_factory=list)
    decisions: list[Line[entries.BoardDecision]] = field(default_factory=list)
    verdict: ImageVerdict | None = None
    final_on: datetime.date | None = None
    by_board: bool = False
    confirmed: bool = False
    appeals_until: datetime.date | None = None
    asked: int = 0

    @property
    def stage(self) -> ImageStage:
        if self.final_on is not None:
            return "final"
        if self.appeals and self.appeals[-1].n > max((each.n for each in self.decisions), default=0):
            return "appealed"
        return "open" if self.verdict is None else "judged"

    @property
    def valid_group(self) -> str | None:
        """The group of an image whose final verdict is unambiguous."""
        return None if self.final_on is None or self.verdict is None else self.verdict.group

    @property
    def needed(self) -> int:
        """The number of judges that settle it."""
        return self.asked or self.rules.judges.minimum

    @property
    def settling(self) -> list[JudgeAnswer]:
        """The answers that count: the first ones, as many as are needed, or fewer so far."""
        return self.counting[: self.needed]

    def end_appeals(self, day: datetime.date) -> None:
        """Make the judges' verdict final at the end of the last day for appeals, unless there was one."""
        if self.stage == "judged":
            self.final_on = day

    def answer(self, judge: str, answer: JudgeAnswer, day: datetime.date, *, counts: bool) -> None:
        """Take a judge's answer; the last one that is needed settles the judges' verdict."""
        self.answers[judge] = answer
        if counts:
            self.counting.append(answer)
        if self.verdict is None and len(self.counting) >= self.needed:
            share = self.rules.judges.object_share
            self.verdict = verdict(self.settling, self.image.width, self.image.height, share)
            # the verdict of further judges cannot be appealed, so it is final on that day
            self.appeals_until = after(day, 0 if self.asked else self.rules.limits.appeal_days)

    def appeal(self, line: Line[entries.Appeal], breaking: set[str]) -> None:
        """Take an appeal. `breaking`: the teams of the defences that have given the other group.

        Raises CleansetError for a team that is not entitled to it, and outside the days for appeals.
        """
        if self.verdict is None or self.stage == "final" or self.asked:
            days = self.rules.limits.appeal_days
            raise CleansetError(f"no time for appeals; expected {days} days after the judges' verdict: ask the board")
        submitted = self.submission.entry
        entitled = breaking | {team_of(submitted.target)} if self.verdict.group else {submitted.team}
        if line.entry.team not in entitled:
            teams = " or ".join(sorted(entitled))
            raise CleansetError(f"{line.entry.team} may not appeal; expected {teams}: leave it out")
        self.appeals.append(line)

    def decide(self, line: Line[entries.BoardDecision]) -> None:
        """Take a decision of the board. Raises CleansetError for one that comes too late."""
        decision = line.entry
        self.decisions.append(line)
        if decision.judges is not None:
            self._ask_for_judges(decision.judges)
            return
        group = None if decision.verdict == INVALID else decision.verdict
        if self.valid_group not in (None, group):
            raise CleansetError(
                f"{decision.verdict}, but the image is finally {self.valid_group} since {self.final_on}; expected a "
                "decision before that day: a defence that it broke stays broken"
            )
        if self.final_on is None or self.valid_group != group:
            # a rejection by the board keeps the reasons that the judges gave
            self.verdict = ImageVerdict(group, () if group or self.verdict is None else self.verdict.reasons)
            self.by_board = True
            self.final_on = line.day
        self.confirmed = group is None

    def _ask_for_judges(self, judges: int) -> None:
        there = len(self.counting)
        if self.final_on is not None or judges <= there:
            raise CleansetError(f"{judges} judges, where {there} have answered; expected more, before the end: decide")
        self.asked = judges
        self.verdict = None
        self.appeals_until = None


@dataclass(slots=True)
class SubmittedImages:
    """The images of a contest, by SHA-256, in the order of submission.

    `waiting`: those whose week is not published yet; `open`: the published ones whose verdict is not final. `weeks`:
    for each published week, the number of its line, and the day of its first submission.
    """

    waiting: list[tuple[Line[SubmissionManifest], SubmittedImage]] = field(default_factory=list)
    published: dict[str, ImageCourse] = field(default_factory=dict)
    open: dict[str, ImageCourse] = field(default_factory=dict)
    weeks: list[tuple[int, datetime.date]] = field(default_factory=list)


DefenceStatus = Literal["ineligible", "eligible", "staked", "broken", "awaiting", "won"]
"""May not be staked; may be staked; staked; broken; staked long enough, with open questions (`waits_for`); won."""
Shares = Mapping[str, Fraction]
"""Shares of one stake or one batch, by team."""


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


def those_that_apply(found: Mapping[str, bool]) -> tuple[str, ...]:
    """The names with a true value."""
    return tuple(name for name, applies in found.items() if applies)


def reasons_against(run: DefenceRun, rules: ContestRules) -> tuple[str, ...]:
    """The reasons in a run why a defence is not eligible: on the list that decides, and its rate."""
    found = {
        "unpublished_list": run.unpublished is False,
        "abstains": run.unpublished is None and not run.eligibility.answers_enough,
        "accuracy": run.unpublished is None and run.eligibility.answers_enough and not run.eligibility.is_eligible,
        "too_slow": run.images_per_minute < rules.limits.images_per_minute,
    }
    return those_that_apply(found)


@dataclass(slots=True)
class DefenceCourse:
    """A defence, and what has happened to it so far.

    `images`: those of the contest. `mistakes`: by SHA-256, the valid images that it gives the other group, and the day
    from which both are known.
    """

    rules: ContestRules
    defence: entries.Defence
    images: SubmittedImages
    stake: Line[Stake] | None = None
    runs: list[Line[DefenceRun]] = field(default_factory=list)
    mistakes: dict[str, tuple[ImageCourse, datetime.date]] = field(default_factory=dict)
    settled: DefenceStanding | None = None

    @property
    def answers(self) -> Mapping[str, str]:
        """The answers of its last run."""
        return self.runs[-1].entry.answers if self.runs else {}

    def answers_as(self, other: "DefenceCourse") -> bool:
        """Whether both have answered some image, and none that both have answered differently."""
        both = self.answers.keys() & other.answers.keys()
        return bool(both) and all(self.answers[each] == other.answers[each] for each in both)

    def _ends(self, stake: Line[Stake]) -> datetime.date:
        """The day from which it can win."""
        return after(stake.day, self.rules.limits.unbroken_days)

    def _is_within(self, image: ImageCourse, stake: Line[Stake]) -> bool:
        """Whether an image was submitted while the defence was staked."""
        return image.submission.n > stake.n and image.submission.day < self._ends(stake)

    def _known_before(self) -> list[datetime.date]:
        """The days on which mistakes on images submitted before the stake became known."""
        return [day for each, day in self.mistakes.values() if self.stake is None or each.submission.n < self.stake.n]

    def _reasons(self) -> tuple[str, ...]:
        """The reasons against eligibility, by the first run and by images that were submitted before the stake."""
        is_run = self.runs and (self.stake is None or self.runs[0].day < self._ends(self.stake))
        first = reasons_against(self.runs[0].entry, self.rules) if is_run else ("not_run",)
        closed = () if self.defence.open else ("closed",)
        return (*closed, *first, *(("mistake_before",) if self._known_before() else ()))

    def standing(self, on: datetime.date) -> DefenceStanding:
        """The standing at the end of a day."""
        if self.settled is not None:
            return self.settled
        reasons = self._reasons()
        stake = self.stake
        if stake is None:
            return DefenceStanding(self.defence.name, "ineligible" if reasons else "eligible", reasons=reasons)
        found = DefenceStanding(self.defence.name, "staked", stake.day, stake.entry.batch, reasons)
        within = [each for each, _ in self.mistakes.values() if self._is_within(each, stake)]
        if within:
            return self._broken(found, stake, within)
        ends = self._ends(stake)
        # the run that decides a win: the last one over all images submitted before it
        last_week = max((number for number, first in self.images.weeks if first < ends), default=0)
        last = next((each for each in self.runs if each.day >= ends and each.n > last_week), None)
        if last is not None and not reasons:
            found = replace(found, reasons=reasons_against(last.entry, self.rules))
        if found.reasons:
            return replace(found, status="ineligible")
        if on < ends:
            return found
        waits_for = self._waits_for(ends, has_run=last is not None)
        return replace(found, status="awaiting" if waits_for else "won", waits_for=waits_for, settled=not waits_for)

    def _broken(self, found: DefenceStanding, stake: Line[Stake], within: Sequence[ImageCourse]) -> DefenceStanding:
        """The teams of the first week share equally.

        Organizers, the board's teams and the defence's own have no share; nobody has one of a defence that was never
        eligible while it was staked.
        """
        week = min(each.week for each in within)
        teams = {each.submission.entry.team for each in within if each.week == week}
        sharing = teams - self.rules.without_shares() - {team_of(found.name)}
        was_mistaken = any(day <= max(self.runs[0].day, stake.day) for day in self._known_before())
        if was_mistaken or {*found.reasons} - {"mistake_before"}:
            sharing = set()
        waiting = [each for each in self.images.open.values() if each.week <= week and self._is_within(each, stake)]
        until = [each.appeals_until for each in waiting if each.stage == "judged" and each.appeals_until is not None]
        open_until = str(max(until, default="")) if len(until) == len(waiting) else "verdicts are missing"
        return replace(
            found, status="broken", broken_in=week, broken_by=tuple(sorted(teams)),
            # fractions, because three thirds of a stake have to be the whole of it
            shares={team: Fraction(1, len(sharing)) for team in sorted(sharing)},
            settled=not open_until, open_until=open_until,
        )  # fmt: skip

    def _waits_for(self, ends: datetime.date, *, has_run: bool) -> tuple[str, ...]:
        """Open questions: verdicts on images submitted before the end, confirmations by the board, a last run."""
        before = [each for each in self.images.published.values() if each.submission.day < ends]
        aimed = [each for each in before if each.submission.entry.target == self.defence.name]
        found = {
            "publication": any(line.day < ends for line, _ in self.images.waiting),
            "verdicts": any(each.final_on is None for each in before),
            "confirmations": any(each.final_on and not each.valid_group and not each.confirmed for each in aimed),
            "last_run": not has_run,
        }
        return those_that_apply(found)
