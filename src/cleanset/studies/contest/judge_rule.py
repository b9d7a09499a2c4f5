"""Which judges are left out: those whose answers to control images are bad, by the numbers of contest.yaml."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.outlines import overlap
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
                found = _Control(answer.date, is_correct, _overlap(answer, sha256, files))
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


def _overlap(answer: JudgeAnswer, sha256: str, files: ContestFiles) -> float | None:
    mask = files.masks.get(sha256)
    if mask is None:
        return None
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
