"""The corruptions of ImageNet-C-bar, value for value as in the authors' program; their amounts: corruptions.yaml.

E. Mintun, A. Kirillov and S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption
Robustness" (NeurIPS 2021): imagenet_c_bar/corrupt.py of facebookresearch/augmentation-corruption, with numpy before 2,
as the authors ran it. Its images have 224 x 224 pixels; the patterns of one that is not square are the upper left part
of those of a square.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.fft import ifft2

from cleanset.images.preprocessing import Pixels
from cleanset.statistics.basics import Floats
from cleanset.studies.robustness.corruptions.c_bar_fields import (
    Gradients,
    checkerboard,
    concentric,
    light_rays,
    perlin_turbulence,
    plasma,
    sine,
    spectrum,
)
from cleanset.studies.robustness.corruptions.caustics import refracted

SPARKLES = 5
"""Centres of light of sparkles."""

RAYS = (50, 200)
"""Number of rays of a centre; the end is excluded."""

RAY_DEVIATION = 25 / 100.0
"""Standard deviation of a ray's length, in radii."""

LATTICE = 256
"""Period of Perlin noise in cells of its lattice."""

GREY = 128
"""Value of the squares of checkerboard_cutout."""


def single_frequency_greyscale(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image plus one grey sine wave."""
    first = drawn.uniform(-np.pi, np.pi)
    frequencies = np.array([first, drawn.uniform(-abs(first), abs(first))])[drawn.permutation(2)]
    phase = drawn.uniform(0, 2 * np.pi)
    wave = sine(image.shape[:2], frequencies[0], frequencies[1], phase)
    return _whole(image + (amount * 196 / 10.0) * wave[..., np.newaxis])


def cocentric_sine_waves(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image plus grey rings around a drawn centre, whose radii wave."""
    side = max(image.shape[:2])
    centre = drawn.uniform(0, side, size=2)
    frequency = drawn.uniform(0, 10)
    amplitude = drawn.uniform(0, side / 10)
    rings = concentric(image.shape[:2], centre, frequency, amplitude, drawn.uniform(0, side / 10))
    return _whole(image + (amount * 128 / 10.0) * rings[..., np.newaxis])


def plasma_noise(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image mixed with coloured swirls."""
    time = drawn.uniform(0.0, 6 * np.pi)
    iterations = drawn.randint(4, 7)
    sharpness = drawn.uniform(0.5, 1.0)
    scale = drawn.uniform(0.075, 0.2) * max(image.shape[:2])
    intensity = amount * 64 / 10.0
    swirls = plasma(image.shape[:2], time, iterations, sharpness, scale)
    return _whole((1 - intensity / 255) * image + intensity * swirls)


def sparkles(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image under five white stars."""
    side = max(image.shape[:2])
    centres = drawn.uniform(0, side, size=(SPARKLES, 2))
    radius = (amount * 0.1 / 10.0) * side
    of_rays = _next(drawn)
    values = image.astype(np.float64)
    for centre, count in zip(centres, drawn.randint(*RAYS, size=SPARKLES), strict=True):
        lengths = np.maximum(1, radius + RAY_DEVIATION * radius * of_rays.randn(count))
        light = light_rays(image.shape[:2], centre, lengths, 1.0)[..., np.newaxis]
        # the program keeps the values between two stars in single precision
        values = values.astype(np.float32).astype(np.float64)
        values = values + light * (255 - values)
    return _whole(values)


def inverse_sparkles(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image in one star, white around it."""
    side = max(image.shape[:2])
    centre = drawn.uniform(0.25, 0.75, size=2) * side
    radius = 0.25 * side
    of_rays = _next(drawn)
    lengths = radius + RAY_DEVIATION * radius * of_rays.randn(drawn.randint(*RAYS))
    # the program subtracts from 100 twice
    exponent = (100 - (100 - amount * 65 / 10.0)) / 50.0
    light = light_rays(image.shape[:2], centre, lengths, exponent)[..., np.newaxis]
    return _whole(255 + light * (image.astype(np.float64) - 255))


def perlin_noise(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image mixed with grey clouds: five octaves of Perlin noise."""
    cell = 32 * max(image.shape[:2]) / 224
    clouds = perlin_turbulence(image.shape[:2], 1 / cell, _gradients(_next(drawn)))
    share = amount * 0.50 / 10.0
    mixed = np.float32(1 - share) * image.astype(np.float32) + (255 * share * clouds)[..., np.newaxis]
    # black where a gradient of length 0 was drawn, in one image of 500
    return _whole(np.nan_to_num(mixed, nan=0.0))


def blue_noise_sample(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image, black where blue noise is below a threshold."""
    side = max(image.shape[:2])
    noise = _coloured(_next(drawn), side, _distances(side))
    is_kept = noise[: image.shape[0], : image.shape[1]] > amount * 3.0 / 10.0 - 2.5
    return image * is_kept[..., np.newaxis]


def brownish_noise(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image plus brown noise, drawn again for each colour."""
    side = max(image.shape[:2])
    power = 1 / (_distances(side) ** 2 + 1)
    of_noise = _next(drawn)
    noise = np.stack([_coloured(of_noise, side, power) for _ in range(3)], axis=2)
    return _whole(image + (amount * 64 / 10.0) * noise[: image.shape[0], : image.shape[1]])


def checkerboard_cutout(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image with some squares of a turned checkerboard in grey."""
    side = max(image.shape[:2])
    angle = drawn.uniform(0, 2 * np.pi)
    square = max(drawn.uniform(0.1, 0.25) * side, 1)
    squares = int(4 * side // square)
    is_grey = _next(drawn).uniform(size=(squares, squares)) < amount / 10.0
    covered = checkerboard(image.shape[:2], angle, square, is_grey)
    return np.where(covered[..., np.newaxis], np.uint8(GREY), image)


def caustic_refraction(image: Pixels, amount: float, drawn: np.random.RandomState) -> Pixels:
    """The image seen through water that is lit from above."""
    side = max(image.shape[:2])
    time = drawn.uniform(0.5, 2.0)
    size = drawn.uniform(0.75, 1.25) * side
    return refracted(image, time, size, lens=amount * (0.5 * side) / 10.0, light=amount * 2.0 / 10.0)


MADE: dict[str, Callable[[Pixels, float, np.random.RandomState], Pixels]] = {
    "blue_noise_sample": blue_noise_sample,
    "plasma_noise": plasma_noise,
    "checkerboard_cutout": checkerboard_cutout,
    "cocentric_sine_waves": cocentric_sine_waves,
    "single_frequency_greyscale": single_frequency_greyscale,
    "brownish_noise": brownish_noise,
    "caustic_refraction": caustic_refraction,
    "inverse_sparkles": inverse_sparkles,
    "sparkles": sparkles,
    "perlin_noise": perlin_noise,
}
"""The corruptions, of image, amount and a generator, with draws in the order of the program."""


def _next(drawn: np.random.RandomState) -> np.random.RandomState:
    """The generator that the program seeds with a draw of its first one."""
    return np.random.RandomState(drawn.randint(0, 2**32))


def _whole(values: NDArray[np.floating]) -> Pixels:
    """The values as pixels: clipped and truncated."""
    pixels: Pixels = np.clip(values, 0, 255).astype(np.uint8)
    return pixels


def _distances(side: int) -> Floats:
    """The distance of each frequency from the middle one, side x side."""
    from_middle = np.arange(side) - side / 2
    found: Floats = np.sqrt(from_middle**2 + from_middle[:, np.newaxis] ** 2)
    return found


def _coloured(drawn: np.random.RandomState, side: int, power: Floats) -> Floats:
    """Noise of standard deviation 1 with this power by frequency, side x side, its phases drawn."""
    half = drawn.uniform(0, 2 * np.pi, size=(side, side // 2))
    middle = []
    if side % 2:
        upper = drawn.uniform(0, 2 * np.pi, size=(side // 2, 1))
        middle = [np.concatenate((upper, np.zeros((1, 1)), upper[::-1]))]
    phases = np.concatenate((half, *middle, half[::-1, ::-1]), axis=1)
    shifted = np.roll(spectrum(power, phases), side // 2, axis=(0, 1))
    noise: Floats = np.real(ifft2(shifted))
    return noise / np.std(noise)


def _gradients(drawn: np.random.RandomState) -> Gradients:
    """The gradients of Perlin noise and the order in which cells have them; both repeat after LATTICE cells."""
    count = 2 * LATTICE + 2
    vectors = (drawn.randint(0, 2**31, size=(count, 2)) % (2 * LATTICE) - LATTICE) / LATTICE
    with np.errstate(invalid="ignore"):
        vectors /= np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    order = np.arange(count)
    for place in range(LATTICE - 1, -1, -1):
        other = drawn.randint(0, 2**31) % LATTICE
        order[[place, other]] = order[[other, place]]
    order[LATTICE:] = order[: LATTICE + 2]
    vectors[LATTICE:] = vectors[: LATTICE + 2]
    return order, vectors
