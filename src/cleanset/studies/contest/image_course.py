"""A published image from open to final: judges' answers, appeals, decisions of the board, in the order of the lines.

The answers that settle an image are the first ones, as many as are needed: whoever has read them and answers later
overturns nothing. What is final stays; the board may still overrule a rejection, since nobody loses what was won.
"""

import datetime
from dataclasses import dataclass, field
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.studies.contest.entries import Appeal, BoardDecision, Line, SubmissionManifest, SubmittedImage, team_of
from cleanset.studies.contest.judging import ImageVerdict, JudgeAnswer, verdict
from cleanset.studies.contest.rules import INVALID, ContestRules, after

ImageStage = Literal["open", "judged", "appealed", "final"]
"""Fewer judges than are needed; judged, and open to appeals; appealed and not decided; final."""


@dataclass(slots=True)
class ImageCourse:
    """A published image, and what has happened to it so far."""

    rules: ContestRules
    image: SubmittedImage
    submission: Line[SubmissionManifest]
    week: datetime.date
    """The day on which it was published."""

    answers: dict[str, JudgeAnswer] = field(default_factory=dict)
    """By judge, in the order of the lines."""

    counting: list[JudgeAnswer] = field(default_factory=list)
    """Those of judges whose controls let them count."""

    appeals: list[Line[Appeal]] = field(default_factory=list)
    decisions: list[Line[BoardDecision]] = field(default_factory=list)
    verdict: ImageVerdict | None = None
    """Of the judges or of the board; None while fewer judges have answered than are needed."""

    final_on: datetime.date | None = None
    by_board: bool = False
    confirmed: bool = False
    """Whether the board has reviewed a rejected image, and rejects it, too."""

    appeals_until: datetime.date | None = None
    """The last day for appeals against the judges' verdict, at whose end it becomes final."""

    asked: int = 0
    """The number of judges that the board asks for; 0: the contest's minimum."""

    is_appealed: bool = False

    @property
    def stage(self) -> ImageStage:
        if self.final_on is not None:
            return "final"
        if self.is_appealed:
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

    def end_day(self, day: datetime.date) -> None:
        """Make the judges' verdict final at the end of the last day for appeals."""
        if self.stage == "judged" and self.appeals_until == day:
            self.final_on = day

    def answer(self, judge: str, answer: JudgeAnswer, day: datetime.date, *, counts: bool) -> None:
        """Take a judge's answer; the last one that is needed settles the judges' verdict."""
        self.answers[judge] = answer
        if counts:
            self.counting.append(answer)
        if self.verdict is None and len(self.counting) >= self.needed:
            share = self.rules.judges.object_share
            self.verdict = verdict(self.settling, self.image.width, self.image.height, share)
            # after more judges there is no second appeal, so that their verdict is final on that day
            self.appeals_until = after(day, 0 if self.asked else self.rules.limits.appeal_days)

    def appeal(self, line: Line[Appeal], breaking: set[str]) -> None:
        """Take an appeal. `breaking`: the teams of the defences that have given the other group.

        Raises CleansetError for a team that is not entitled to it, and outside the days for appeals.
        """
        if self.verdict is None or self.stage == "final" or self.asked:
            raise CleansetError(
                f"not within the days for appeals; expected it at most {self.rules.limits.appeal_days} days after the "
                "judges' verdict, and not after more judges"
            )
        submitted = self.submission.entry
        entitled = breaking | {team_of(submitted.target)} if self.verdict.group else {submitted.team}
        if line.entry.team not in entitled:
            raise CleansetError(
                f"{line.entry.team} may not appeal; expected one of {', '.join(sorted(entitled))}: the attacker of a "
                "rejected image, or a defender whose defence gives the other group in a run before"
            )
        self.appeals.append(line)
        self.is_appealed = True

    def decide(self, line: Line[BoardDecision]) -> None:
        """Take a decision of the board. Raises CleansetError for one that comes too late."""
        decision = line.entry
        self.decisions.append(line)
        self.is_appealed = False
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
            raise CleansetError(
                f"{judges} judges, where {there} have answered{', and the verdict is final' if self.final_on else ''}; "
                "expected more than these, before the verdict is final"
            )
        self.asked = judges
        self.verdict = None
        self.appeals_until = None


@dataclass(slots=True)
class SubmittedImages:
    """The images of a contest."""

    waiting: list[tuple[Line[SubmissionManifest], SubmittedImage]] = field(default_factory=list)
    """Those whose week is not published yet."""

    published: dict[str, ImageCourse] = field(default_factory=dict)
    """By SHA-256, in the order of submission."""

    open: dict[str, ImageCourse] = field(default_factory=dict)
    """The published images whose verdict is not final."""

    weeks: list[tuple[int, datetime.date]] = field(default_factory=list)
    """Of each published week the number of its line, and the day of its first submission."""
