"""The rows of the tables SELECTION and REJECTED as records, and the columns of their boxes."""

from pathlib import Path

import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.images.boxes import UNKNOWN_BOX, Crop
from cleanset.selection.fill import Decision, with_decisions
from cleanset.selection.selected import (
    RejectedImage,
    SelectedImage,
    box_columns,
    boxes_of,
    rejected_images,
    selected_images,
)
from cleanset.tables import SELECTION, read_table, write_table

A, B, C = (f"ILSVRC2012_val_{number:08}" for number in (1, 2, 3))
BOX = 1, 2, 30, 40


def test_the_box_of_a_row_is_drawn_unknown_or_none(tmp_path: Path) -> None:
    selection = pd.DataFrame(
        {
            "image_id": [A, B, C], "class_index": [7, 7, 9], "place": [1, 2, 1], "tier": ["top5", "reserve", "relaxed"],
            "rank": [1, 4, 2], "confidence": [0.5, 0.25, 0.125], **box_columns([BOX, UNKNOWN_BOX, None]),
        }
    )  # fmt: skip
    write_table(tmp_path / "selection", selection, SELECTION, imagenet())
    read = read_table(tmp_path / "selection", SELECTION, imagenet())
    assert boxes_of(read) == [(1, 2, 30, 40), UNKNOWN_BOX, None]
    assert read["box_unknown"].tolist() == [False, True, False]
    assert [None if crop is None else list(crop) for crop in read["crop"]] == [[1, 2, 30, 40], None, None]
    images = selected_images(read)
    assert images[1] == SelectedImage(
        image_id=B, class_index=7, place=2, tier="reserve", rank=4, confidence=0.25, box=UNKNOWN_BOX
    )
    assert [image.crop for image in images] == [Crop(A, BOX), None, None]


def test_an_unknown_confidence_is_none() -> None:
    rejected = pd.DataFrame(
        {
            "image_id": [A, B], "class_index": 7, "tier": "top5", "rank": [1, 2], "confidence": [float("nan"), 0.5],
            "reason": ["blur", "unreviewed"], "open": [False, True],
        }
    )  # fmt: skip
    assert rejected_images(rejected) == [
        RejectedImage(image_id=A, class_index=7, tier="top5", rank=1, confidence=None, reason="blur", open=False),
        RejectedImage(image_id=B, class_index=7, tier="top5", rank=2, confidence=0.5, reason="unreviewed", open=True),
    ]


def test_decisions_bring_the_columns() -> None:
    decisions = {A: Decision("crop", "border", BOX), B: Decision("crop", "border", UNKNOWN_BOX), C: Decision("clean")}
    candidates = pd.DataFrame({"class_index": 7, "image_id": [A, B, C]}, index=[5, 3, 4])
    decided = with_decisions(candidates, lambda _, image_id: decisions[image_id])
    assert boxes_of(decided) == [BOX, UNKNOWN_BOX, None]
    assert decided["verdict"].tolist() == ["crop", "crop", "clean"]


def test_a_crop_has_a_box_and_nothing_else_has_one() -> None:
    with pytest.raises(ValueError, match="verdict crop with box None; expected a box with crop, and with no other"):
        Decision("crop", "border")
    with pytest.raises(ValueError, match=r"verdict clean with box \(1, 2, 30, 40\); expected a box with crop"):
        Decision("clean", None, BOX)
