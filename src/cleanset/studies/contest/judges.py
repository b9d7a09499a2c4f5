"""The judges: whose answers count, which images each is asked about, and how well each answers the control images.

A judge whose answers to control images are bad, by the numbers of contest.yaml, is left out.
"""

import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256 as digest_of

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from cleanset.studies.contest.files import ContestFiles, counted
from cleanset.studies.contest.image_state import ImageState
from cleanset.studies.contest.judging import ControlScore, JudgeAnswer, control_score, overlap
from cleanset.studies.contest.rules import JudgingRules


@dataclass(frozen=True, slots=True)
class _Control:
    """A judge's answer to a control image; `overlap` is None where the control has no mask."""

    date: datetime.date
    is_correct: bool
    overlap: float | None


class JudgeRecords:
    """The answers of all judges to controls, by the day of the answer."""

    def __init__(self, files: ContestFiles) -> None:
        self._rules = files.rules.judges
        self._controls: dict[str, list[_Control]] = {}
        if not files.controls:
            return
        for each in files.answers:
            for sha256 in each.answers.keys() & files.controls.keys():
                answer = each.answers[sha256]
                is_correct = files.controls[sha256].is_met_by(answer)
                iou = _overlap(answer, files.masks[sha256]) if sha256 in files.masks else None
                found = _Control(answer.date, is_correct, iou)
                self._controls.setdefault(each.judge, []).append(found)

    def problem(self, judge: str, on: datetime.date) -> str | None:
        """Why the answers of a judge on a day do not count, by the controls answered up to it; None if they do."""
        return _problem([each for each in self._controls.get(judge, ()) if each.date <= on], self._rules)

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
    found = {judge: records.problem(judge, on) for judge in sorted(files.roster)}
    return {judge: problem for judge, problem in found.items() if problem is not None}


def _overlap(answer: JudgeAnswer, mask: NDArray[np.bool_]) -> float:
    """The IoU of a judge's outline and a control's mask; 0 without an outline."""
    return 0.0 if answer.outline is None else overlap(answer.outline, mask)


def _problem(controls: list[_Control], rules: JudgingRules) -> str | None:
    if len(controls) < rules.min_controls:
        return None
    correct = sum(each.is_correct for each in controls)
    # of the text: 0.7 as a float is slightly less than 7/10
    if Fraction(correct, len(controls)) < Fraction(str(rules.min_accuracy)):
        return f"{correct} of {len(controls)} controls correct; expected a share of {rules.min_accuracy:g}"
    overlaps = [each.overlap for each in controls if each.overlap is not None]
    if len(overlaps) >= rules.min_controls and sum(overlaps) / len(overlaps) < rules.min_overlap:
        mean = sum(overlaps) / len(overlaps)
        return f"mean IoU {mean:.2f} of {len(overlaps)} outlines with the masks; expected {rules.min_overlap:g}"
    return None


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """One judge's number of answers to submitted images, accuracy on controls, and IoU of outlines with known masks."""

    judge: str
    images: int
    controls: ControlScore
    overlaps: tuple[float, ...]

    @property
    def mean_overlap(self) -> float | None:
        """The mean IoU, 0 to 1; a missing outline counts as 0. None without a mask."""
        return sum(self.overlaps) / len(self.overlaps) if self.overlaps else None


def judge_scores(files: ContestFiles) -> list[JudgeScore]:
    """The scores of all judges of the roster, by id."""
    found = []
    for judge in sorted(files.roster):
        answers: dict[str, JudgeAnswer] = {}
        for each in files.answers:
            if each.judge == judge:
                answers |= each.answers
        known = sorted(answers.keys() & files.masks.keys())
        overlaps = tuple(_overlap(answers[each], files.masks[each]) for each in known)
        submitted = len(answers.keys() - files.controls.keys())
        found.append(JudgeScore(judge, submitted, control_score(answers, files.controls), overlaps))
    return found


def as_table(scores: list[JudgeScore]) -> Table:
    """The scores as a table with a row for each judge."""
    table = Table("judge", "images", "controls", "correct", "accuracy", "mean IoU")
    for each in scores:
        accuracy, mean = each.controls.accuracy, each.mean_overlap
        table.add_row(
            each.judge, str(each.images), str(each.controls.answered), str(each.controls.correct),
            "–" if accuracy is None else f"{accuracy:.2f}", "–" if mean is None else f"{mean:.2f}",
        )  # fmt: skip
    return table


SIDES = ("left", "right", "top", "bottom")


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """An image that a judge is asked about in a week; of equally large objects the one nearest to `side` counts."""

    week: datetime.date
    sha256: str
    side: str


def tasks(files: ContestFiles, judge: str, on: datetime.date, images: Mapping[str, ImageState]) -> list[JudgeTask]:
    """The images of one judge on a day, by week, oldest first; drawn by seed and judge within a week.

    `images`: the state of each published image on that day.

    They are the submitted images of weeks that have ended, except those with a final verdict that this judge has not
    answered, and the share of control images that the rules ask for, each asked once.
    """
    seed, share = files.rules.judges.seed, files.rules.judges.controls
    own = {each.week: each.answers for each in files.answers if each.judge == judge}
    controls = _shuffled([each for each in files.controls if each not in images], seed, judge, "controls")
    asked_before = {sha256 for answers in own.values() for sha256 in answers}
    found: list[JudgeTask] = []
    submissions = counted(files.submissions)
    for week in sorted({each.week for each in submissions if each.week < on}):
        answered = own.get(week, {})
        submitted = [image.sha256 for each in submissions if each.week == week for image in each.manifest.images]
        asked = [each for each in submitted if each in answered or images[each].stage != "final"]
        # controls that this judge has answered in the week stay in it, whatever the share is now
        there = [each for each in controls if each in answered]
        fresh = [each for each in controls if each not in asked_before]
        mixed_in = (there + fresh)[: max(control_count(len(asked), share), len(there))]
        controls = [each for each in controls if each not in mixed_in]
        order = _shuffled([*asked, *mixed_in], seed, judge, str(week))
        found += [JudgeTask(week, each, SIDES[_digest(seed, judge, each)[0] % len(SIDES)]) for each in order]
    return found


def control_count(images: int, share: float) -> int:
    """The number of control images that, added to `images` submitted ones, make up at least this share of all."""
    # of the text: the float 0.1 is slightly more than 1/10, and would ask for one image too many
    exact = Fraction(str(share))
    return math.ceil(images * exact / (1 - exact))


def _shuffled(images: Sequence[str], seed: int, judge: str, what: str) -> list[str]:
    # by digest, not by a generator: an added image leaves the order of the others unchanged
    return sorted(images, key=lambda each: (_digest(seed, judge, what, each), each))


def _digest(*names: str | int) -> bytes:
    # as JSON, in which "a", "bc" and "ab", "c" differ
    return digest_of(json.dumps(names).encode()).digest()
