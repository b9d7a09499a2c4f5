"""The compiled corruptions against the library, value for value."""

import os
import tarfile
from io import BytesIO
from pathlib import Path

import cv2
import imagecorruptions
import imagecorruptions.corruptions
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.corruptions.params import ALL_CORRUPTIONS, SEVERITIES
from cleanset.studies.robustness.exact import brightness, saturate, zoom_blur
from cleanset.studies.robustness.kernels import disk, enlarged
from tests.properties import examples
from tests.studies.robustness.drawn import drawn
from tests.studies.robustness.other_exp import CORRECT, other_exp

COMPILED = {"zoom_blur": zoom_blur, "brightness": brightness, "saturate": saturate}
PHOTOGRAPHS = int(os.environ.get("CLEANSET_PHOTOGRAPHS", "3"))
"""Of the 2,000; set CLEANSET_PHOTOGRAPHS for more, each takes a second and a half."""


def library(image: NDArray[np.uint8], name: str, severity: int, seed: int) -> NDArray[np.uint8]:
    """The library's corruption, with the roundings in exp, cv2.resize and cv2.GaussianBlur of one kind of processor."""
    options = {"seed": seed} if name in ("impulse_noise", "glass_blur") else {}
    np.random.seed(seed)
    with other_exp(CORRECT), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cv2, "resize", lambda image, dsize, interpolation: enlarged(image, dsize[1], dsize[0]))
        patch.setattr(imagecorruptions.corruptions, "disk", disk)
        result: NDArray[np.uint8] = imagecorruptions.corrupt(image, severity, name, **options)
    return result


def photographs(folder: Path, count: int) -> dict[str, NDArray[np.uint8]]:
    """So many photographs at 224 x 224, spread over the archive."""
    with tarfile.open(folder / "ILSVRC2012_img_val.tar") as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        found = {}
        for member in members[:: len(members) // count][:count]:
            file = archive.extractfile(member)
            assert file is not None
            image = Image.open(BytesIO(file.read())).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
            found[Path(member.name).stem] = np.asarray(image)
    return found


@pytest.mark.slow
def test_all_corruptions_of_photographs_are_the_librarys(real: Path) -> None:
    for image_id, image in photographs(real, PHOTOGRAPHS).items():
        seed = image_seed(0, image_id)
        for name in ALL_CORRUPTIONS:
            for severity, found in zip(SEVERITIES, corrupted_images(image, name, SEVERITIES, seed), strict=True):
                expected = library(image, name, severity, change_seed(seed, "corruption", name, severity))
                assert np.count_nonzero(found != expected) == 0, (image_id, name, severity)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["brightness", "saturate"])
def test_no_color_differs(name: str) -> None:
    """Every green with every blue, beside six reds: all orders of the channels, all pairs of equal ones."""
    green, blue = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    for red in (0, 1, 127, 128, 254, 255):
        image = np.stack([np.full_like(green, red), green, blue], axis=-1).astype(np.uint8)
        for severity in SEVERITIES:
            assert np.array_equal(COMPILED[name](image, severity), library(image, name, severity, 0)), (red, severity)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(224, 224), (64, 97), (36, 71), (160, 136)])
def test_no_size_differs(shape: tuple[int, int]) -> None:
    """At 36, 71, 136 and 160 a rounding error puts the last place outside, which makes it black."""
    for name, compiled in COMPILED.items():
        for severity in SEVERITIES:
            assert np.array_equal(compiled(drawn(*shape), severity), library(drawn(*shape), name, severity, 0)), name


@pytest.mark.slow
@given(st.integers(32, 80), st.integers(32, 80), st.integers(0, 2**32 - 1), st.sampled_from(SEVERITIES))
@examples(50)
def test_no_noise_differs(height: int, width: int, seed: int, severity: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    for name, compiled in COMPILED.items():
        assert np.array_equal(compiled(image, severity), library(image, name, severity, 0)), name


def test_brightness_of_one_color() -> None:
    image = np.full((2, 2, 3), (101, 150, 52), np.uint8)
    # value 150 + 25.5, hue and saturation kept: all channels times 1.17, truncated
    assert brightness(image, 1)[0, 0].tolist() == [118, 175, 60]
    assert brightness(np.full((2, 2, 3), 250, np.uint8), 1)[0, 0].tolist() == [255, 255, 255]


def test_saturate_of_one_color() -> None:
    image = np.full((2, 2, 3), (100, 150, 50), np.uint8)
    # saturation 2/3: times .3 is .2, times 2 is cut to 1
    assert saturate(image, 1)[0, 0].tolist() == [135, 150, 120]
    assert saturate(image, 3)[0, 0].tolist() == [75, 150, 0]
    assert saturate(np.full((2, 2, 3), 90, np.uint8), 3)[0, 0].tolist() == [90, 90, 90]


def test_the_order_of_memory_does_not_matter() -> None:
    image = drawn(40, 50)
    for name, compiled in COMPILED.items():
        assert np.array_equal(compiled(np.asfortranarray(image), 3), compiled(image, 3)), name
        assert np.array_equal(compiled(image[:, ::-1], 3)[:, ::-1], compiled(image[:, ::-1].copy(), 3)[:, ::-1]), name
