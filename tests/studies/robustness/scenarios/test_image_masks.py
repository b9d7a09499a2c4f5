"""The masks of a study's images: found, checked, and why an image is in no scenario."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cleanset.classes import class_table, imagenet
from cleanset.errors import CleansetError, InputError
from cleanset.image_ids import ImageNames
from cleanset.images.boxes import Box
from cleanset.studies.robustness.images import MASKS
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.scenarios.imagenet_s import imagenet_s_wnids
from cleanset.studies.robustness.scenarios.mask_files import (
    MaskSource,
    counts_by_value,
    find_masks,
    has_scenarios,
    mask_table,
    masks_found,
)
from cleanset.studies.robustness.scenarios.mask_formats import read_regions
from cleanset.studies.robustness.scenarios.masks import base_regions, cropped_regions
from cleanset.tables import read_table, write_table

ID = "ILSVRC2012_val_00000001"
NAMES = ImageNames((), imagenet())
DRAWN = MaskSource(Path("drawn"), "png", "generator")
SEGMENTED = MaskSource(Path("segmented"), "imagenet_s", "person")
GOLDFISH = "n01443537"


def png(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(values.astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def mask(box: Box, width: int = 60, height: int = 50) -> np.ndarray:
    values = np.zeros((height, width))
    values[box[1] : box[3], box[0] : box[2]] = 255
    return values


@dataclass(frozen=True)
class Given:
    """An image, and the size of its decoded file."""

    crop: Box | None = None
    size: tuple[int, int] = (60, 50)
    wnid: str = GOLDFISH
    image_id: str = ID

    def row(self) -> pd.DataFrame:
        row = (f"{self.wnid}/{self.image_id}.JPEG", self.image_id, imagenet().indices[self.wnid], self.crop)
        return pd.DataFrame([row], columns=["file", "image_id", "class_index", "crop"])


def image(crop: Box | None = None, size: tuple[int, int] = (60, 50), wnid: str = GOLDFISH) -> Given:
    return Given(crop, size, wnid)


def table(
    folder: Path, values: np.ndarray, given: Given, source: MaskSource = DRAWN, *, is_placed: bool = False
) -> pd.DataFrame:
    within = source._replace(folder=folder / source.folder)
    within.folder.mkdir(parents=True)
    (within.folder / f"{ID}.png").write_bytes(png(values))
    return mask_table(given.row(), find_masks([within], NAMES), lambda _: given.size, imagenet(), is_placed=is_placed)


@pytest.mark.parametrize(
    ("box", "crop", "placed", "left_out"),
    [
        ((10, 10, 40, 40), None, True, None),
        ((10, 10, 40, 40), (0, 0, 30, 50), False, None),
        ((10, 10, 40, 40), (0, 0, 30, 50), True, "cut_off"),
        ((10, 10, 14, 14), None, True, "too_small"),  # 16 of 3,000 pixels
        ((10, 10, 14, 14), None, False, None),
        ((10, 10, 40, 40), (42, 0, 60, 50), False, "no_object"),
        ((10, 10, 40, 40), (12, 12, 38, 38), False, "no_background"),
        ((0, 0, 2, 50), None, False, "no_object"),  # outside the central part that models see
    ],
)
def test_why_an_image_is_left_out(
    tmp_path: Path, box: Box, crop: Box | None, placed: bool, left_out: str | None
) -> None:
    size = (60, 50) if crop is None else (crop[2] - crop[0], crop[3] - crop[1])
    row = table(tmp_path, mask(box), image(crop, size), is_placed=placed).iloc[0]
    assert row["left_out"] == left_out
    assert (row["mask"], row["mask_format"], row["origin"]) == (f"drawn/{ID}.png", "png", "generator")


def test_the_table_is_written_and_read(tmp_path: Path) -> None:
    found = table(tmp_path, mask((10, 10, 40, 40)), image())
    other = mask_table(Given(image_id="x").row(), {}, lambda _: pytest.fail("decoded"), imagenet(), is_placed=False)
    assert other["left_out"].tolist() == ["no_mask"]
    write_table(tmp_path / "masks.parquet", pd.concat([found, other], ignore_index=True), MASKS, imagenet())
    again = read_table(tmp_path / "masks.parquet", MASKS, imagenet())
    images = pd.DataFrame({"file": again["file"], "class_index": 1})
    assert has_scenarios(images, again)["image_id" if "image_id" in images else "file"].tolist() == [
        f"{GOLDFISH}/{ID}.JPEG"
    ]
    assert counts_by_value(again["left_out"]) == {"no_mask": 1}
    with pytest.raises(CleansetError, match="masks of 2 images for 1 other images"):
        has_scenarios(images.iloc[:1], again)


def test_imagenet_s(tmp_path: Path) -> None:
    """The object is the class that the image has in its set; a mask of another class leaves it out."""
    values = np.zeros((50, 60, 3))
    values[10:40, 10:40, 0] = imagenet_s_wnids().index(GOLDFISH) + 1
    assert table(tmp_path / "one", values, image(), SEGMENTED).iloc[0]["left_out"] is None
    other = table(tmp_path / "other", values, image(wnid="n01440764"), SEGMENTED).iloc[0]
    assert (other["left_out"], other["origin"]) == ("other_class", "person")


@pytest.mark.parametrize(
    ("values", "given", "message"),
    [
        (mask((10, 10, 40, 40), 61), image(), "mask of 61 x 50 pixels for an image of 60 x 50"),
        (mask((0, 0, 0, 0)), image(), "empty mask"),
        (mask((0, 0, 60, 50)), image(), "full mask"),
        (mask((10, 10, 40, 40)), image((0, 0, 61, 50), (61, 50)), r"in which the crop \[0, 0, 61, 50\] is"),
    ],
)
def test_a_mask_that_cannot_be_used(tmp_path: Path, values: np.ndarray, given: Given, message: str) -> None:
    with pytest.raises(CleansetError, match=message) as error:
        table(tmp_path, values, given)
    assert f"{ID}.png" in str(error.value)


def test_a_mask_of_no_image(tmp_path: Path) -> None:
    for name in ("cat.png", "ILSVRC2012_val_00050001.png", "ILSVRC2012_val_00000000.png"):
        folder = tmp_path / name / "drawn"
        folder.mkdir(parents=True)
        (folder / name).write_bytes(b"")
        with pytest.raises(CleansetError, match="mask of an unknown image"):
            find_masks([DRAWN._replace(folder=folder)], NAMES)


def test_masks_are_named_by_your_own_ids(tmp_path: Path) -> None:
    """With or without the image's suffix; one of no image is there by its path."""
    for name in ("pond/T1.png", "pond/T2.jpg.png", "T3.png", "sea/T1.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    own = class_table([("lake", "lake"), ("pond", "pond")], "here")
    names = ImageNames(["pond/T1.png", "pond/T2.jpg", "lake/T3.jpg"], own)
    found = find_masks([MaskSource(tmp_path)], names)
    assert {image_id: mask.path.relative_to(tmp_path).as_posix() for image_id, mask in found.items()} == {
        "lake/T3.jpg": "T3.png",
        "pond/T1.png": "pond/T1.png",
        "pond/T2.jpg": "pond/T2.jpg.png",
        "sea/T1.png": "sea/T1.png",
    }


def test_masks_of_none_of_the_images(tmp_path: Path) -> None:
    (tmp_path / "drawn").mkdir()
    (tmp_path / "drawn" / "ILSVRC2012_val_00000009.png").write_bytes(png(mask((10, 10, 40, 40))))
    params = CommonParams.model_validate({"masks": [{"folder": "drawn", "origin": "person"}]})
    with pytest.raises(InputError, match=f"^0 of 1 masks in {tmp_path} are of images that are measured; expected"):
        masks_found(image().row(), {}, tmp_path, params, imagenet(), is_placed=False)


def test_two_masks_of_one_image(tmp_path: Path) -> None:
    for folder in ("drawn", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{ID}.png").write_bytes(b"")
    with pytest.raises(CleansetError, match=f"{ID}: two masks of one image"):
        find_masks([MaskSource(tmp_path / name) for name in ("drawn", "other")], NAMES)


def test_a_source_without_masks(tmp_path: Path) -> None:
    drawn = DRAWN._replace(folder=tmp_path / "drawn")
    with pytest.raises(CleansetError, match="drawn: no such folder; expected one with masks: correct its name, or not"):
        find_masks([drawn], NAMES, ", or not")
    drawn.folder.mkdir()
    message = r"drawn: no masks; expected files like ILSVRC2012_val_00000001\.png: put them there, or not"
    with pytest.raises(CleansetError, match=message):
        find_masks([drawn], NAMES, ", or not")


def test_the_regions_that_models_see() -> None:
    """The crop's left half is object: so is that of the base image."""
    whole = cropped_regions(read_regions(png(mask((10, 0, 35, 50))), "png", GOLDFISH, "x"), (10, 0, 60, 50))
    assert (whole.object.shape, int(whole.object.sum())) == ((50, 50), 50 * 25)
    regions = base_regions(whole)
    assert regions.object.shape == (224, 224)
    assert regions.object[:, :111].all()
    assert not regions.object[:, 113:].any()
    assert not (regions.object & regions.background).any()


def test_masks_of_imagenet_s_are_of_imagenets_classes(tmp_path: Path) -> None:
    (tmp_path / "drawn").mkdir()
    (tmp_path / f"drawn/{ID}.png").write_bytes(png(mask((10, 10, 40, 40))))
    found = find_masks([MaskSource(tmp_path / "drawn", "imagenet_s", "person")], NAMES)
    own = class_table([("cat", "cat"), ("dog", "dog")], "here")
    with pytest.raises(CleansetError, match="a mask of format imagenet_s: needs the images of ImageNet"):
        mask_table(image().row(), found, lambda _: pytest.fail("decoded"), own, is_placed=False)
