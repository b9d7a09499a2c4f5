"""How well each judge answers the control images: for organizers, never for judges."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.table import Table

from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.judge_images import mask_path
from cleanset.studies.contest.judging import Answer, ControlScore, control_score
from cleanset.studies.contest.outlines import overlap


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """Of one judge: answers to submitted images, accuracy on controls, and the outlines' IoU with known masks."""

    judge: str
    images: int
    controls: ControlScore
    overlaps: tuple[float, ...]

    @property
    def mean_overlap(self) -> float | None:
        """The mean IoU, 0 to 1; a missing outline counts as 0. None without a mask."""
        return sum(self.overlaps) / len(self.overlaps) if self.overlaps else None


def judge_scores(files: ContestFiles, masks: Mapping[str, NDArray[np.bool_]]) -> list[JudgeScore]:
    """The scores of all judges of the roster, by id. `masks`: of control images, by SHA-256."""
    found = []
    for judge in sorted(files.roster):
        answers: dict[str, Answer] = {}
        for each in files.answers:
            if each.judge == judge:
                answers |= each.answers
        known = sorted(answers.keys() & files.controls.keys() & masks.keys())
        overlaps = tuple(_overlap(answers[each], masks[each]) for each in known)
        submitted = len(answers.keys() - files.controls.keys())
        found.append(JudgeScore(judge, submitted, control_score(answers, files.controls), overlaps))
    return found


def _overlap(answer: Answer, mask: NDArray[np.bool_]) -> float:
    return overlap(answer.outline, mask) if answer.outline is not None else 0.0


def read_masks(contest: Path, files: ContestFiles) -> dict[str, NDArray[np.bool_]]:
    """The masks of the control images that have one."""
    paths = {each: mask_path(contest, each) for each in sorted(files.controls)}
    return {each: np.asarray(Image.open(path).convert("L")) > 127 for each, path in paths.items() if path.is_file()}


def as_table(scores: list[JudgeScore]) -> Table:
    """A row for each judge."""
    table = Table("judge", "images", "controls", "correct", "accuracy", "mean IoU")
    for each in scores:
        accuracy, mean = each.controls.accuracy, each.mean_overlap
        table.add_row(
            each.judge, str(each.images), str(each.controls.answered), str(each.controls.correct),
            "–" if accuracy is None else f"{accuracy:.2f}", "–" if mean is None else f"{mean:.2f}",
        )  # fmt: skip
    return table
