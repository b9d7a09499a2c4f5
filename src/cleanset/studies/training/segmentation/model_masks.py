"""Masks by a trained network for images that have none, as a folder for the robustness study.

The class of each image is known, so its object is where the network finds that class more probable than background,
whatever it makes of the other classes. In params.yaml of the robustness study the folder's `origin` is `model`.
"""

import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import new_folder, write_text
from cleanset.images.boxes import Box
from cleanset.studies.robustness.scenarios.masks import Mask
from cleanset.studies.training.segmentation.label_maps import BACKGROUND, Pixels, label_of

ORIGIN: Final = "model"
MADE_WITH: Final = "made_with.json"
"""File beside the masks with the network that made them."""

OwnLogits = Callable[[Pixels, int], Mask]
"""An image and a label to the pixels where that label is more probable than background."""


class UnmaskedImage(NamedTuple):
    """An image without a mask: the pixels of its file, and the crop of the original that the file holds, if any.

    `size`: width and height of the original; None where they are not known.
    """

    image_id: str
    class_index: int
    read: Callable[[], Pixels]
    crop: Box | None
    size: tuple[int, int] | None = None


@dataclass(slots=True)
class MaskCounts:
    """The number of masks that were written, and of images without one, by reason."""

    written: int = 0
    other_class: int = 0
    no_object: int = 0
    no_background: int = 0

    def lines(self) -> list[str]:
        """The numbers in words, those that are 0 left out except the first."""
        found = [f"{self.written:,} masks"]
        for count, why in (
            (self.other_class, "of a class that the network was not trained on"),
            (self.no_object, "in which it finds no object"),
            (self.no_background, "in which it finds no background"),
        ):
            if count:
                images = "image" if count == 1 else "images"
                found.append(f"{count:,} {images} without one, {why}")
        return found


def write_model_masks(
    folder: Path,
    images: Iterable[UnmaskedImage],
    object_of: OwnLogits,
    classes: tuple[int, ...],
    made_with: Mapping[str, Any],
) -> MaskCounts:
    """Write a PNG of one bit a pixel for each image, named by its id, and MADE_WITH; all of the folder or nothing.

    Raises CleansetError unless `folder` is new or empty, and for no image, or none in which an object is found.
    """
    counts = MaskCounts()
    with new_folder(folder) as partial:
        partial.mkdir(exist_ok=True)
        for image in images:
            if image.class_index not in classes:
                counts.other_class += 1
                continue
            mask = object_of(image.read(), label_of(image.class_index, classes))
            if not mask.any():
                counts.no_object += 1
            elif mask.all():
                counts.no_background += 1
            else:
                (partial / f"{image.image_id}.png").write_bytes(mask_png(in_original(mask, image.crop, image.size)))
                counts.written += 1
        if not counts.written:
            reasons = ", ".join(counts.lines()[1:]) or "every image has a mask"
            raise CleansetError(f"{folder}: no mask to write: {reasons}; expected images that get one")
        write_text(partial / MADE_WITH, json.dumps(dict(made_with), indent=2, sort_keys=True) + "\n")
    return counts


def in_original(mask: Mask, crop: Box | None, size: tuple[int, int] | None = None) -> Mask:
    """The mask of a crop in the original image of that size; without a size, as far as the crop reaches."""
    if crop is None:
        return mask
    left, top, right, bottom = crop
    width, height = (right, bottom) if size is None else size
    whole = np.zeros((height, width), np.bool_)
    whole[top:bottom, left:right] = mask
    return whole


def mask_png(mask: Mask) -> bytes:
    """A mask as PNG of one bit a pixel, the object white."""
    buffer = io.BytesIO()
    Image.fromarray(mask).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def object_of_logits(logits: np.ndarray[Any, np.dtype[np.floating[Any]]], label: int) -> Mask:
    """The pixels whose logit of a label is above that of the background; logits of shape (labels, height, width)."""
    found: Mask = logits[label] > logits[BACKGROUND]
    return found
