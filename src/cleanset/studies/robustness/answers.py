"""Stored predictions on changed images: their tables, and the check of answers to clean images.

The answers to clean images, with the model's own preprocessing, are checked against the stored scores of the edition.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cleanset.classes import ClassTable
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.boxes import box_of
from cleanset.scoring.logits import ScoreColumns, margins, top5
from cleanset.scoring.validity import library_versions
from cleanset.statistics.basics import Floats
from cleanset.studies.robustness.families import FAMILIES
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import ChangeName
from cleanset.tables import (
    CHANGE,
    CLASS,
    CROP_SCORES,
    FILE,
    LOG_ODDS,
    LOGIT,
    SCORES,
    TOP5_CLASSES,
    TOP5_PROBABILITIES,
    Column,
    Table,
    between,
    read_table,
)

CORRUPTING = "imagecorruptions-imaug"
"""The library of the corruptions."""
LIBRARIES = {
    CORRUPTING: (CORRUPTING,),
    "numba": ("numba",),
    "numpy": ("numpy",),
    # one library, with and without windows
    "opencv": ("opencv-python-headless", "opencv-python"),
    "pillow": ("pillow",),
    "scikit-image": ("scikit-image",),
    "scipy": ("scipy",),
}
"""The libraries that make the pixels, and under which names each is installed."""


def installed_versions() -> dict[str, str]:
    """The versions of LIBRARIES here."""
    return {
        library: next(iter(library_versions(names).values()), "not installed") for library, names in LIBRARIES.items()
    }


ANSWERS: dict[str, Any] = {
    "top5_class": TOP5_CLASSES,
    "top5_probability": TOP5_PROBABILITIES,
    "log_odds": LOG_ODDS,  # of the top-1 class
    "largest_logit": LOGIT,
    "second_logit": LOGIT,
    "log_sum_exp": LOGIT,  # of all logits
    "class_of_edition": CLASS,  # the highest among the edition's classes
    "class_logit": LOGIT,  # of the image's class
}
STEP = Column(pa.int8(), "a severity or a frame, 0 for neither", between(0, 127))

NAMED: dict[str, Any] = {"key": ChangeName._fields, "file": FILE, "change": CHANGE, "step": STEP}
"""The key and the columns of its parts in a table by changed image."""

NAMED_ANSWERS = Table(**NAMED, **ANSWERS)
"""The table of answers by changed image, whatever its family."""

CHECKED_COLUMNS = ("top5_class", "top5_probability", "log_odds")
"""The columns of answers to a clean image that must equal the scores that the edition's sets were chosen by."""


def with_family_step(rows: pd.DataFrame, family: Family) -> pd.DataFrame:
    """Rows by changed image, the step under the family's own name of it, such as severity."""
    return rows.rename(columns=dict(zip(["step"], family.steps, strict=False)))


def with_step(rows: pd.DataFrame, family: Family) -> pd.DataFrame:
    """Rows of a family's table with the column `step`, 0 for a family without steps."""
    return rows.rename(columns=dict.fromkeys(family.steps, "step")) if family.steps else rows.assign(step=0)


def predictions_table(family: Family) -> Table:
    """The table of answers to a family."""
    return family.table(**ANSWERS)


ANSWER_TABLES = {family.name: predictions_table(family) for family in FAMILIES}
"""The tables of answers by family."""


def answer_columns(logits: Floats, classes: Iterable[int]) -> ScoreColumns:
    """The columns of ANSWERS but class_logit, from logits of shape (n, 1000) and the edition's class indices.

    Raises ValueError if a logit is not finite.
    """
    found = top5(logits)
    of_edition = np.asarray(sorted(classes), np.int16)
    found |= {name: values.astype(np.float32) for name, values in margins(logits).items()}
    # argmax takes the lower of equal ones
    return found | {"class_of_edition": of_edition[np.argmax(logits[:, of_edition], axis=1)]}


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """Function from logits and the names of changed images to the columns of ANSWERS."""

    classes: Sequence[int]
    """The class indices that an answer may be restricted to."""
    class_of: Mapping[str, int]
    """The class index of each image, by file."""

    def __call__(self, logits: Floats, names: Sequence[ChangeName]) -> ScoreColumns:
        """The columns. Raises ValueError if a logit is not finite."""
        chosen = logits[np.arange(len(logits)), [self.class_of[name.file] for name in names]]
        return answer_columns(logits, self.classes) | {"class_logit": chosen.astype(np.float32)}


def check_clean(
    role: str, images: pd.DataFrame, clean: pd.DataFrame, scores: pd.DataFrame, crop_scores: pd.DataFrame
) -> None:
    """Raise CleansetError unless each image got the stored scores, bit for bit.

    `images` are rows of STUDY_IMAGES, `clean` the answers to them by file, in the same order, `scores` and
    `crop_scores` the stored ones of whole images and of crops.
    """
    stored = {
        (image_id, box_of(crop)): row
        for table in (scores.assign(crop=None), crop_scores)
        for image_id, crop, *row in table[["image_id", "crop", *CHECKED_COLUMNS]].itertuples(index=False)
    }
    answers = clean[list(CHECKED_COLUMNS)].itertuples(index=False)
    for file, image_id, crop, answer in zip(images["file"], images["image_id"], images["crop"], answers, strict=True):
        if (found := stored.get((image_id, box_of(crop)))) is None:
            raise CleansetError(f"{file}: {role} has no stored scores of it; run dvc repro in the edition")
        for column, left, right in zip(CHECKED_COLUMNS, answer, found, strict=True):
            if not np.array_equal(left, right):
                raise CleansetError(
                    f"{file}: {role} gives {column} {_digits(left)}, the stored scores {_digits(right)}; "
                    f"expected the same bits: run dvc repro --single-item --force score@{role} in the edition"
                )


def _digits(values: object) -> str:
    """One value or several, float32 with the nine digits that distinguish any two."""
    return " ".join(f"{value:.9g}" for value in np.atleast_1d(np.asarray(values)).tolist())


CheckClean = Callable[[pd.DataFrame, pd.DataFrame], None]
"""Takes rows of STUDY_IMAGES and the answers to them, clean, in the same order; raises CleansetError if these differ
from stored ones."""


def check_of_stored(edition: Edition, role: str, classes: ClassTable) -> CheckClean:
    """The check that clean answers of a role are its stored scores; `classes`: the edition's class table."""
    whole = read_table(edition.scores(role), SCORES, classes)
    crops = read_table(edition.crop_scores(role), CROP_SCORES, classes)
    return lambda images, clean: check_clean(role, images, clean, scores=whole, crop_scores=crops)
