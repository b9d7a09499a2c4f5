"""What is kept of a model's answer to a changed image: everything that the measures need, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.scoring.logits import Columns, top5
from cleanset.tables import (
    CLASS,
    FILE,
    FRAME,
    LOG_ODDS,
    LOGIT,
    NAME,
    SEVERITY,
    TOP5_CLASSES,
    TOP5_PROBABILITIES,
    Table,
)

ANSWERS: dict[str, Any] = {
    "top5_class": TOP5_CLASSES,
    "top5_probability": TOP5_PROBABILITIES,
    "log_odds": LOG_ODDS,  # of the top-1 class
    "largest_logit": LOGIT,
    "second_logit": LOGIT,
    "log_sum_exp": LOGIT,  # of all logits
    "class_of_edition": CLASS,  # the highest among the edition's classes
}
NAMED_ANSWERS = Table(image_id=FILE, **ANSWERS)
"""By the name of a changed image."""
PREDICTIONS = {
    "corruptions": Table(key=("file", "change", "severity"), file=FILE, change=NAME, severity=SEVERITY, **ANSWERS),
    "perturbations": Table(key=("file", "change", "frame"), file=FILE, change=NAME, frame=FRAME, **ANSWERS),
    "scenarios": Table(key=("file", "change"), file=FILE, change=NAME, **ANSWERS),
}
"""By family: by image, change, and severity or frame."""


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """From logits of shape (n, 1000) to the columns of ANSWERS; `classes` are the class indices of the edition."""

    classes: Sequence[int]

    def __call__(self, logits: NDArray[np.float64]) -> Columns:
        """The columns. Raises ValueError if a logit is not finite."""
        found = top5(logits)
        second, largest = np.sort(logits, axis=1)[:, -2:].T
        classes = np.asarray(sorted(self.classes), np.int16)
        return found | {
            "largest_logit": largest.astype(np.float32),
            "second_logit": second.astype(np.float32),
            "log_sum_exp": (largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))).astype(np.float32),
            "class_of_edition": classes[np.argmax(logits[:, classes], axis=1)],  # of equal ones the lower
        }


def by_name(answers: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The columns of one of PREDICTIONS, from answers by the text of a ChangeName."""
    parts = pd.DataFrame([name.rsplit(" ", 2) for name in answers["image_id"]], columns=range(3))
    keys = [parts[0], parts[1], parts[2].astype("int8")]
    named = dict(zip(table.key, keys, strict=False))
    return answers.drop(columns="image_id").reset_index(drop=True).assign(**named)[table.names]
