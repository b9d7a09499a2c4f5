"""The state of one submitted image: open, judged, appealed or final.

A final verdict rests only on entries dated up to the day on which it became final, so that no later entry takes it
back. The board may still overrule a rejection, never an accepted image: a broken defence stays broken.
"""

import datetime
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.studies.contest.files import Appeal, BoardDecision, SubmittedImage
from cleanset.studies.contest.judging import ImageVerdict, JudgeAnswer, RejectionReason, verdict
from cleanset.studies.contest.rules import INVALID, ContestRules, after

ImageStage = Literal["open", "judged", "appealed", "final"]
"""Too few judges; judged, and open to appeals; appealed and not decided; nothing left to wait for."""


@dataclass(frozen=True, slots=True)
class ImageState:
    """The state of a published image on a day; `verdict` is None while too few judges have answered.

    `confirmed`: the board has reviewed a rejected image and rejects it, too; `confirmed_on`: since when, also of an
    image that it has found unambiguous later. `closed_on`: the first day with a final verdict. `appeals_until`: the
    last day for appeals against a judged image. `judges`: of how many answers the verdict is, those up to `judged_on`;
    None while there are too few.
    """

    stage: ImageStage
    verdict: ImageVerdict | None = None
    by_board: bool = False
    final_on: datetime.date | None = None
    confirmed: bool = False
    judges: int = 0
    appeals_until: datetime.date | None = None
    closed_on: datetime.date | None = None
    confirmed_on: datetime.date | None = None
    judged_on: datetime.date | None = None

    @property
    def valid_group(self) -> str | None:
        """The group of an image whose final verdict is unambiguous."""
        return self.verdict.group if self.stage == "final" and self.verdict is not None else None


@dataclass(frozen=True, slots=True)
class ImageCase:
    """All that is dated up to a day on one image.

    `attacker`: the team that submitted it. `defenders`: from the group of an image that was judged unambiguous, and a
    day, to the teams that may appeal on it: those of its target and of every defence that has given another group by
    then.
    """

    image: SubmittedImage
    attacker: str
    defenders: Callable[[str, datetime.date], Collection[str]]
    answers: Sequence[tuple[str, JudgeAnswer]]
    appeals: Sequence[Appeal] = ()
    decisions: Sequence[BoardDecision] = ()


def state_of(case: ImageCase, rules: ContestRules, on: datetime.date) -> ImageState:
    """The state of an image at the end of the day `on`.

    Raises CleansetError for an appeal by a team that is not entitled to it or outside the days for appeals, and for a
    decision that comes too late.
    """
    course = _Course(case, rules)
    events: list[tuple[datetime.date, int, str, JudgeAnswer | Appeal | BoardDecision]] = []
    events += [(answer.date, 0, judge, answer) for judge, answer in case.answers]
    events += [(appeal.date, 1, appeal.team, appeal) for appeal in case.appeals]
    events += [(decision.date, 2, "", decision) for decision in case.decisions]
    # on one day answers come first, then appeals, then decisions
    for date, _, _, event in sorted(events, key=lambda each: each[:3]):
        course.close(date)
        if isinstance(event, JudgeAnswer):
            course.answer(event)
        elif isinstance(event, Appeal):
            course.appeal(event)
        else:
            course.decide(event)
    # as on the next day: the last day for appeals counts in full
    course.close(after(on, 1))
    return course.state()


class _Course:
    def __init__(self, case: ImageCase, rules: ContestRules) -> None:
        self._case, self._rules = case, rules
        self._answers: list[JudgeAnswer] = []
        self._needed = rules.judges.minimum
        self._judged_on: datetime.date | None = None
        self._closing: datetime.date | None = None
        self._appealed = self._more_judges = False
        self._final: ImageVerdict | None = None
        self._final_on: datetime.date | None = None
        self._closed_on: datetime.date | None = None
        self._confirmed_on: datetime.date | None = None
        self._by_board = self._confirmed = False

    def close(self, day: datetime.date) -> None:
        """Make the judges' verdict final if the last day for appeals is before `day`."""
        if self._final is None and self._closing is not None and not self._appealed and self._closing < day:
            self._final, self._final_on, self._closed_on = self._of_judges(), self._closing, self._closing

    def answer(self, answer: JudgeAnswer) -> None:
        if self._final is not None:
            return
        self._answers.append(answer)
        if self._closing is None and len(self._answers) >= self._needed:
            # what comes on a later day does not count: nobody overturns the verdict when the others have answered
            self._judged_on = answer.date
            # after more judges there is no second appeal, so that their verdict is final on that day
            self._closing = after(answer.date, 0 if self._more_judges else self._rules.limits.appeal_days)

    def appeal(self, appeal: Appeal) -> None:
        where = f"board/appeals.yaml: {appeal.image[:12]}… by {appeal.team} on {appeal.date}"
        if self._closing is None or self._final is not None or self._more_judges:
            raise CleansetError(
                f"{where}: not within the days for appeals; expected it at most {self._rules.limits.appeal_days} days "
                "after the judges' verdict, and none after more judges"
            )
        group = self._of_judges().group
        entitled = {self._case.attacker} if group is None else set(self._case.defenders(group, appeal.date))
        if appeal.team not in entitled:
            raise CleansetError(
                f"{where}: a team that may not appeal; expected one of {', '.join(sorted(entitled))}: the attacker "
                "of a rejected image, or a defender whose defence gives the other group in a run of that day or before"
            )
        self._appealed = True

    def decide(self, decision: BoardDecision) -> None:
        where = f"board/decisions.yaml: {decision.image[:12]}… on {decision.date}"
        if decision.judges is not None:
            if self._final is not None:
                raise CleansetError(f"{where}: more judges for a final verdict; expected them before {self._final_on}")
            least = max(self._rules.judges.minimum, len(self._answers) + 1)
            if decision.judges < least:
                raise CleansetError(
                    f"{where}: judges {decision.judges}; expected at least {least}: {len(self._answers)} have "
                    f"answered, and contest.yaml's minimum is {self._rules.judges.minimum}"
                )
            self._needed, self._appealed, self._more_judges = decision.judges, False, True
            self._closing = self._judged_on = None
            return
        group = None if decision.verdict == INVALID else decision.verdict
        if self._final is not None and self._final.group not in (None, group):
            raise CleansetError(
                f"{where}: {decision.verdict}, but the image is finally {self._final.group} since {self._final_on}; "
                "expected a decision before that day: a defence that it broke stays broken"
            )
        if self._final is None or self._final.group != group:
            # a rejection by the board keeps the reasons that the judges gave
            reasons = self._reasons_of_judges() if group is None else ()
            self._final, self._final_on, self._by_board = ImageVerdict(group, reasons), decision.date, True
        self._closed_on = self._closed_on or decision.date
        self._confirmed = group is None
        if self._confirmed:
            self._confirmed_on = self._confirmed_on or decision.date

    def _reasons_of_judges(self) -> tuple[RejectionReason, ...]:
        return self._of_judges().reasons if len(self._counted()) >= self._rules.judges.minimum else ()

    def _counted(self) -> list[JudgeAnswer]:
        last = self._judged_on
        return self._answers if last is None else [each for each in self._answers if each.date <= last]

    def _of_judges(self) -> ImageVerdict:
        image, judges = self._case.image, self._rules.judges
        return verdict(self._counted(), image.width, image.height, judges.size, judges.minimum)

    def state(self) -> ImageState:
        count = len(self._counted())
        if self._final is not None:
            return ImageState(
                "final", self._final, self._by_board, self._final_on, self._confirmed, count,
                closed_on=self._closed_on, confirmed_on=self._confirmed_on, judged_on=self._judged_on,
            )  # fmt: skip
        found = self._of_judges() if count >= self._rules.judges.minimum else None
        stage: ImageStage = "appealed" if self._appealed else "open" if self._closing is None else "judged"
        until = self._closing if stage == "judged" else None
        return ImageState(stage, found, judges=count, appeals_until=until, judged_on=self._judged_on)
