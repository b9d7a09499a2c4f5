"""The delivered form of an image: its file, its manifest entry, and the model's confidence on its pixels."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from PIL.Image import Image

from cleanset.classes import ClassTable
from cleanset.files import sha256
from cleanset.images.boxes import Box, box_of
from cleanset.images.codec import cropped, encoder, pixels_sha256, png
from cleanset.selection.candidates import top5_predictions
from cleanset.selection.crop_check import check_scored, crops_of, predictions_of_crops
from cleanset.sets.manifest import Entry, file_name
from cleanset.vocabulary import BOX_UNKNOWN


@dataclass(frozen=True, slots=True)
class ImageFile:
    """The bytes of the file; of a cropped image, its pixels and their encoder."""

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
    known = images["confidence"].astype(object).mask(images["image_id"].isin(unknown), None)
    return images.assign(confidence=known)


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


def without_unknown_boxes(selection: pd.DataFrame, rejected: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The images that can be delivered, in places without a gap; and the rejected ones with all others."""
    known = selection[~selection["box_unknown"]].sort_values(["class_index", "place"])
    others = selection[selection["box_unknown"]].assign(reason=BOX_UNKNOWN, open=False)
    every = pd.concat([rejected, others[list(rejected.columns)]]) if len(others) else rejected
    places = known.groupby("class_index").cumcount() + 1
    return known.assign(place=places).sort_values("image_id"), every


def make_class_folders(folder: Path, keys: Iterable[str]) -> None:
    """Make a new folder, and in it one for each of these class keys."""
    folder.mkdir()
    for key in set(keys):
        (folder / key).mkdir()


_AS_SELECTED = ("class_index", "image_id", "tier", "ilsvrc_class", "reviewers", "source_check")
"""Fields of an entry with the values of the selected image."""


def write_image(folder: Path, role: str, row: Mapping[Hashable, Any], source: bytes, classes: ClassTable) -> Entry:
    """Write one image of a set below `folder`, and return its entry.

    `row`: a selected image, with image_id, class_index, place, tier, crop, confidence (on the whole image), delivered
    (on the delivered one), ilsvrc_class, real_classes, reviewers, source_check, and sha256 and pixels_sha256 of the
    whole image, whose bytes are `source`. Raises pydantic's ValidationError for values that contradict each other.
    """
    crop = box_of(row["crop"])
    made = image_file(source, crop)
    wnid = classes.keys[row["class_index"]]
    file = file_name(wnid, row["image_id"], crop, classes)
    (folder / file).write_bytes(made.data)
    values = {
        "model": role,
        "wnid": wnid,
        "class_name": classes.labels[row["class_index"]],
        "rank": row["place"],
        "confidence": row["delivered"],
        "source_confidence": row["confidence"],
        "real_classes": tuple(map(int, row["real_classes"])),
        "crop": crop,
        "file": file,
        "source_sha256": row["sha256"],
        # the source's digests are those of a whole image
        "file_sha256": row["sha256"] if made.part is None else sha256(made.data),
        "pixels_sha256": row["pixels_sha256"] if made.part is None else pixels_sha256(made.part),
        "encoder": made.encoder,
        "group": row.get("group", ""),
        **{name: row[name] for name in _AS_SELECTED},
    }
    return Entry.checked(values, classes)
