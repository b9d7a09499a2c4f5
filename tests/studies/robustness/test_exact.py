"""The compiled corruptions against the library, value for value, and ImageMagick's blur by its sums."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from decimal import Decimal, localcontext
from hashlib import sha256
from io import BytesIO
from math import inf, nextafter
from pathlib import Path
from typing import Any, Literal

import imagecorruptions
import imagecorruptions.corruptions
import imagecorruptions.corruptions as library
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import correlate1d
from skimage import filters

from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.corruptions.authors import DRAWN
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.corruptions.params import IMAGENET_C, SEVERITIES
from cleanset.studies.robustness.exact import (
    brightness,
    correlated,
    disk,
    exact_kernels,
    gaussian,
    motion_blur,
    rounded_exp,
    saturate,
    zoom_blur,
)
from tests.properties import examples
from tests.studies.robustness.digests import SEED, digest, stored
from tests.studies.robustness.drawn import drawn, perturbed_frames
from tests.studies.robustness.other_exp import CORRECT, other_exp, wrong

COMPILED = {"zoom_blur": zoom_blur, "brightness": brightness, "saturate": saturate}
PHOTOGRAPHS = int(os.environ.get("CLEANSET_PHOTOGRAPHS", "3"))
"""Photographs of the 2,000 to try; set CLEANSET_PHOTOGRAPHS for more, each takes a second and a half."""


def corrupted_by_library(image: NDArray[np.uint8], name: str, severity: int, seed: int) -> NDArray[np.uint8]:
    """The library's corruption, with the roundings in exp and cv2.GaussianBlur of one kind of processor."""
    options = {"seed": seed} if name in ("impulse_noise", "glass_blur") else {}
    np.random.seed(seed)
    with other_exp(CORRECT), pytest.MonkeyPatch.context() as patch:
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


@pytest.mark.long
@pytest.mark.slow
def test_all_corruptions_of_photographs_are_the_librarys(real: Path) -> None:
    for image_id, image in photographs(real, PHOTOGRAPHS).items():
        seed = image_seed(0, image_id)
        for name in sorted(set(IMAGENET_C) - set(DRAWN)):
            for severity, found in zip(SEVERITIES, corrupted_images(image, name, SEVERITIES, seed), strict=True):
                expected = corrupted_by_library(image, name, severity, change_seed(seed, "corruption", name, severity))
                assert np.count_nonzero(found != expected) == 0, (image_id, name, severity)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["brightness", "saturate"])
def test_no_color_differs(name: str) -> None:
    """Every green with every blue, with six reds: all orders of the channels, all pairs of equal ones."""
    green, blue = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    for red in (0, 1, 127, 128, 254, 255):
        image = np.stack([np.full_like(green, red), green, blue], axis=-1).astype(np.uint8)
        for severity in SEVERITIES:
            assert np.array_equal(COMPILED[name](image, severity), corrupted_by_library(image, name, severity, 0)), (
                red,
                severity,
            )


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(224, 224), (64, 97), (36, 71), (160, 136)])
def test_no_size_differs(shape: tuple[int, int]) -> None:
    """At 36, 71, 136 and 160 a rounding error puts the last place outside, which makes it black."""
    for name, compiled in COMPILED.items():
        for severity in SEVERITIES:
            assert np.array_equal(
                compiled(drawn(*shape), severity), corrupted_by_library(drawn(*shape), name, severity, 0)
            ), name


@pytest.mark.slow
@given(st.integers(32, 80), st.integers(32, 80), st.integers(0, 2**32 - 1), st.sampled_from(SEVERITIES))
@examples(50)
def test_no_noise_differs(height: int, width: int, seed: int, severity: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    for name, compiled in COMPILED.items():
        assert np.array_equal(compiled(image, severity), corrupted_by_library(image, name, severity, 0)), name


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


@pytest.fixture
def wrong_digits() -> Iterator[None]:
    with other_exp(wrong):
        yield


def of_table(kind: str, name: str) -> list[str]:
    return [row[3] for row in stored() if row[:2] == (kind, name)]


@pytest.mark.slow
@pytest.mark.usefixtures("wrong_digits")
@pytest.mark.parametrize("name", ["gaussian_blur", "glass_blur", "motion_blur", "snow", "spatter", "elastic_transform"])
def test_a_corruption_does_not_depend_on_numpys_exp(name: str) -> None:
    assert [digest(image) for image in corrupted_images(drawn(), name, seed=SEED)] == of_table("corruption", name)


@pytest.mark.slow
@pytest.mark.usefixtures("wrong_digits")
@pytest.mark.parametrize("name", ["gaussian_blur", "motion_blur", "snow", "spatter"])
def test_a_perturbation_does_not_depend_on_numpys_exp(name: str) -> None:
    assert [digest(image) for image in perturbed_frames(drawn(256, 300), name, SEED)] == of_table("perturbation", name)


def test_known_values() -> None:
    found = [rounded_exp(each) for each in (0.0, 1.0, -1.0, -0.125, -800.0)]
    assert found == [1.0, 2.718281828459045, 0.36787944117144233, 0.8824969025845955, 0.0]


@given(st.floats(-700, 700))
def test_the_exponential_is_the_nearest_of_all(value: float) -> None:
    found = rounded_exp(value)
    with localcontext(prec=60):
        exact = Decimal(value).exp()
        distances = [abs(Decimal(each) - exact) for each in (nextafter(found, 0), found, nextafter(found, inf))]
    assert distances[1] == min(distances)


@pytest.mark.parametrize(
    "options",
    [
        {"sigma": 1.1, "channel_axis": -1},
        {"sigma": 0.3, "channel_axis": 0, "truncate": 6.0},
        {"sigma": (0.8, 2.5, 1.3), "mode": "reflect", "truncate": 3},
        {"sigma": 4},
    ],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_blur_is_skimages(options: dict[str, Any], kind: type[np.float32] | type[np.float64]) -> None:
    values: NDArray[Any] = np.random.default_rng(0).random((19, 23, 3)).astype(kind)
    before = values.copy()
    expected = filters.gaussian(values, **options)  # type: ignore[no-untyped-call]
    found = gaussian(values, **options)
    assert found.dtype == expected.dtype == kind
    np.testing.assert_allclose(found, expected, rtol=4 * float(np.finfo(kind).eps))
    assert np.array_equal(values, before)


def test_the_librarys_own_functions_are_put_back() -> None:
    own = library.gaussian, library.disk
    with pytest.raises(ZeroDivisionError), exact_kernels():
        1 / (library.gaussian is own[0])  # 1 / 0, as it is another
    assert (library.gaussian, library.disk) == own


DIGESTS_BY_OPENCV = """
import sys
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from tests.studies.robustness.digests import SEED, digest
from tests.studies.robustness.drawn import drawn, perturbed_frames

for name in sys.argv[1:]:
    for image in corrupted_images(drawn(), name, seed=SEED):
        print(digest(image))
"""

WITHOUT_AVX2 = {"OPENCV_CPU_DISABLE": "AVX,AVX2"}

DISKS = {
    (3, 0.1): "37f5ff517a66",
    (4, 0.5): "f7fbaa054dfb",
    (6, 0.5): "3fb167a4ff52",
    (8, 0.5): "554fe4ea1d9c",
    (10, 0.5): "834e8492ac4d",
}
"""Start of the SHA-256 of imagecorruptions' kernel of defocus_blur on a processor with AVX2."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "choice",
    [
        {"OPENCV_IPP": "disabled"}, WITHOUT_AVX2,
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ({"OPENCV_IPP": "sse42"}, {"OPENCV_CPU_DISABLE": "AVX512_SKX"})
        ),
    ],
    ids=str,
)  # fmt: skip
def test_no_byte_depends_on_the_code_that_opencv_chooses(choice: dict[str, str]) -> None:
    # without AVX2 and FMA warpAffine has other roundings
    names = ["defocus_blur"] if choice == WITHOUT_AVX2 else ["defocus_blur", "elastic_transform"]
    command = [sys.executable, "-c", DIGESTS_BY_OPENCV, *names]
    run = subprocess.run(command, env={**os.environ, **choice}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rows = {(name, step): digest for kind, name, step, digest in stored() if kind == "corruption"}
    assert run.stdout.split() == [rows[name, step] for name in names for step in SEVERITIES]


@pytest.mark.parametrize(("radius", "sigma"), DISKS)
def test_a_disk_is_smoothed_as_by_opencv_with_avx2(radius: int, sigma: float) -> None:
    found = disk(radius, sigma)
    assert found.dtype == np.float32
    assert sha256(found.tobytes()).hexdigest()[:12] == DISKS[radius, sigma]
    np.testing.assert_allclose(found, imagecorruptions.corruptions.disk(radius, sigma), rtol=1e-6)


def test_motion_blur_rounds_to_16_bits_and_truncates_to_8() -> None:
    """At 0 degrees a pixel takes from two on its right, at 180 from two on its left: weights 1, exp(-1/2), exp(-2)."""
    row = np.array([[0, 255, 255, 255]], np.uint8)
    share = 1 / (1 + np.exp(-0.5) + np.exp(-2))
    assert motion_blur(row, 1, 1, 0).tolist() == [[int(65535 * (1 - share) + 0.5) // 257, 255, 255, 255]]
    assert motion_blur(row, 1, 1, 180).tolist() == [[0, 146, 235, 255]]
    assert motion_blur(np.dstack([row] * 3), 1, 1, 180)[0, 1].tolist() == [146, 146, 146]


@pytest.mark.parametrize("value", range(0, 256, 15))
def test_motion_blur_keeps_one_color(value: int) -> None:
    flat = np.full((20, 20), value, np.uint8)
    assert np.array_equal(motion_blur(flat, 10, 3, 33.0), flat)


@pytest.mark.parametrize("shape", [(224, 224), (64, 97), (5, 7), (33, 1)])
@pytest.mark.parametrize("radius", [1, 7, 58, 512])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("mode", ["reflect", "nearest"])
def test_sums_over_many_places_are_those_of_scipy(
    shape: tuple[int, int], radius: int, axis: int, mode: Literal["nearest", "reflect"]
) -> None:
    """Every digit, also where the weights reach over the whole matrix several times."""
    generator = np.random.default_rng(radius)
    values = generator.uniform(-1, 1, shape)
    half = generator.uniform(0, 1, radius)
    weights = np.concatenate([half, generator.uniform(0, 1, 1), half[::-1]])
    expected = correlate1d(values, weights, axis=axis, mode=mode, output=np.float64)
    assert np.array_equal(correlated(values, weights, axis, mode), expected)
