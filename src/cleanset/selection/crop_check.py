"""Predictions on cropped images, and the candidates rejected because a crop is misclassified.

A model that is correct on the whole image may misclassify the part inside a reviewer's box.
"""

from collections.abc import Iterable, Mapping
from math import fsum
from typing import NamedTuple

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.images.boxes import Crop, box_of, known_box
from cleanset.selection.candidates import top5_predictions
from cleanset.selection.fill import Decision
from cleanset.selection.selected import SelectedImage, boxes_of
from cleanset.statistics.formats import rounded
from cleanset.vocabulary import WRONG_AFTER_CROP


class Prediction(NamedTuple):
    """The top-1 class and its softmax probability."""

    class_index: int
    confidence: float


Predictions = Mapping[Crop, Prediction]
"""A model's prediction on each crop that was scored."""


def predictions_of_crops(crop_scores: pd.DataFrame) -> dict[Crop, Prediction]:
    """A model's prediction on each crop, from the columns of table CROP_SCORES."""
    classes, probabilities = top5_predictions(crop_scores)
    predictions = map(Prediction, classes[:, 0].tolist(), probabilities[:, 0].tolist())
    return dict(zip(crops_of(crop_scores), predictions, strict=True))


def crops_of(crops: pd.DataFrame) -> list[Crop]:
    """The crop of each row of table CROPS or CROP_SCORES."""
    boxes = map(box_of, crops["crop"])
    return [Crop(image_id, box) for image_id, box in zip(crops["image_id"], boxes, strict=True) if box is not None]


def known_crops(images: pd.DataFrame) -> list[Crop]:
    """The crops of known boxes among images with the columns of boxes that table SELECTION has."""
    boxes = map(known_box, boxes_of(images))
    return [Crop(image_id, box) for image_id, box in zip(images["image_id"], boxes, strict=True) if box is not None]


def check_scored(crops: Iterable[Crop], predictions: Predictions, where: str) -> None:
    """Raise CleansetError, naming `where`, for the first of `crops` that has no prediction."""
    lacking = sorted(crop for crop in crops if crop not in predictions)
    if lacking:
        raise CleansetError(
            f"{where}: no scores of {lacking[0]}, which the reviews ask for; "
            "expected the scores of every crop: run dvc repro (crops, then score_crops)"
        )


def is_misclassified(crop: Crop, class_index: int, predictions: Predictions) -> bool:
    """Whether a crop's top-1 class is not `class_index`; False for a crop without a prediction."""
    return crop in predictions and predictions[crop].class_index != class_index


def after_crop(decision: Decision, image_id: str, class_index: int, predictions: Predictions) -> Decision:
    """The decision for one model: reject a crop that it misclassifies."""
    box = known_box(decision.box)
    if box is not None and is_misclassified(Crop(image_id, box), class_index, predictions):
        return Decision("reject", WRONG_AFTER_CROP)
    return decision


def effect(selection: Iterable[SelectedImage], predictions: Predictions) -> dict[str, int | float]:
    """Metrics of the effect of cropping on the images kept.

    `images_wrong_after_crop` counts the misclassified ones. `confidence_change_by_crop` is the mean change over the
    crops that are classified correctly, in probability with six decimals; missing without crops.
    """
    changes = []
    misclassified = 0
    for image in selection:
        if image.crop is None:
            continue
        if is_misclassified(image.crop, image.class_index, predictions):
            misclassified += 1
        elif image.confidence is not None:
            changes.append(predictions[image.crop].confidence - image.confidence)
    numbers: dict[str, int | float] = {f"images_{WRONG_AFTER_CROP}": misclassified}
    if changes:
        # fsum: the same digits in any order of the rows
        numbers["confidence_change_by_crop"] = rounded(fsum(changes) / len(changes), 6)
    return numbers
