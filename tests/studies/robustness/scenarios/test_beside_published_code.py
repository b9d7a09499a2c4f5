"""The scenarios as XIMAGENET-12's published code makes them of 20 photographs, by their digests."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from cleanset.evaluation.sets import ImageFile
from cleanset.images.preprocessing import base_image
from cleanset.plumbing.files import sha256
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.scenarios.changes import SceneImage, SceneMask
from cleanset.studies.robustness.scenarios.masks import Regions, regions_of
from cleanset.studies.robustness.scenarios.params import Scenarios
from cleanset.studies.robustness.scenarios.photographs import StoredFile
from cleanset.studies.robustness.scenarios.scenes import scenario_image

AS_CODED = Scenarios.model_validate({"definition": "as_coded"})

THEIRS = {
    "blur_background": "4590de4bba0be7c8",
    "blur_object": "ce5cf3dcc67b27ae",
    "image_r": "37644c564ed0397b",
    "image_g": "baf0a03fb8f5fbc4",
    "image_b": "5ed713e55200df70",
    "image_rainbow": "39806d79faaeb577",
    "image_brightness": "1fa41a5940943a8d",
    "segmented_image": "96fc0946fe38fb03",
    "transparent_image": "96fc0946fe38fb03",
    "random_background": "52d21b26670a7c02",
}
"""Digests of the 20 images, as the published code made and the base images show them."""


def ellipse(height: int, width: int) -> NDArray[np.bool_]:
    down, right = np.ogrid[1 - height : height : 2, 1 - width : width : 2]
    inside: NDArray[np.bool_] = 2 * (down**2 * width**2 + right**2 * height**2) < (width * height) ** 2
    return inside


def stored(path: Path, pixels: NDArray[np.uint8]) -> StoredFile:
    Image.fromarray(pixels).save(path)
    return StoredFile(path, sha256(path.read_bytes()))


def scenes_of(folder: Path, path: Path, background: Path) -> tuple[ImageFile, SceneImage]:
    pixels, behind = (np.asarray(Image.open(each).convert("RGB")) for each in (path, background))
    image = stored(folder / f"{path.stem}.png", pixels)
    mask = stored(folder / f"{path.stem}.mask.png", ellipse(*pixels.shape[:2]).astype(np.uint8) * 255)
    photographs = (stored(folder / f"{path.stem}.behind.png", behind),)
    masks = {image.path: SceneMask(mask, "png", "", None)}
    return ImageFile(*image, path.stem), SceneImage(masks, photographs, wanted=AS_CODED)


@pytest.mark.long
@pytest.mark.real
@pytest.mark.slow
def test_as_coded_every_value_is_that_of_the_published_code(real: Path, tmp_path: Path) -> None:
    photographs = sorted((real / "photos").glob("*.JPEG"))[:20]
    found = {name: hashlib.sha256() for name in THEIRS}
    for number, path in enumerate(photographs):
        file, scenes = scenes_of(tmp_path, path, photographs[number - 1])
        for name, digest in found.items():
            digest.update(scenes(file, name, 0, image_seed(0, path.stem)).tobytes())
    assert {name: digest.hexdigest()[:16] for name, digest in found.items()} == THEIRS


def scene(folder: Path, definition: str, crop: tuple[int, int, int, int] | None) -> tuple[ImageFile, SceneImage]:
    """A step from black to white at 400 of 800 columns, whose object is the left part."""
    pixels = np.zeros((600, 800, 3), np.uint8)
    pixels[:, 400:] = 255
    left, top, right, bottom = crop or (0, 0, 800, 600)
    image = stored(folder / "a.png", pixels[top:bottom, left:right])
    mask = stored(folder / "a.mask.png", 255 - pixels[..., 0])
    photographs = (stored(folder / "p.png", np.full((300, 300, 3), 90, np.uint8)),)
    masks = {image.path: SceneMask(mask, "png", "n01443537", crop)}
    wanted = Scenarios.model_validate({"definition": definition})
    return ImageFile(*image, "a"), SceneImage(masks, photographs, wanted=wanted)


@pytest.mark.parametrize("crop", [None, (100, 50, 700, 550)])
def test_a_filter_is_of_the_file_of_the_set(tmp_path: Path, crop: tuple[int, int, int, int] | None) -> None:
    """A blur of sigma 3 on 600 rows is one of 1.3 on the 256 that the base image is of."""
    file, scenes = scene(tmp_path, "as_written", crop)
    found = scenes(file, "blur_background", 0, 5)
    assert found.shape == (224, 224, 3)
    assert (found[:, :110] == 0).all()
    # an edge blurred on 224 pixels would reach to 255 seven pixels away
    row = found[100, 112:, 0].astype(int)
    assert row[0] < 200
    assert (row[4:] >= 254).all()


def test_the_definitions_of_random_background_begin_with_other_images(tmp_path: Path) -> None:
    """As written, the base image on a part of the photograph; as coded, the whole image on the whole photograph."""
    file, written = scene(tmp_path, "as_written", None)
    _, coded = scene(tmp_path, "as_coded", None)
    assert (written.before_resizing(file, "random_background", 5).shape) == (224, 224, 3)
    assert (coded.before_resizing(file, "random_background", 5).shape) == (300, 300, 3)
    assert coded(file, "random_background", 0, 5).shape == (224, 224, 3)
    assert written.before_resizing(file, "image_grey", 5).shape == (600, 800, 3)


def test_a_photograph_may_be_smaller_than_an_image_that_is_stretched_to_it() -> None:
    regions: Regions = regions_of(ellipse(300, 400))
    image, photograph = np.full((300, 400, 3), 40, np.uint8), np.full((60, 80, 3), 90, np.uint8)
    found = scenario_image(image, regions, "random_background", 5, wanted=AS_CODED, photographs=[photograph])
    assert (found[30, 40].tolist(), found[0, 0].tolist()) == ([130] * 3, [90] * 3)
    assert base_image(Image.fromarray(found)).shape == (224, 224, 3)
