"""The stored answer of a model to a changed image: all that the measures need, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.scoring.logits import Columns, top5
from cleanset.studies.robustness.changed_images import ChangeName
from cleanset.studies.robustness.families import FAMILIES
from cleanset.studies.robustness.family import Family
from cleanset.tables import (
    CLASS,
    FILE,
    LOG_ODDS,
    LOGIT,
    NAME,
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
"""The table of answers by the name of a changed image."""


def predictions_table(family: Family) -> Table:
    """The table of answers to a family: by image, change, and severity or frame."""
    return Table(key=("file", "change", *family.steps), file=FILE, change=NAME, **family.steps, **ANSWERS)


PREDICTIONS = {family.name: predictions_table(family) for family in FAMILIES}
"""The tables of answers by family."""


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """Function from logits of shape (n, 1000) to the columns of ANSWERS; `classes`: the edition's class indices."""

    classes: Sequence[int]

    def __call__(self, logits: NDArray[np.float64]) -> Columns:
        """The columns. Raises ValueError if a logit is not finite."""
        found = top5(logits)
        second, largest = np.sort(logits, axis=1)[:, -2:].T
        classes = np.asarray(sorted(self.classes), np.int16)
        return found | {
            "largest_logit": largest.astype(np.float32),
            "second_logit": second.astype(np.float32),
            # the largest is subtracted first, since exp overflows above 709
            "log_sum_exp": (largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))).astype(np.float32),
            "class_of_edition": classes[np.argmax(logits[:, classes], axis=1)],  # of equal ones the lower
        }


def with_keys(columns: pd.DataFrame, names: Sequence[ChangeName], table: Table) -> pd.DataFrame:
    """The columns of a table by image, change and step, from rows in the order of `names`."""
    keys = pd.DataFrame(list(names), columns=[*ChangeName._fields]).astype({"step": "int8"})
    keys = keys.rename(columns={"step": table.key[2]} if len(table.key) > 2 else {})
    return columns.reset_index(drop=True).assign(**{name: keys[name] for name in table.key})[table.names]
