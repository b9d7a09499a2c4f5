"""Masks by a trained network, as the robustness study reads them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.image_masks import MaskedImage, MaskSource, find_masks, mask_table
from cleanset.studies.robustness.scenarios.mask_formats import png_mask
from cleanset.studies.robustness.scenarios.masks import Mask
from cleanset.studies.training.segmentation.finished_network import (
    MADE_WITH,
    ORIGIN,
    UnmaskedImage,
    in_original,
    object_of_logits,
    write_model_masks,
)
from cleanset.studies.training.segmentation.label_maps import Pixels
from tests.studies.training.segmentation.drawn import CLASSES, WNIDS, draw


def reader(pixels: Pixels) -> Callable[[], Pixels]:
    return lambda: pixels


def red(image: Pixels, label: int) -> Mask:
    """The red pixels, if label 1 is asked for."""
    found: Mask = (image[..., 0] > 180) & (label == 1)
    return found


def image_id(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"


def images() -> list[UnmaskedImage]:
    drawn = draw("square", 0)[0]
    return [
        UnmaskedImage(image_id(1), CLASSES[0], reader(drawn), None),
        UnmaskedImage(image_id(2), CLASSES[1], reader(drawn), None),
        UnmaskedImage(image_id(3), CLASSES[0], reader(drawn[15:30, 20:35]), None),
        UnmaskedImage(image_id(4), 999, reader(drawn), None),
        UnmaskedImage(image_id(5), CLASSES[0], reader(drawn[10:, 5:60]), (15, 20, 70, 58)),
    ]


def test_the_robustness_study_reads_the_masks(tmp_path: Path) -> None:
    counts = write_model_masks(tmp_path / "predicted", images(), red, CLASSES, {"run": "fpn"})
    assert counts.lines() == [
        "2 masks",
        "1 image without one, of a class that the network was not trained on",
        "1 image without one, in which it finds no object",
        "1 image without one, in which it finds no background",
    ]
    found = find_masks(tmp_path, [MaskSource("predicted", "png", ORIGIN)])
    assert list(found) == [image_id(1), image_id(5)]
    masked = [
        MaskedImage("1.jpg", image_id(1), WNIDS[0], (64, 48), None),
        MaskedImage("5.jpg", image_id(5), WNIDS[0], (55, 38), (15, 20, 70, 58)),
    ]
    table = mask_table(masked, found, is_placed=False)
    assert table["left_out"].isna().all()
    assert table["origin"].tolist() == ["model", "model"]
    assert '"run": "fpn"' in (tmp_path / "predicted" / MADE_WITH).read_text()


def test_a_mask_is_the_networks_object(tmp_path: Path) -> None:
    write_model_masks(tmp_path / "predicted", images()[:1], red, CLASSES, {})
    data = (tmp_path / "predicted" / f"{image_id(1)}.png").read_bytes()
    assert (png_mask(data, "mask") == (draw("square", 0)[1] > 0)).all()


def test_masks_of_a_crop_lie_in_the_original() -> None:
    whole = in_original(np.array([[True, False]]), (1, 2, 3, 3))
    assert whole.tolist() == [[False] * 3, [False] * 3, [False, True, False]]
    wider = in_original(np.array([[True, False]]), (1, 2, 3, 3), (5, 4))
    assert wider.shape == (4, 5)
    assert np.argwhere(wider).tolist() == [[2, 1]]


def test_a_folder_that_has_masks_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "predicted").mkdir()
    (tmp_path / "predicted" / "mask.png").write_bytes(b"")
    with pytest.raises(CleansetError, match="there is something already; expected a new or empty folder"):
        write_model_masks(tmp_path / "predicted", images(), red, CLASSES, {})


def test_a_folder_without_masks_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="no mask to write: every image has a mask; expected images that get one"):
        write_model_masks(tmp_path / "predicted", [], red, CLASSES, {})
    with pytest.raises(CleansetError, match="no mask to write: 1 image without one, in which it finds no object;"):
        write_model_masks(tmp_path / "predicted", images()[1:2], red, CLASSES, {})
    assert not (tmp_path / "predicted").exists()


def test_the_object_is_where_its_class_is_more_probable_than_background() -> None:
    logits = np.array([[[1.0, 1.0, 1.0]], [[2.0, 0.0, 1.0]], [[9.0, 9.0, 9.0]]])
    assert object_of_logits(logits, 1).tolist() == [[True, False, False]]
