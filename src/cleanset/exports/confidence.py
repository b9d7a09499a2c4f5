"""The confidence of what is delivered: of the crop where an image is cropped, else of the whole image."""

import pandas as pd

from cleanset.selection.candidates import top5_predictions
from cleanset.selection.crop_check import crops_of


def delivered_confidences(selection: pd.DataFrame, crop_scores: pd.DataFrame) -> list[float | None]:
    """The softmax probability of each row's class on its delivered pixels, from tables SELECTION and CROP_SCORES.

    None for a crop whose five most probable classes lack the class; only review.wrong_after_crop: accept keeps one.
    """
    classes, probabilities = top5_predictions(crop_scores)
    by_class = [dict(zip(*pair, strict=True)) for pair in zip(classes.tolist(), probabilities.tolist(), strict=True)]
    of_crops = dict(zip(crops_of(crop_scores), by_class, strict=True))
    rows = zip(crops_of(selection), selection["class_index"].tolist(), selection["confidence"].tolist(), strict=True)
    return [whole if crop is None else of_crops[crop].get(class_index) for crop, class_index, whole in rows]
