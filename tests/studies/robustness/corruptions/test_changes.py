"""The corruptions against the library itself, and what must not decide them."""

import io
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import imagecorruptions
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.corruptions.authors import DRAWN
from cleanset.studies.robustness.corruptions.changes import check_functions, corrupted_images
from cleanset.studies.robustness.corruptions.params import (
    CORRUPTION_GROUPS,
    CORRUPTIONS,
    IMAGENET_C,
    SEVERITIES,
    CorruptionEntry,
)
from tests.studies.robustness import digests
from tests.studies.robustness.drawn import drawn
from tests.studies.robustness.other_exp import CORRECT, other_exp

SEED = image_seed(0, "a")
SMALL = drawn(64, 96)
RANDOM = {
    "gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur", "snow", "frost", "fog",
    "elastic_transform", "speckle_noise", "spatter",
}  # fmt: skip


def generator_state() -> str:
    """The state of numpy's global generator."""
    with np.printoptions(threshold=1000):
        return str(np.random.get_state())


def test_the_names_are_the_librarys() -> None:
    for group, names in CORRUPTION_GROUPS.items():
        assert list(names) == imagecorruptions.get_corruption_names(group)
    assert list(IMAGENET_C[len(CORRUPTIONS) :]) == imagecorruptions.get_corruption_names("validation")


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("rain", {"amounts": [1.0] * 5}, "rain: made by nothing; expected one function"),
        ("snow", {"amounts": [1.0] * 5}, r"snow: by authors, amounts \[1.0, .*; expected amounts with BY_AMOUNT alone"),
        ("sparkles", {"amounts": None}, "sparkles: by amount, amounts None; expected amounts with BY_AMOUNT alone"),
    ],
)
def test_what_a_corruption_leaves_out(name: str, entry: dict[str, Any], message: str) -> None:
    known = {"benchmark": None, "group": None, "effect": "wet"}
    with pytest.raises(TypeError, match=message):
        check_functions({name: CorruptionEntry.model_validate(known | entry)})


def test_an_unknown_corruption_is_refused_with_the_list() -> None:
    with pytest.raises(CleansetError, match=r"^unknown corruption 'rain'; expected one of gaussian_.*, perlin_noise"):
        corrupted_images(SMALL, "rain")


@pytest.mark.parametrize("severity", [0, 6, -1])
def test_another_severity_is_refused(severity: int) -> None:
    with pytest.raises(ValueError, match=f"severity {severity}; expected one of 1, 2, 3, 4, 5"):
        corrupted_images(SMALL, "fog", [severity])


@pytest.mark.parametrize("array", [SMALL[:31], SMALL[..., :1], SMALL[..., 0], SMALL.astype(np.float32)])
def test_another_array_is_refused(array: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"array of {array.dtype} and shape {array.shape}; expected uint8")):
        corrupted_images(array, "fog")


def test_contrast_pulls_towards_the_mean_of_each_channel() -> None:
    image = np.zeros((32, 32, 3), np.uint8)
    image[:, :16] = (255, 101, 41)
    # mean 127.5, 50.5, 20.5; severity 1 keeps .4 of the distance, truncated
    left, right = corrupted_images(image, "contrast", [1])[0][0, [0, 31]].tolist()
    assert (left, right) == ([178, 70, 28], [76, 30, 12])


def test_jpeg_compression_is_pillows_at_the_published_qualities() -> None:
    for quality, found in zip((25, 18, 15, 10, 7), corrupted_images(SMALL, "jpeg_compression"), strict=True):
        out = io.BytesIO()
        Image.fromarray(SMALL).save(out, "JPEG", quality=quality)
        assert np.array_equal(found, np.asarray(Image.open(out)))


@pytest.mark.slow
def test_noise_follows_its_own_seed_alone() -> None:
    for name in sorted(RANDOM):
        alone = [corrupted_images(SMALL, name, [severity], SEED)[0] for severity in (5, 2)]
        np.random.seed(1)
        together = corrupted_images(SMALL, name, (2, 3, 5), SEED)
        again = corrupted_images(SMALL, name, (2,), SEED)[0]
        assert np.array_equal(alone[0], together[2]), name
        assert np.array_equal(alone[1], together[0]), name
        assert np.array_equal(again, together[0]), name
        assert not np.array_equal(again, corrupted_images(SMALL, name, (2,), image_seed(0, "b"))[0]), name


@pytest.mark.slow
def test_every_corruption_is_the_librarys_and_leaves_the_rest_unchanged() -> None:
    """Those of `authors` aside, which the library makes differently."""
    image, before = drawn(64, 96), generator_state()
    for name in IMAGENET_C:
        found = corrupted_images(image, name, SEVERITIES, SEED)
        assert generator_state() == before, name
        for severity, one in zip(SEVERITIES, found, strict=True):
            seed = change_seed(SEED, "corruption", name, severity)
            options = {"seed": seed} if name in ("impulse_noise", "glass_blur") else {}
            state = np.random.get_state()
            np.random.seed(seed)
            with other_exp(CORRECT):
                expected = imagecorruptions.corrupt(SMALL, severity, name, **options)
            np.random.set_state(state)
            assert one.dtype == np.uint8
            assert one.shape == SMALL.shape
            assert np.array_equal(one, expected) != (name in DRAWN), (name, severity)
            assert not np.array_equal(one, image), (name, severity)
        assert len({one.tobytes() for one in found}) == 5, name
    assert np.array_equal(image, SMALL)


@pytest.mark.long
@pytest.mark.slow
def test_the_bytes_are_those_of_the_table() -> None:
    """On a processor without AVX2 and FMA, defocus_blur and elastic_transform differ by 1 in a few values."""
    expected = [row for row in digests.stored() if row[0] == "corruption"]
    found = list(digests.corruption_rows())
    assert len(expected) == 145
    assert [row for row, wanted in zip(found, expected, strict=True) if row != wanted] == []


def test_threads_do_not_share_the_librarys_generator() -> None:
    """It draws from numpy's global one: interleaved calls would get each other's noise."""
    seeds = range(8)
    expected = [corrupted_images(SMALL, "gaussian_noise", [3], seed)[0] for seed in seeds]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            found = pool.map(lambda seed: corrupted_images(SMALL, "gaussian_noise", [3], seed)[0], seeds)
            assert all(map(np.array_equal, found, expected))
