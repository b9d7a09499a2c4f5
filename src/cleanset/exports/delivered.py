"""The delivered form of an image: its file, made here only, and the model's confidence on its pixels."""

from dataclasses import dataclass

import pandas as pd
from PIL.Image import Image

from cleanset.images.boxes import Box
from cleanset.images.codec import cropped, encoder, png
from cleanset.selection.candidates import top5_predictions
from cleanset.selection.crop_check import check_scored, crops_of, predictions_of_crops


@dataclass(frozen=True, slots=True)
class ImageFile:
    """The bytes of the file; of a cropped image, its pixels and what encoded them."""

    data: bytes
    part: Image | None
    encoder: str


def image_file(source: bytes, crop: Box | None) -> ImageFile:
    """A whole image byte for byte, a cropped one as PNG. Raises ValueError if it must be decoded and cannot."""
    if crop is None:
        return ImageFile(source, None, "")
    part = cropped(source, crop)
    return ImageFile(png(part), part, encoder())


def delivered_confidences(selection: pd.DataFrame, crop_scores: pd.DataFrame, where: str) -> list[float | None]:
    """The softmax probability of each row's class on its delivered pixels, from tables SELECTION and CROP_SCORES.

    None for a crop whose five most probable classes lack the class; only review.wrong_after_crop: accept keeps one.
    Raises CleansetError, naming `where`, for a crop without scores.
    """
    # first, so that of_crops has every crop
    check_scored(selection, predictions_of_crops(crop_scores), where)
    classes, probabilities = top5_predictions(crop_scores)
    by_class = [dict(zip(*pair, strict=True)) for pair in zip(classes.tolist(), probabilities.tolist(), strict=True)]
    of_crops = dict(zip(crops_of(crop_scores), by_class, strict=True))
    rows = zip(crops_of(selection), selection["class_index"].tolist(), selection["confidence"].tolist(), strict=True)
    return [whole if crop is None else of_crops[crop].get(class_index) for crop, class_index, whole in rows]
