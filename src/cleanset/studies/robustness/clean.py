"""The row `clean` against the scores that the edition's sets were chosen by."""

import numpy as np
import pandas as pd

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.tables import CROP_SCORES, SCORES, read_table

COMPARED = ("top5_class", "top5_probability", "log_odds")


def check_clean(
    role: str, images: pd.DataFrame, clean: pd.DataFrame, scores: pd.DataFrame, crop_scores: pd.DataFrame
) -> None:
    """Raise CleansetError unless each image got the stored scores, bit for bit.

    `images` are rows of STUDY_IMAGES, `clean` the answers to them by file, in the same order, `scores` and
    `crop_scores` the stored ones of whole images and of crops.
    """
    whole = {image_id: row for image_id, *row in scores[["image_id", *COMPARED]].itertuples(index=False)}
    cropped = {
        (image_id, tuple(crop)): row
        for image_id, crop, *row in crop_scores[["image_id", "crop", *COMPARED]].itertuples(index=False)
    }
    answers = clean[list(COMPARED)].itertuples(index=False)
    for file, image_id, crop, answer in zip(images["file"], images["image_id"], images["crop"], answers, strict=True):
        stored = whole.get(image_id) if crop is None else cropped.get((image_id, tuple(crop)))
        if stored is None:
            raise CleansetError(f"{file}: {role} has no stored scores of it; run dvc repro in the edition")
        for column, left, right in zip(COMPARED, answer, stored, strict=True):
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
