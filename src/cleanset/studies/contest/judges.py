"""Judges: whose answers count, by control images, and the score of each.

A judge whose answers to control images are bad, by the numbers of contest.yaml, is left out.
"""

import datetime
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from rich.table import Table

from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.judging import JudgeAnswer, overlap


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
