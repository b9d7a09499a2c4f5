"""The corruptions of ImageNet-C-bar compared with those of their authors' program: its literals and their shape."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from cleanset.images.codec import decode
from cleanset.images.preprocessing import base_image
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.corruptions.c_bar import MADE
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.corruptions.params import C_BAR_AMOUNTS, SEVERITIES
from tests.studies.robustness.drawn import drawn

BY_AUTHORS = {
    "blue_noise_sample": ("ad9216e115aa9241", "a72f45d88e3317e9"),
    "plasma_noise": ("16be2d4c968ff83a", "466b53f4db9cb01a"),
    "checkerboard_cutout": ("ca3e37c9a1cca1cb", "186cef3deb070a50"),
    "cocentric_sine_waves": ("62c16122960f775c", "1322de636af5500a"),
    "single_frequency_greyscale": ("d1baf9dfdd37ccf8", "f1fc975e8d222344"),
    "brownish_noise": ("5ceb044ec162195b", "a829f6cabaa5e66c"),
    "caustic_refraction": ("5300937a70d4774f", "e0e3cf7c3e868ef7"),
    "inverse_sparkles": ("fe61663a60a70046", "5d1b73df1eee16ab"),
    "sparkles": ("af1f36d81d33dfe7", "d54743b3950a1333"),
    "perlin_noise": ("856a237dac9a5552", "d770434e117c586a"),
}
"""SHA-256, shortened, of corrupt.py's images with numpy 1.26.4 and seed 7: severity 3 of the drawn image at 224 x 224
and, an odd side, at 65 x 65."""

OF_PHOTOGRAPHS: dict[str, str] = {
    "blue_noise_sample": "68e4e6bd7140d614",
    "plasma_noise": "9c0f1298c597820c",
    "checkerboard_cutout": "a5af9fdbbebedcd1",
    "cocentric_sine_waves": "4cfe69413fe44606",
    "single_frequency_greyscale": "3edbbe7e1e800a85",
    "brownish_noise": "e288754ba6d62060",
    "caustic_refraction": "15c9a19a8515d7b5",
    "inverse_sparkles": "dd05cee90ac04437",
    "sparkles": "33289cbc4047d9e7",
    "perlin_noise": "68b1818a0084c2c0",
}
"""The same of 20 photographs, each at one severity in turn, equal to the program's in each value."""

BLACK_CELL_SEED = 1397
"""A seed of perlin_noise that draws a gradient of length 0."""


def shortened(*images: np.ndarray) -> str:
    found = sha256()
    for image in images:
        found.update(image.tobytes())
    return found.hexdigest()[:16]


def made(image: np.ndarray, name: str, severity: int = 3, seed: int = 7) -> np.ndarray:
    return MADE[name](image, C_BAR_AMOUNTS[name][severity - 1], np.random.RandomState(seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", C_BAR_AMOUNTS)
def test_a_drawn_image_has_the_authors_values(name: str) -> None:
    assert tuple(shortened(made(drawn(side, side), name)) for side in (224, 65)) == BY_AUTHORS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", C_BAR_AMOUNTS)
def test_photographs_have_the_authors_values(real: Path, name: str) -> None:
    found = []
    for number, path in enumerate(sorted((real / "photos").glob("*.JPEG"))[:20]):
        image = base_image(decode(path.read_bytes()))
        found += corrupted_images(image, name, [number % 5 + 1], number)
    assert shortened(*found) == OF_PHOTOGRAPHS[name]


def test_a_gradient_without_direction_leaves_black_cells() -> None:
    """The authors' program divides by its length; 1,664 pixels of its image are black, 756 of them before."""
    image = drawn()
    found = made(image, "perlin_noise", 1, BLACK_CELL_SEED)
    assert [int((each == 0).all(axis=2).sum()) for each in (image, found)] == [756, 1664]
    assert shortened(found) == "79a40d8b2966fcfa"


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(64, 97), (97, 64), (33, 32)])
def test_an_image_that_is_not_square_has_the_upper_left_part_of_the_patterns(shape: tuple[int, int]) -> None:
    """Those that do not move pixels, for the square whose upper left part is the image."""
    whole = drawn(max(shape), max(shape))
    part = whole[: shape[0], : shape[1]].copy()
    for name in MADE:
        found = made(part, name)
        assert found.dtype == np.uint8
        assert found.shape == part.shape
        if name != "caustic_refraction":
            assert np.array_equal(found, made(whole, name)[: shape[0], : shape[1]]), name


def test_a_sine_wave_by_hand() -> None:
    """On grey, from the draws of the program in numpy, in the order of its names."""
    seed = change_seed(4, "corruption", "single_frequency_greyscale", 2)
    rng = np.random.RandomState(seed)
    first = rng.uniform(-np.pi, np.pi)
    second = rng.uniform(-abs(first), abs(first))
    right, down = np.take([first, second], rng.permutation(2))
    phase = rng.uniform(0, 2 * np.pi)
    rows, columns = np.mgrid[:40, :40]
    expected = 128 + 1.5 * 19.6 * np.sin(columns * right + rows * down + phase)
    (found,) = corrupted_images(np.full((40, 40, 3), 128, np.uint8), "single_frequency_greyscale", [2], 4)
    assert np.abs(found - expected[..., np.newaxis]).max() < 1


def test_cutouts_and_samples_change_nothing_else() -> None:
    image = np.maximum(drawn(), 1)
    for name, value in (("checkerboard_cutout", 128), ("blue_noise_sample", 0)):
        shares = []
        for severity in SEVERITIES:
            found = made(image, name, severity)
            is_changed = (found == value).all(axis=2)
            assert np.array_equal(found[~is_changed], image[~is_changed])
            shares.append(is_changed.mean())
        assert shares == sorted(shares), name
    # half of the squares are black ones, and at severity 1 a fifth of the others is grey
    assert 0.02 < (made(image, "checkerboard_cutout", 1) == 128).all(axis=2).mean() < 0.2


def test_light_covers_the_image_with_white() -> None:
    black = np.zeros((224, 224, 3), np.uint8)
    stars = made(black, "sparkles", 1)
    assert (stars.max(), np.median(stars) < 64) == (255, True)
    window = made(black, "inverse_sparkles", 5)
    # around the star it is white, inside it the image is left
    assert (window[0, 0].min() > 200, window.min()) == (True, 0)


def test_still_water_moves_nothing() -> None:
    """If the caustic has no slope, an image is unchanged except for the program's truncation."""
    image = np.full((48, 48, 3), 200, np.uint8)
    found = made(image, "caustic_refraction", 1)
    values, counts = np.unique(found[5:-5, 5:-5], return_counts=True)
    assert values[counts.argmax()] in (199, 200)
    # at the borders a part of what is seen is outside, where it is black
    assert found.min() < 150
