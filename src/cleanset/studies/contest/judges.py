"""Judges: who counts, by control images; an image from open to final, with appeals and the board; tasks.

A judge whose answers to control images are bad, by the numbers of contest.yaml, is left out.

A final verdict rests only on entries dated up to the day on which it became final, so that no later entry takes it
back. The board may still overrule a rejection, never an accepted image: a broken defence stays broken.
"""

import datetime
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256 as digest_of
from operator import itemgetter
from typing import Literal, NamedTuple

from rich.table import Table

from cleanset.errors import CleansetError
from cleanset.studies.contest.files import Appeal, BoardDecision, ContestFiles, SubmittedImage, counted
from cleanset.studies.contest.judging import ImageVerdict, JudgeAnswer, overlap, verdict
from cleanset.studies.contest.rules import INVALID, ContestRules, after


class _Control(NamedTuple):
    """A judge's answer to a control image; `overlap` is None if the control has no mask, 0 without an outline."""

    date: datetime.date
    is_correct: bool
    overlap: float | None


class JudgeScore(NamedTuple):
    """A judge's answers to control images."""

    controls: int
    """The number of answers to controls."""

    correct: int
    """The number of those that are correct."""

    outlines: int
    """The number of those controls that have a mask."""

    mean_overlap: float | None
    """The mean IoU of outlines with these masks, 0 to 1, a missing outline counted as 0; None without a mask."""


class JudgeRecords:
    """The answers of all judges to controls, by the day of the answer."""

    def __init__(self, files: ContestFiles) -> None:
        self._rules = files.rules.judges
        self._controls: dict[str, list[_Control]] = {}
        for each in files.answers if files.controls else ():
            for sha256 in sorted(each.answers.keys() & files.controls.keys()):
                answer = each.answers[sha256]
                mask = files.masks.get(sha256)
                iou: float | None = None
                if mask is not None:
                    iou = 0.0 if answer.outline is None else overlap(answer.outline, mask)
                found = _Control(answer.date, files.controls[sha256].is_met_by(answer), iou)
                self._controls.setdefault(each.judge, []).append(found)

    def score(self, judge: str, on: datetime.date = datetime.date.max) -> JudgeScore:
        """The score of a judge on the controls answered up to a day."""
        controls = [each for each in self._controls.get(judge, ()) if each.date <= on]
        overlaps = [each.overlap for each in controls if each.overlap is not None]
        mean = sum(overlaps) / len(overlaps) if overlaps else None
        return JudgeScore(len(controls), sum(each.is_correct for each in controls), len(overlaps), mean)

    def problem(self, judge: str, on: datetime.date) -> str | None:
        """Why the answers of a judge on a day do not count, by the controls answered up to it; None if they do."""
        rules = self._rules
        controls, correct, outlines, mean = self.score(judge, on)
        if controls < rules.min_controls:
            return None
        # of the text: 0.7 as a float is slightly less than 7/10
        if Fraction(correct, controls) < Fraction(str(rules.min_accuracy)):
            return f"{correct} of {controls} controls correct; expected a share of {rules.min_accuracy:g}"
        if mean is not None and outlines >= rules.min_controls and mean < rules.min_overlap:
            return f"mean IoU {mean:.2f} of {outlines} outlines with the masks; expected {rules.min_overlap:g}"
        return None

    def counted(self, judge: str, answers: Mapping[str, JudgeAnswer]) -> Iterable[tuple[str, JudgeAnswer]]:
        """The answers of a judge that count, with the SHA-256 of the image.

        Whether one counts is settled on its day, so that no later control takes a final verdict back.
        """
        if judge not in self._controls:
            return answers.items()
        counts = {day: self.problem(judge, day) is None for day in {each.date for each in answers.values()}}
        return [(sha256, each) for sha256, each in answers.items() if counts[each.date]]


def left_out(files: ContestFiles, on: datetime.date) -> dict[str, str]:
    """By id, the judges whose answers on a day would not count, and why."""
    records = JudgeRecords(files)
    return {judge: problem for judge in sorted(files.roster) if (problem := records.problem(judge, on)) is not None}


SCORE_HEADS = ("judge", "images", "controls", "correct", "accuracy", "mean IoU")


def score_table(files: ContestFiles) -> Table:
    """A row for each judge of the roster: number of submitted images, and the score. For organizers, not for judges."""
    table = Table(*SCORE_HEADS)
    records = JudgeRecords(files)
    for judge in sorted(files.roster):
        answered = {sha256 for each in files.answers if each.judge == judge for sha256 in each.answers}
        controls, correct, _, mean = records.score(judge)
        counts = map(str, (len(answered - files.controls.keys()), controls, correct))
        shares = correct / controls if controls else None, mean
        table.add_row(judge, *counts, *("–" if share is None else f"{share:.2f}" for share in shares))
    return table


ImageStage = Literal["open", "judged", "appealed", "final"]
"""Too few judges; judged, and open to appeals; appealed and not decided; nothing left to wait for."""


@dataclass(frozen=True, slots=True)
class ImageState:
    """The state of a published image on a day."""

    stage: ImageStage
    verdict: ImageVerdict | None = None
    """None while too few judges have answered."""

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
        where = f"appeal of {appeal.team} on {appeal.image[:12]}… of {appeal.date}"
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
        where = f"decision on {decision.image[:12]}… of {decision.date}"
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


EDGES = ("left", "right", "top", "bottom")


class JudgeTask(NamedTuple):
    """An image that a judge is asked about in a week; of equally large objects the one nearest to `side` counts."""

    week: datetime.date
    sha256: str
    side: str


def tasks(files: ContestFiles, judge: str, images: Mapping[str, ImageState]) -> list[JudgeTask]:
    """The images of one judge, by week, oldest first; drawn by seed and judge within a week.

    `images`: the state of each published image. Images with a final verdict are left out, unless this judge has
    answered them; controls are those drawn for this judge.
    """
    seed = files.rules.judges.seed
    drawn = drawn_controls(files, judge)
    answered = {sha256 for each in files.answers if each.judge == judge for sha256 in each.answers}
    found: list[JudgeTask] = []
    submissions = counted(files.submissions)
    for week, controls in drawn.items():
        submitted = [image.sha256 for each in submissions if each.week == week for image in each.manifest.images]
        asked = [each for each in submitted if each in answered or images[each].stage != "final"]
        order = _shuffled([*asked, *controls], seed, judge, str(week))
        found += [JudgeTask(week, each, EDGES[_digest(seed, judge, each)[0] % len(EDGES)]) for each in order]
    return found


def drawn_controls(files: ContestFiles, judge: str) -> dict[datetime.date, list[str]]:
    """By week, the controls that were drawn for a judge: as many as make up the share that the rules ask for.

    No image is drawn twice. Entries and withdrawals after a week was published change no draw of that week.
    """
    seed = files.rules.judges.seed
    share = files.rules.judges.controls
    found: dict[datetime.date, list[str]] = {}
    drawn = set[str]()
    for week, (pool, images) in sorted(files.draws.items()):
        mine = _shuffled(pool - drawn, seed, judge, "controls")[: control_count(images, share)]
        drawn |= set(mine)
        found[week] = [each for each in mine if each in files.controls]
    return found


def check_drawn(files: ContestFiles) -> None:
    """Raise CleansetError for answers of a judge in a week without all controls that were drawn, or with others."""
    given: dict[tuple[str, datetime.date], set[str]] = {}
    for each in files.answers:
        given.setdefault((each.judge, each.week), set()).update(each.answers.keys() & files.controls.keys())
    plans = {judge: drawn_controls(files, judge) for judge, _ in given}
    for (judge, week), controls in sorted(given.items()):
        expected = set(plans[judge].get(week, ()))
        if controls != expected:
            what = "lacking" if expected - controls else "with"
            raise CleansetError(
                f"answers of {judge} in the week of {week}: {what} control image "
                f"{min(expected - controls or controls - expected)[:12]}…; expected answers to all {len(expected)} "
                "that were drawn for this judge, and to no other: finish the week at the judge page"
            )


def control_count(images: int, share: float) -> int:
    """The number of control images that, added to `images` submitted ones, make up at least this share of all."""
    # of the text: the float 0.1 is slightly more than 1/10, and would ask for one image too many
    exact = Fraction(str(share))
    return math.ceil(images * exact / (1 - exact))


def _shuffled(images: Iterable[str], seed: int, judge: str, what: str) -> list[str]:
    # by digest, not by a generator: an added image leaves the order of the others unchanged
    return sorted(images, key=lambda each: (_digest(seed, judge, what, each), each))


def _digest(*names: str | int) -> bytes:
    # as JSON, in which "a", "bc" and "ab", "c" differ
    return digest_of(json.dumps(names).encode()).digest()
