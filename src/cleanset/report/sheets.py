"""The content of the contact sheets: the images kept in each class, one line for each model that keeps them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cleanset.images.boxes import Box, box_of
from cleanset.report.figures import ClassState, Key, keys
from cleanset.selection.fill import Filled

CLASSES_PER_SHEET = 50


@dataclass(frozen=True, slots=True)
class Use:
    """An image in the set of one model, with its confidence on the delivered pixels and on the whole image.

    `confidence` is None where the five most probable classes of a crop lack the class.
    """

    role: str
    place: int
    tier: str
    confidence: float | None
    source_confidence: float


@dataclass(frozen=True, slots=True)
class Kept:
    """An image that is kept in a class, and by which models; the box is None for a whole one.

    `basis`: the firmest one of its reviews, None where nobody reviewed it. `box_unknown`: it is to be cropped, and kept
    for counting only.
    """

    image_id: str
    crop: Box | None
    uses: tuple[Use, ...]
    basis: str | None
    box_unknown: bool = False

    @property
    def reviewed(self) -> bool:
        """Whether anybody has reviewed it."""
        return self.basis is not None


@dataclass(frozen=True, slots=True)
class Sheet:
    """One page: the file's name, and the classes on it."""

    file: str
    classes: tuple[ClassState, ...]


def kept_images(
    sets: Mapping[str, Filled], delivered: Mapping[str, Sequence[float | None]], bases: Mapping[Key, str]
) -> dict[int, list[Kept]]:
    """The images of each class that has some, by their best place, then by model and image id.

    `delivered`: by model, the confidence of each row of its selection on the delivered pixels. `bases`: of the images
    that are reviewed, the firmest basis of a review.
    """
    uses: dict[tuple[int, str, Box | None], list[Use]] = {}
    unknown = {key for filled in sets.values() for key in keys(filled.selection[filled.selection["box_unknown"]])}
    for role, filled in sets.items():
        rows = filled.selection.assign(delivered=pd.Series(delivered[role], index=filled.selection.index, dtype=object))
        for row in rows.sort_values(["class_index", "place"]).to_dict("records"):
            key = (row["class_index"], row["image_id"], box_of(row["crop"]))
            use = Use(role, row["place"], row["tier"], row["delivered"], float(row["confidence"]))
            uses.setdefault(key, []).append(use)
    order = list(sets)
    found: dict[int, list[Kept]] = {}
    for (index, image_id, crop), of_models in uses.items():
        image = index, image_id
        kept = Kept(image_id, crop, tuple(of_models), bases.get(image), image in unknown)
        found.setdefault(index, []).append(kept)
    for images in found.values():
        images.sort(key=lambda kept: _order(kept, order))
    return dict(sorted(found.items()))


def _order(kept: Kept, roles: Sequence[str]) -> tuple[int, int, str]:
    place, role = min((use.place, roles.index(use.role)) for use in kept.uses)
    return place, role, kept.image_id


def sheets(states: Sequence[ClassState]) -> list[Sheet]:
    """The classes in pages of CLASSES_PER_SHEET, by class index."""
    pages = [tuple(states[start : start + CLASSES_PER_SHEET]) for start in range(0, len(states), CLASSES_PER_SHEET)]
    digits = len(str(len(pages)))
    return [Sheet(f"sheet-{number:0{digits}}.html", page) for number, page in enumerate(pages, start=1)]
