"""The delivered form of an image: its file, made here only, and the model's confidence on its pixels."""

from collections.abc import Collection
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


def with_known_confidences(images: pd.DataFrame, unknown: Collection[str]) -> pd.DataFrame:
    """The same rows with confidence None for the images in `unknown`: those from beyond a published list."""
    if not unknown:
        return images
    rows = zip(images["image_id"], images["confidence"].tolist(), strict=True)
    known = [None if image_id in unknown else confidence for image_id, confidence in rows]
    return images.assign(confidence=pd.Series(known, index=images.index, dtype=object))


def delivered_confidences(selection: pd.DataFrame, crop_scores: pd.DataFrame | None, where: str) -> list[float | None]:
    """The softmax probability of each row's class on its delivered pixels, from tables SELECTION and CROP_SCORES.

    None for a crop whose five most probable classes lack the class; only review.wrong_after_crop: accept keeps one.
    Without `crop_scores`, as of a published list, None for every crop. Raises CleansetError, naming `where`, for a crop
    without scores.
    """
    if crop_scores is None:
        rows_of_list = zip(crops_of(selection), selection["confidence"].tolist(), strict=True)
        return [whole if crop is None else None for crop, whole in rows_of_list]
    # first, so that of_crops has every crop
    check_scored(selection, predictions_of_crops(crop_scores), where)
    classes, probabilities = top5_predictions(crop_scores)
    by_class = [dict(zip(*pair, strict=True)) for pair in zip(classes.tolist(), probabilities.tolist(), strict=True)]
    of_crops = dict(zip(crops_of(crop_scores), by_class, strict=True))
    rows = zip(crops_of(selection), selection["class_index"].tolist(), selection["confidence"].tolist(), strict=True)
    return [whole if crop is None else of_crops[crop].get(class_index) for crop, class_index, whole in rows]
