"""The stored answer of a model to a changed image: all that the measures need, and no more.

The answers to clean images, with the model's own preprocessing, are checked against the stored scores of the edition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.scoring.logits import Columns, top5
from cleanset.scoring.validity import library_versions
from cleanset.studies.robustness.changed_images import ChangeName
from cleanset.studies.robustness.families import FAMILIES
from cleanset.studies.robustness.family import Family
from cleanset.tables import (
    CLASS,
    CROP_SCORES,
    FILE,
    LOG_ODDS,
    LOGIT,
    SCORES,
    TOP5_CLASSES,
    TOP5_PROBABILITIES,
    Table,
    read_table,
)

LIBRARIES = {
    "imagecorruptions-imaug": ("imagecorruptions-imaug",),
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
CHECKED_COLUMNS = ("top5_class", "top5_probability", "log_odds")
"""The columns in which the answers to a clean image must equal the scores that the edition's sets were chosen by."""

NAMED_ANSWERS = Table(image_id=FILE, **ANSWERS)
"""The table of answers by the name of a changed image."""


def predictions_table(family: Family) -> Table:
    """The table of answers to a family."""
    return family.table(**ANSWERS)


PREDICTIONS = {family.name: predictions_table(family) for family in FAMILIES}
"""The tables of answers by family."""


LOGITS = "logits"
"""The column of all logits, from which `with_class_logit` takes those of the images' classes."""


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """Function from logits of shape (n, 1000) to the columns of ANSWERS but class_logit.

    `classes`: the edition's class indices. `keeps_logits`: there is a column LOGITS, too, since logits do not tell
    whose images they are of.
    """

    classes: Sequence[int]
    keeps_logits: bool = False

    def __call__(self, logits: NDArray[np.float64]) -> Columns:
        """The columns. Raises ValueError if a logit is not finite."""
        found = top5(logits)
        second, largest = np.sort(logits, axis=1)[:, -2:].T
        classes = np.asarray(sorted(self.classes), np.int16)
        if self.keeps_logits:
            found |= {LOGITS: logits}
        return found | {
            "largest_logit": largest.astype(np.float32),
            "second_logit": second.astype(np.float32),
            # the largest is subtracted first, since exp overflows above 709
            "log_sum_exp": (largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))).astype(np.float32),
            # argmax takes the lower of equal ones
            "class_of_edition": classes[np.argmax(logits[:, classes], axis=1)],
        }


def with_class_logit(columns: Columns, classes: Sequence[int]) -> Columns:
    """The columns of ANSWERS, from those that `keeps_logits` leaves and the class index of each image."""
    logits = columns[LOGITS]
    chosen = logits[np.arange(len(logits)), np.asarray(classes, np.int64)].astype(np.float32)
    return {**{name: values for name, values in columns.items() if name != LOGITS}, "class_logit": chosen}


def with_keys(columns: pd.DataFrame, names: Sequence[ChangeName], table: Table) -> pd.DataFrame:
    """The columns of a table by image, change and step, from rows in the order of `names`."""
    keys = pd.DataFrame(list(names), columns=[*ChangeName._fields]).astype({"step": "int8"})
    keys = keys.rename(columns={"step": table.key[2]} if len(table.key) > 2 else {})
    return columns.reset_index(drop=True).assign(**{name: keys[name] for name in table.key})[table.names]


def check_clean(
    role: str, images: pd.DataFrame, clean: pd.DataFrame, scores: pd.DataFrame, crop_scores: pd.DataFrame
) -> None:
    """Raise CleansetError unless each image got the stored scores, bit for bit.

    `images` are rows of STUDY_IMAGES, `clean` the answers to them by file, in the same order, `scores` and
    `crop_scores` the stored ones of whole images and of crops.
    """
    whole = {image_id: row for image_id, *row in scores[["image_id", *CHECKED_COLUMNS]].itertuples(index=False)}
    cropped = {
        (image_id, tuple(crop)): row
        for image_id, crop, *row in crop_scores[["image_id", "crop", *CHECKED_COLUMNS]].itertuples(index=False)
    }
    answers = clean[list(CHECKED_COLUMNS)].itertuples(index=False)
    for file, image_id, crop, answer in zip(images["file"], images["image_id"], images["crop"], answers, strict=True):
        stored = whole.get(image_id) if crop is None else cropped.get((image_id, tuple(crop)))
        if stored is None:
            raise CleansetError(f"{file}: {role} has no stored scores of it; run dvc repro in the edition")
        for column, left, right in zip(CHECKED_COLUMNS, answer, stored, strict=True):
            if not np.array_equal(left, right):
                raise CleansetError(
                    f"{file}: {role} gives {column} {_digits(left)}, the stored scores {_digits(right)}; "
                    f"expected the same bits: run dvc repro --force score@{role} in the edition"
                )


def _digits(values: object) -> str:
    """One value or several, float32 with the nine digits that tell any two apart."""
    return " ".join(f"{value:.9g}" for value in np.atleast_1d(np.asarray(values)).tolist())


class StoredScores:
    """The stored scores of a role, which its clean answers must equal."""

    def __init__(self, edition: Edition, role: str) -> None:
        self._role = role
        self._whole = read_table(edition.scores(role), SCORES)
        self._crops = read_table(edition.crop_scores(role), CROP_SCORES)

    def __call__(self, images: pd.DataFrame, clean: pd.DataFrame) -> None:
        """Raise CleansetError unless each image got the stored scores, bit for bit."""
        check_clean(self._role, images, clean, self._whole, self._crops)
