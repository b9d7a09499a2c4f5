"""What a model says of a picture once it is cropped, and which candidates that costs.

A model was right on the whole picture; of the part that a reviewer's box leaves it may say something else.
"""

from collections.abc import Mapping
from math import fsum
from typing import NamedTuple

import pandas as pd

from cleanset.boxes import Crop, box_of
from cleanset.errors import CleansetError
from cleanset.ranking import top5

WRONG_AFTER_CROP = "wrong_after_crop"
"""Why a candidate is not in the set: cropped as the reviewers say, the model no longer gets it right."""


class Said(NamedTuple):
    """The highest class and its probability."""

    class_index: int
    confidence: float


def said_of_crops(crop_scores: pd.DataFrame) -> dict[Crop, Said]:
    """What a model says of each crop, from the columns of table CROP_SCORES."""
    classes, probabilities = top5(crop_scores)
    edges = (crop_scores[name].tolist() for name in ("left", "top", "right", "bottom"))
    crops = map(Crop, crop_scores["image_id"], zip(*edges, strict=True))
    return {
        crop: Said(class_index, confidence)
        for crop, class_index, confidence in zip(
            crops, classes[:, 0].tolist(), probabilities[:, 0].tolist(), strict=True
        )
    }


def crops_of(pictures: pd.DataFrame) -> list[Crop | None]:
    """The crop of each row, from columns image_id and crop; None for a whole picture."""
    return [
        None if box is None else Crop(image_id, box)
        for image_id, box in zip(pictures["image_id"], map(box_of, pictures["crop"]), strict=True)
    ]


def check_scored(pictures: pd.DataFrame, said: Mapping[Crop, Said], where: str) -> None:
    """Raise CleansetError, naming `where`, for the first crop among `pictures` of which nothing is said."""
    lacking = sorted(crop for crop in crops_of(pictures) if crop is not None and crop not in said)
    if lacking:
        raise CleansetError(
            f"{where}: no scores of {lacking[0]}, as the reviews have it; "
            "expected those of every crop: run dvc repro (crops, then score_crops)"
        )


def is_wrong(crop: Crop, class_index: int, said: Mapping[Crop, Said]) -> bool:
    """Whether the highest class of a crop is another than its class; a crop of which nothing is said yet is right."""
    return crop in said and said[crop].class_index != class_index


def are_wrong(pictures: pd.DataFrame, said: Mapping[Crop, Said]) -> "pd.Series[bool]":
    """The same of each row, by its `class_index`; whole pictures are right."""
    wrong = [
        crop is not None and is_wrong(crop, class_index, said)
        for crop, class_index in zip(crops_of(pictures), pictures["class_index"], strict=True)
    ]
    return pd.Series(wrong, index=pictures.index, dtype=bool)


def reject_wrong_crops(candidates: pd.DataFrame, said: Mapping[Crop, Said]) -> pd.DataFrame:
    """The candidates with their decisions; rejected where the model gets the crop wrong."""
    wrong = are_wrong(candidates, said)
    return candidates.assign(
        verdict=candidates["verdict"].mask(wrong, "reject"),
        reason=candidates["reason"].mask(wrong, WRONG_AFTER_CROP),
    )


def effect(selection: pd.DataFrame, said: Mapping[Crop, Said]) -> dict[str, int | float]:
    """Of the pictures kept: how many crops are wrong, and by how much cropping moves the confidence.

    The change is the mean over the crops that the model gets right, in probability with six decimals; nothing
    where there is none.
    """
    wrong = are_wrong(selection, said)
    numbers: dict[str, int | float] = {f"pictures_{WRONG_AFTER_CROP}": int(wrong.sum())}
    right = selection[~wrong]
    moved = [
        said[crop].confidence - before
        for crop, before in zip(crops_of(right), right["confidence"].tolist(), strict=True)
        if crop is not None
    ]
    if moved:
        numbers["confidence_change_by_crop"] = round(fsum(moved) / len(moved), 6)
    return numbers
