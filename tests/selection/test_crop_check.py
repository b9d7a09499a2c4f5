"""A crop that the model misclassifies: what it costs, on tables written by hand."""

from pathlib import Path

import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.images.boxes import UNKNOWN_BOX, Crop, CropBox
from cleanset.selection.crop_check import (
    Prediction,
    after_crop,
    check_scored,
    effect,
    is_misclassified,
    predictions_of_crops,
)
from cleanset.selection.fill import Decision, Filled
from cleanset.selection.selected import SelectedImage
from cleanset.tables import CROP_SCORES, read_table, write_table
from tests.selection.by_hand import BOX, SNOWMOBILE, SNOWPLOW, after_crops, crop_scores_of

OTHER_BOX = (0, 0, 9, 8)


def kept(found: Filled) -> list[str]:
    return found.selection.sort_values("place")["image_id"].tolist()


def reasons(found: Filled) -> dict[str, str]:
    return dict(zip(found.rejected["image_id"], found.rejected["reason"], strict=True))


def still_open(found: Filled) -> set[str]:
    return set(found.rejected.loc[found.rejected["open"], "image_id"])


def test_the_next_candidate_takes_its_turn() -> None:
    found = after_crops("top5 clean", "top5 miscrop", "top5 crop", "reserve clean", "reserve clean")
    assert kept(found) == ["p1", "p3", "p4"]
    assert reasons(found) == {"p2": "wrong_after_crop", "p5": "not_needed"}
    assert still_open(found) == set()


def test_a_crop_that_is_correct_stays() -> None:
    found = after_crops("top5 clean", "top5 crop", "top5 crop", "reserve clean")
    assert kept(found) == ["p1", "p2", "p3"]
    assert reasons(found) == {"p4": "not_needed"}


def test_the_class_stays_open_where_that_brings_unreviewed_images_in_reach() -> None:
    words = ["top5 clean", "top5 clean", "top5 {}", "reserve undecided", "relaxed undecided"]
    assert still_open(after_crops(*(word.format("crop") for word in words))) == set()
    miscropped = after_crops(*(word.format("miscrop") for word in words))
    assert kept(miscropped) == ["p1", "p2"]
    assert still_open(miscropped) == {"p4", "p5"}
    assert reasons(miscropped) == {"p3": "wrong_after_crop", "p4": "unreviewed", "p5": "unreviewed"}


def test_an_image_that_would_not_be_needed_either() -> None:
    found = after_crops("top5 clean", "reserve miscrop", images_per_class=1)
    assert reasons(found) == {"p2": "wrong_after_crop"}


def test_only_the_box_that_was_decided_on_counts() -> None:
    predictions = {Crop("a", BOX): Prediction(SNOWMOBILE, 0.5), Crop("a", OTHER_BOX): Prediction(SNOWPLOW, 0.5)}
    decisions = [Decision("crop", "text", BOX), Decision("crop", "text", OTHER_BOX), Decision("clean")]
    assert [after_crop(decision, "a", SNOWMOBILE, predictions) for decision in decisions] == [
        decisions[0],
        Decision("reject", "wrong_after_crop"),
        decisions[2],
    ]


def test_the_class_in_question_is_that_of_the_candidate() -> None:
    """An image of both may be in either."""
    predictions = {Crop("a", BOX): Prediction(SNOWPLOW, 0.5)}
    assert is_misclassified(Crop("a", BOX), SNOWMOBILE, predictions)
    assert not is_misclassified(Crop("a", BOX), SNOWPLOW, predictions)
    assert not is_misclassified(Crop("b", BOX), SNOWMOBILE, predictions)


def test_predictions() -> None:
    table = crop_scores_of({Crop("a", BOX): (SNOWMOBILE, 0.75), Crop("a", OTHER_BOX): (SNOWPLOW, 0.25)})
    assert predictions_of_crops(table) == {("a", BOX): (SNOWMOBILE, 0.75), ("a", OTHER_BOX): (SNOWPLOW, 0.25)}


def test_no_prediction() -> None:
    assert predictions_of_crops(crop_scores_of({})) == {}


def test_the_first_crop_without_scores_is_reported() -> None:
    crops = [Crop("c", BOX), Crop("b", OTHER_BOX), Crop("a", BOX)]
    with pytest.raises(CleansetError, match=r"^s: no scores of b cropped to \[0, 0, 9, 8\], which the reviews ask for"):
        check_scored(crops, {Crop("a", BOX): Prediction(1, 0.5), Crop("b", BOX): Prediction(1, 0.5)}, "s")


def test_the_effect_of_cropping() -> None:
    boxes: dict[str, CropBox] = {"whole": None, "more": BOX, "less": BOX, "misclassified": BOX, "boxless": UNKNOWN_BOX}
    confidences = [0.5, 0.5, 0.75, 0.5, 0.5]
    selection = [
        SelectedImage(
            image_id=name, class_index=SNOWMOBILE, place=1, tier="top5", rank=1, confidence=confidence, box=box
        )
        for (name, box), confidence in zip(boxes.items(), confidences, strict=True)
    ]
    predictions = {
        Crop("more", BOX): Prediction(SNOWMOBILE, 0.625),
        Crop("less", BOX): Prediction(SNOWMOBILE, 0.25),
        Crop("misclassified", BOX): Prediction(SNOWPLOW, 1.0),
    }
    assert effect(selection, predictions) == {"images_wrong_after_crop": 1, "confidence_change_by_crop": -0.1875}
    assert effect(selection[:1], predictions) == {"images_wrong_after_crop": 0}


# The table


A, B = "ILSVRC2012_val_00000001", "ILSVRC2012_val_00000002"
CROPS = [Crop(B, (0, 0, 9, 9)), Crop(A, (10, 0, 20, 9)), Crop(A, (9, 0, 20, 9))]


def test_an_image_may_have_several_boxes_but_each_once(tmp_path: Path) -> None:
    """The rows are sorted by image and box, and the bytes do not depend on their order."""
    predictions = dict.fromkeys(CROPS, (SNOWMOBILE, 0.5))
    for name, crops in (("one", CROPS), ("other", CROPS[::-1])):
        write_table(
            tmp_path / name, crop_scores_of({crop: predictions[crop] for crop in crops}), CROP_SCORES, imagenet()
        )
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    table = read_table(tmp_path / "one", CROP_SCORES, imagenet())
    assert [(row["image_id"], row["crop"][0]) for row in table.to_dict("records")] == [(A, 9), (A, 10), (B, 0)]
    twice = pd.concat([table, table[:1]])
    with pytest.raises(ValueError, match=rf"table: {A} 9 0 20 9 occurs twice$"):
        write_table(tmp_path / "table", twice, CROP_SCORES, imagenet())
