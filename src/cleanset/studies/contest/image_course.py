"""A submitted image from open to final: judges' answers that count, appeals, decisions of the board.

A final verdict rests only on entries dated up to the day on which it became final, so that no later entry takes it
back. The board may still overrule a rejection, never an accepted image: a broken defence stays broken.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.studies.contest.entries import Appeal, BoardDecision, SubmittedImage, short
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.judges import JudgeRecords
from cleanset.studies.contest.judging import ImageVerdict, JudgeAnswer, verdict
from cleanset.studies.contest.rules import INVALID, ContestRules, after

ImageStage = Literal["open", "judged", "appealed", "final"]
"""Too few judges, or fewer than the board asks for; judged, and open to appeals; appealed and not decided; final."""


@dataclass(frozen=True, slots=True)
class ImageState:
    """The state of a published image on a day."""

    stage: ImageStage
    verdict: ImageVerdict | None = None
    """None while fewer judges have answered than the contest's minimum; the verdict so far while more are awaited."""

    by_board: bool = False
    """Whether the verdict is the board's, not the judges'."""

    final_on: datetime.date | None = None
    """The day on which the verdict became final."""

    confirmed: bool = False
    """Whether the board has reviewed a rejected image, and rejects it, too."""

    judges: int = 0
    """The number of answers behind the verdict, those up to `judged_on`."""

    appeals_until: datetime.date | None = None
    """The last day for appeals against a judged image."""

    closed_on: datetime.date | None = None
    """The first day with a final verdict."""

    confirmed_on: datetime.date | None = None
    """The day on which the board rejected the image, too, also of an image that it has found unambiguous later."""

    judged_on: datetime.date | None = None
    """The day on which enough judges had answered; None while they are too few."""

    @property
    def valid_group(self) -> str | None:
        """The group of an image whose final verdict is unambiguous."""
        return self.verdict.group if self.stage == "final" and self.verdict is not None else None


ImageEvent = JudgeAnswer | Appeal | BoardDecision
Events = list[tuple[datetime.date, int, str, ImageEvent]]
"""All that happens to an image, by day: answers first, then appeals, then decisions; within each by judge or team."""


def events_by_image(files: ContestFiles) -> dict[str, Events]:
    """The answers that count, appeals and decisions on each image, by its SHA-256, in the order of `Events`."""
    records = JudgeRecords(files)
    found: dict[str, Events] = {}
    for each in files.answers:
        for sha256, answer in records.counted(each.judge, each.answers):
            found.setdefault(sha256, []).append((answer.date, 0, each.judge, answer))
    for appeal in files.appeals:
        found.setdefault(appeal.image, []).append((appeal.date, 1, appeal.team, appeal))
    for decision in files.decisions:
        found.setdefault(decision.image, []).append((decision.date, 2, "", decision))
    # the files come in any order
    return {sha256: sorted(events, key=itemgetter(0, 1, 2)) for sha256, events in found.items()}


class ImageCourse:
    """The state of an image as its events come.

    `attacker`: the team that submitted it; `target_team`: the team of the defence that it is aimed at. `breaking`: from
    the group of an image that was judged unambiguous, and a day, to the teams of the defences that have given another
    group by then.
    """

    def __init__(
        self,
        rules: ContestRules,
        image: SubmittedImage,
        *,
        attacker: str,
        target_team: str,
        breaking: Callable[[str, datetime.date], set[str]],
    ) -> None:
        self._rules = rules
        self._image = image
        self._breaking = breaking
        self._attacker = attacker
        self._target_team = target_team
        self._answers: list[JudgeAnswer] = []
        self._needed = rules.judges.minimum
        self._judged_on: datetime.date | None = None
        self._closing: datetime.date | None = None
        self._appealed = self._more_judges = False
        self._final: ImageState | None = None

    def state_on(self, on: datetime.date, events: Events) -> ImageState:
        """The state at the end of the day `on`; `events`: all up to it or all since the last call, by day.

        Raises CleansetError for an appeal by a team that is not entitled to it or outside the days for appeals, and for
        a decision that comes too late.
        """
        for date, _, _, event in events:
            self._close(date)
            if isinstance(event, JudgeAnswer):
                self._answer(event)
            elif isinstance(event, Appeal):
                self._appeal(event)
            else:
                self._decide(event)
        # as on the next day: the last day for appeals counts in full
        self._close(after(on, 1))
        stage: ImageStage = "appealed" if self._appealed else "open" if self._closing is None else "judged"
        until = self._closing if stage == "judged" else None
        found = self._final or ImageState(stage, self._of_judges(), appeals_until=until)
        return replace(found, judges=len(self._counted()), judged_on=self._judged_on)

    def _close(self, day: datetime.date) -> None:
        """Make the judges' verdict final if the last day for appeals is before `day`."""
        if self._final is None and self._closing is not None and not self._appealed and self._closing < day:
            self._final = ImageState("final", self._of_judges(), final_on=self._closing, closed_on=self._closing)

    def _answer(self, answer: JudgeAnswer) -> None:
        if self._final is not None:
            return
        self._answers.append(answer)
        if self._closing is None and len(self._answers) >= self._needed:
            # what comes on a later day does not count: nobody overturns the verdict when the others have answered
            self._judged_on = answer.date
            # after more judges there is no second appeal, so that their verdict is final on that day
            self._closing = after(answer.date, 0 if self._more_judges else self._rules.limits.appeal_days)

    def _appeal(self, appeal: Appeal) -> None:
        where = f"appeal of {appeal.team} on {short(appeal.image)} of {appeal.date}"
        judged = self._of_judges()
        if judged is None or self._closing is None or self._final is not None or self._more_judges:
            raise CleansetError(
                f"{where}: not within the days for appeals; expected it at most {self._rules.limits.appeal_days} days "
                "after the judges' verdict, and not after more judges"
            )
        entitled = {self._attacker}
        if judged.group is not None:
            entitled = self._breaking(judged.group, appeal.date) | {self._target_team}
        if appeal.team not in entitled:
            raise CleansetError(
                f"{where}: a team that may not appeal; expected one of {', '.join(sorted(entitled))}: the attacker "
                "of a rejected image, or a defender whose defence gives the other group in a run of that day or before"
            )
        self._appealed = True

    def _decide(self, decision: BoardDecision) -> None:
        where = f"decision on {short(decision.image)} of {decision.date}"
        final = self._final
        if decision.judges is not None:
            if final is not None:
                raise CleansetError(f"{where}: more judges for a final verdict; expected them before {final.final_on}")
            least = max(self._rules.judges.minimum, len(self._answers) + 1)
            if decision.judges < least:
                raise CleansetError(
                    f"{where}: judges {decision.judges}; expected at least {least}: {len(self._answers)} have "
                    f"answered, and the contest's minimum is {self._rules.judges.minimum}"
                )
            self._needed = decision.judges
            self._appealed = False
            self._more_judges = True
            self._closing = self._judged_on = None
            return
        group = None if decision.verdict == INVALID else decision.verdict
        if final is not None and final.valid_group not in (None, group):
            raise CleansetError(
                f"{where}: {decision.verdict}, but the image is finally {final.valid_group} since {final.final_on}; "
                "expected a decision before that day: a defence that it broke stays broken"
            )
        if final is None or final.valid_group != group:
            # a rejection by the board keeps the reasons that the judges gave
            judged = self._of_judges()
            found = ImageVerdict(group, judged.reasons if judged and group is None else ())
            final = replace(final or ImageState("final"), verdict=found, final_on=decision.date, by_board=True)
        self._final = replace(
            final,
            closed_on=final.closed_on or decision.date,
            confirmed=group is None,
            confirmed_on=final.confirmed_on or (decision.date if group is None else None),
        )

    def _counted(self) -> list[JudgeAnswer]:
        last = self._judged_on
        return self._answers if last is None else [each for each in self._answers if each.date <= last]

    def _of_judges(self) -> ImageVerdict | None:
        """The verdict of the judges; None while they are too few."""
        answers = self._counted()
        rules = self._rules.judges
        if len(answers) < rules.minimum:
            return None
        return verdict(answers, self._image.width, self._image.height, rules.size)
