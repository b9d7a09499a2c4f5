"""The candidates of a filled class as records, from the tables SELECTION and REJECTED.

A table has the box of an image in two columns: `crop`, null for a whole image and for an unknown box, and
`box_unknown`, which distinguishes these two. Nothing else reads or makes these columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Literal

from cleanset.images.boxes import UNKNOWN_BOX, Crop, CropBox, box_of, known_box
from cleanset.vocabulary import NO_TIER, Tier

if TYPE_CHECKING:  # the review page starts without pandas
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedImage:
    """An image that is kept in a class."""

    image_id: str
    class_index: int
    place: int
    """In the finished class, from 1."""

    tier: Tier | None
    """None in a set without a model."""

    rank: int
    """Among the candidates of the class, from 1."""

    confidence: float | None
    """The model's softmax probability of the class on the whole image; None if it is not known."""

    box: CropBox

    @property
    def crop(self) -> Crop | None:
        """The part that is cut out; None for a whole image and for an unknown box."""
        box = known_box(self.box)
        return None if box is None else Crop(self.image_id, box)


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedImage:
    """A candidate that is not kept."""

    image_id: str
    class_index: int
    tier: Tier | None
    """None in a set without a model."""

    rank: int
    """Among the candidates of the class, from 1."""

    confidence: float | None
    """The model's softmax probability of the class on the whole image; None if it is not known."""

    reason: str
    open: bool
    """Whether a verdict is missing that could still bring it in."""


def box_columns(boxes: Sequence[CropBox]) -> dict[str, list[object]]:
    """The columns `crop` and `box_unknown` of images with these boxes."""
    return {"crop": [known_box(box) for box in boxes], "box_unknown": [box is UNKNOWN_BOX for box in boxes]}


def boxes_of(selection: "pd.DataFrame") -> list[CropBox]:
    """The box of each row of table SELECTION."""
    columns = zip(selection["crop"].tolist(), selection["box_unknown"].tolist(), strict=True)
    return [UNKNOWN_BOX if is_unknown else box_of(crop) for crop, is_unknown in columns]


def selected_images(selection: "pd.DataFrame") -> list[SelectedImage]:
    """The rows of table SELECTION, in their order."""
    columns = ("image_id", "class_index", "place", "tier", "rank", "confidence")
    values = (selection[name].tolist() for name in columns)
    return [
        SelectedImage(
            image_id=image_id,
            class_index=class_index,
            place=place,
            tier=_known_tier(tier),
            rank=rank,
            confidence=_known(confidence),
            box=box,
        )
        for image_id, class_index, place, tier, rank, confidence, box in zip(*values, boxes_of(selection), strict=True)
    ]


def rejected_images(rejected: "pd.DataFrame") -> list[RejectedImage]:
    """The rows of table REJECTED, in their order."""
    columns = ("image_id", "class_index", "tier", "rank", "confidence", "reason", "open")
    values = (rejected[name].tolist() for name in columns)
    return [
        RejectedImage(
            image_id=image_id,
            class_index=class_index,
            tier=_known_tier(tier),
            rank=rank,
            confidence=_known(confidence),
            reason=reason,
            open=bool(is_open),
        )
        for image_id, class_index, tier, rank, confidence, reason, is_open in zip(*values, strict=True)
    ]


def _known_tier(tier: Tier | Literal["none"]) -> Tier | None:
    """A tier; None for the value that is in tables for none."""
    return None if tier == NO_TIER else tier


def _known(confidence: float | None) -> float | None:
    """A confidence; None for the NaN that stands for a missing one in a column of numbers."""
    return None if confidence is None or isnan(confidence) else confidence
