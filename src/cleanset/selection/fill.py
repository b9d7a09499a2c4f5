"""Fill each class from its reviewed candidates, and the decision on every candidate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from cleanset.images.boxes import CropBox
from cleanset.selection.rule import ImagesPerClass, most_images
from cleanset.selection.selected import box_columns
from cleanset.vocabulary import BOX_UNKNOWN, TIER_ORDER


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on an image. Raises ValueError for a crop without a box, and for a box with another verdict."""

    verdict: Literal["clean", "crop", "reject", "undecided"]
    """undecided: no verdict counts yet."""

    reason: str | None = None
    """For an undecided image `unreviewed`, `too_few_reviewers`, `conflict` or `box_unknown`; for a rejected one the
    reviewers' reason, `unsure` or `wrong_after_crop`."""

    box: CropBox = None
    """The box of a crop, or UNKNOWN_BOX for a crop kept without a drawn box; None for all others."""

    def __post_init__(self) -> None:
        if (self.verdict == "crop") != (self.box is not None):
            raise ValueError(f"verdict {self.verdict} with box {self.box}; expected a box with crop, and with no other")


UNREVIEWED = Decision("undecided", "unreviewed")
CONFLICT = Decision("undecided", "conflict")
TO_BE_CROPPED = Decision("undecided", BOX_UNKNOWN)
"""Decision on an image to be cropped whose box has not been drawn yet."""

Decide = Callable[[int, str], Decision]
"""Function from class index and image id to the decision on the candidate."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The images kept, and every other candidate with its reason."""

    selection: pd.DataFrame
    rejected: pd.DataFrame


def fill(candidates: pd.DataFrame, images_per_class: ImagesPerClass, crops_in_rank: bool = False) -> Filled:
    """Fill each class in the order top5 clean, top5 crop, reserve clean, reserve crop, relaxed clean, relaxed crop.

    `candidates` has, next to its own columns, `verdict` (clean, crop, reject, or undecided: no
    verdict that counts yet), `reason` (why rejected or undecided) and `crop` (box or None). Within
    a step, the lower rank (higher confidence) goes first. `crops_in_rank`: clean and crop are one step.
    Candidates without a tier are all of one: clean, then crop.

    `selection` gets `place` from 1. `rejected` gets the `reason`, which for an image that may be
    in the class but is not needed is `not_needed`; and `open`: an undecided image that, if it were
    found clean, would be among the class's images. A class with no open image is settled.
    """
    frame = candidates.assign(
        tier_order=candidates["tier"].map(TIER_ORDER.index),
        accepted=candidates["verdict"].isin(["clean", "crop"]),
        # an undecided image is sorted as the best it can become: a crop where only the box is missing, else clean
        needs_crop=((candidates["verdict"] == "crop") | (candidates["reason"] == BOX_UNKNOWN)) & (not crops_in_rank),
    ).sort_values(["class_index", "tier_order", "needs_crop", "rank"])
    accepted_before = frame.groupby("class_index")["accepted"].cumsum() - frame["accepted"]
    # an undecided image matters only while fewer accepted ones precede it than the class needs
    in_reach = accepted_before < most_images(images_per_class)
    kept = frame["accepted"] & in_reach
    selection = frame[kept]
    selection = selection.assign(place=selection.groupby("class_index").cumcount() + 1)
    rejected = frame[~kept]
    undecided = rejected["verdict"] == "undecided"
    is_open = undecided & in_reach[~kept]
    needless = rejected["accepted"] | (undecided & ~is_open)
    return Filled(
        selection,
        rejected.assign(open=is_open, reason=np.where(needless, "not_needed", rejected["reason"])),
    )


def with_decisions(candidates: pd.DataFrame, decide: Decide) -> pd.DataFrame:
    """The candidates with columns verdict and reason, and the columns of boxes that table SELECTION has."""
    each = [decide(*key) for key in zip(candidates["class_index"], candidates["image_id"], strict=True)]
    return candidates.assign(
        verdict=[decision.verdict for decision in each],
        reason=pd.Series([decision.reason for decision in each], index=candidates.index, dtype=object),
        **{
            name: pd.Series(values, index=candidates.index, dtype=object if name == "crop" else bool)
            for name, values in box_columns([decision.box for decision in each]).items()
        },
    )
