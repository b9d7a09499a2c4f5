"""The perturbations of ImageNet-P: sequences of frames that differ a little from one to the next.

Parameters are those of the published script (FRAMES, and the constants below); frames are made in memory, where the
benchmark stored them as H.264 video. Noise is drawn anew in each frame, all else moves steadily.
"""

from collections.abc import Iterator
from math import cos, fsum, hypot, radians, sin, tan
from typing import Any

import cv2
import numpy as np
from imagecorruptions.corruptions import _motion_blur, clipped_zoom
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import convolve1d
from skimage import filters

from cleanset.images.base import BASE_SIZE, central
from cleanset.robustness.exact import with_hsv
from cleanset.robustness.names import ALL_PERTURBATIONS, NOISE_PERTURBATIONS
from cleanset.robustness.seeds import change_seed
from cleanset.validation import check_known

Pixels = NDArray[np.uint8]
"""An image, uint8 of shape (height, width, 3), red first."""

KIND = "perturbation"
"""Of the seeds."""

FRAMES, TRANSLATE_FRAMES, FRAMES_IN_TEXT = 31, 41, 30
"""Of a sequence as published, of one that translates, and of one as the paper's text has it."""

LEVELS = (1, 2, 3)
"""Difficulties that noise is made at; those of all others are steps between frames."""

GAUSSIAN_SIGMAS = (0.03, 0.05, 0.08)
"""Of the standard normal noise that is added to values in 0..1, by level."""

SHOT_COUNTS = (300, 120, 60)
"""Photons of a value of 1, by level."""

SPECKLE_SIGMAS = (0.05, 0.1, 0.15)
"""Of the standard normal noise that values are multiplied with and that is added, by level."""

_Matrix = list[list[float]]


def frame_count(name: str, *, as_in_text: bool = False) -> int:
    """The number of frames of a perturbation: 31, of translate 41; as in the text 30 of each, the first.

    Raises CleansetError for an unknown perturbation.
    """
    check_known("perturbation", name, ALL_PERTURBATIONS)
    if as_in_text:
        return FRAMES_IN_TEXT
    return TRANSLATE_FRAMES if name == "translate" else FRAMES


def perturbed(
    image: Pixels, name: str, seed: int = 0, *, level: int = 1, as_in_text: bool = False, size: int = BASE_SIZE
) -> list[Pixels]:
    """All frames of one perturbation, each uint8 of shape (size, size, 3).

    The frames show the central `size` x `size` pixels of `image`, uint8 of shape (height, width, 3), which stays as it
    is. What moves brings in what is beside them (`images.base.wide_image`), and black beyond that. `seed` is the
    image's (`seeds.image_seed`); what is drawn follows from it, the name, the level and the frame alone. `level` is the
    difficulty of noise. Raises CleansetError for an unknown perturbation, ValueError for another level, a level above 1
    of what is no noise, and another array.
    """
    count = frame_count(name, as_in_text=as_in_text)
    if level not in LEVELS or (level > 1 and name not in NOISE_PERTURBATIONS):
        raise ValueError(f"level {level} of {name}; expected 1, or 2 or 3 of {', '.join(NOISE_PERTURBATIONS)}")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or min(image.shape[:2]) < size:
        raise ValueError(
            f"array of {image.dtype} and shape {image.shape}; "
            f"expected uint8 of shape (height, width, 3) with sides of at least {size}"
        )
    return list(_frames(image, name, seed, level, count, size))


def _frames(image: Pixels, name: str, seed: int, level: int, count: int, size: int) -> Iterator[Pixels]:
    base = np.ascontiguousarray(central(image, size))
    if name in _NOISES:
        return _noisy(base, name, seed, level, count)
    if name in _DRAWN:
        return _DRAWN[name](base, count, np.random.RandomState(change_seed(seed, KIND, name, 0)))
    if name in _MOVES:
        return (np.ascontiguousarray(central(_MOVES[name](image, frame), size)) for frame in range(count))
    if name in _FILTERS:
        return (_FILTERS[name](base, frame) for frame in range(count))
    return _zoom_blurred(image, size, count)


def _gaussian(values: NDArray[np.float64], sigma: float, **options: float) -> NDArray[np.float64]:
    """skimage's Gaussian filter, whose types are not known."""
    filtered: NDArray[np.float64] = filters.gaussian(values, sigma=sigma, **options)  # type: ignore[no-untyped-call]
    return filtered


def _whole(values: NDArray[Any]) -> Pixels:
    """Values in 0..1 as 0..255; what is behind the point is cut off, as in the published script."""
    whole: Pixels = (np.clip(values, 0, 1) * 255).astype(np.uint8)
    return whole


def _noisy(base: Pixels, name: str, seed: int, level: int, count: int) -> Iterator[Pixels]:
    """Frames with noise of their own; the first has none. A level above 1 is a sequence of its own, as published."""
    named = name if level == 1 else f"{name}_{level}"
    values = base / 255.0
    yield base
    for frame in range(1, count):
        # RandomState, whose numbers numpy never changes
        yield _whole(_NOISES[name](values, level, np.random.RandomState(change_seed(seed, KIND, named, frame))))


def _gaussian_noise(values: NDArray[np.float64], level: int, drawn: np.random.RandomState) -> NDArray[np.float64]:
    return values + GAUSSIAN_SIGMAS[level - 1] * drawn.standard_normal(values.shape)


def _shot_noise(values: NDArray[np.float64], level: int, drawn: np.random.RandomState) -> NDArray[np.float64]:
    count = SHOT_COUNTS[level - 1]
    noisy: NDArray[np.float64] = drawn.poisson(values * count) / count
    return noisy


def _speckle_noise(values: NDArray[np.float64], level: int, drawn: np.random.RandomState) -> NDArray[np.float64]:
    return values + values * (SPECKLE_SIGMAS[level - 1] * drawn.standard_normal(values.shape))


def _motion_blurred(base: Pixels, frame: int) -> Pixels:
    """Blurred along a line that turns by 4 degrees a frame."""
    blurred: Pixels = np.clip(_motion_blur(base, radius=10, sigma=3, angle=(frame - 30) * 4), 0, 255).astype(np.uint8)
    return blurred


def _brightened(base: Pixels, frame: int) -> Pixels:
    return with_hsv(base, 1.0, 0.0, (frame - 15) * 2 / 100)


def _gaussian_blurred(base: Pixels, frame: int) -> Pixels:
    return _whole(_gaussian(base / 255.0, 0.25 + 0.035 * frame, channel_axis=-1, truncate=6.0))


def _translated(image: Pixels, frame: int) -> Pixels:
    """Moved to the right by whole pixels, from 20 to the left on; black where nothing is."""
    by = frame - 20
    moved = np.zeros_like(image)
    width = image.shape[1]
    moved[:, max(by, 0) : width + min(by, 0)] = image[:, max(-by, 0) : width - max(by, 0)]
    return moved


def _rotated(image: Pixels, frame: int) -> Pixels:
    """Turned clockwise."""
    angle = radians(frame - 15)
    return _affine(image, cos(angle), sin(angle), -sin(angle), cos(angle))


def _scaled(image: Pixels, frame: int) -> Pixels:
    scale = (40 + 2.5 * frame) / 100
    return _affine(image, 1 / scale, 0.0, 0.0, 1 / scale)


def _sheared(image: Pixels, frame: int) -> Pixels:
    """Upright lines leaning, their length kept, as torchvision's affine had it when ImageNet-P was made."""
    angle = radians(frame - 15)
    return _affine(image, 1.0, tan(angle), 0.0, 1 / cos(angle))


def _affine(image: Pixels, xx: float, xy: float, yx: float, yy: float) -> Pixels:
    """The image about its centre; the matrix leads from a place in the result to that in the image."""
    x, y = image.shape[1] / 2, image.shape[0] / 2
    data = (xx, xy, x - xx * x - xy * y, yx, yy, y - yx * x - yy * y)
    moved = Image.fromarray(image).transform(
        (image.shape[1], image.shape[0]), Image.Transform.AFFINE, data, Image.Resampling.BILINEAR
    )
    return np.asarray(moved)


def _tilted(image: Pixels, frame: int) -> Pixels:
    """Turned about both axes in space, by one degree a frame each."""
    height, width = image.shape[:2]
    return np.asarray(cv2.warpPerspective(image, np.array(_perspective(height, width, frame - 15)), (width, height)))


def _perspective(height: int, width: int, degrees: float) -> _Matrix:
    """The projection of an image that is turned about its vertical and then its horizontal axis.

    The image stands at a distance of one pixel before the centre of rotation, which is the published script's: an
    image that is not turned is smaller by 1 / (diagonal + 1).
    """
    c, s = cos(radians(degrees)), sin(radians(degrees))
    x, y, distance = width / 2, height / 2, hypot(width, height)
    into_space = [[1.0, 0.0, -x], [0.0, 1.0, -y], [0.0, 0.0, 1.0]]
    about_vertical = [[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]]
    about_horizontal = [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]
    turned = _product(about_horizontal, _product(about_vertical, into_space))
    turned[2][2] += distance
    return _product([[distance, 0.0, x], [0.0, distance, y], [0.0, 0.0, 1.0]], turned)


def _product(left: _Matrix, right: _Matrix) -> _Matrix:
    """The product of two matrices, rounded once: neither BLAS nor `sum` gives the same bits everywhere."""
    return [
        [fsum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*right, strict=True)] for row in left
    ]


def _zoom_blurred(image: Pixels, size: int, count: int) -> Iterator[Pixels]:
    """The mean of the image and of its enlargements up to the frame's, in whole numbers, rounded down."""
    total = np.zeros((size, size, 3), np.int64)
    for frame in range(count):
        scale = 1 + 0.004 * frame
        total += central(_affine(image, 1 / scale, 0.0, 0.0, 1 / scale), size)
        yield (total // (frame + 1)).astype(np.uint8)


def _snowy(base: Pixels, count: int, drawn: np.random.RandomState) -> Iterator[Pixels]:
    """Flakes, drawn once and blurred in a direction that turns by 4 degrees a frame, over a paler image."""
    flakes = _flakes(base.shape[0], drawn)
    values = base / 255.0
    grey = cv2.cvtColor(values.astype(np.float32), cv2.COLOR_RGB2GRAY)[..., np.newaxis]
    pale = 0.85 * values + (1 - 0.85) * np.maximum(values, grey * 1.5 + 0.5)
    for frame in range(count):
        blurred = np.clip(_motion_blur(flakes, radius=14, sigma=4, angle=frame * 4 - 150), 0, 255)
        layer = (blurred.astype(np.uint8) / 255.0)[..., np.newaxis]
        yield _whole(pale + layer + np.rot90(layer, k=2))


def _flakes(size: int, drawn: np.random.RandomState) -> NDArray[np.uint8]:
    """What of a noise, three times enlarged, is above a threshold."""
    noise = drawn.normal(loc=0.05, scale=0.3, size=(size, size))
    flakes = clipped_zoom(noise[..., np.newaxis], 3)[:size, :size, 0]
    return _whole(np.where(flakes < 0.5, 0, flakes))


def _spattered(base: Pixels, count: int, drawn: np.random.RandomState) -> Iterator[Pixels]:
    """Drops of water that run down."""
    liquid = _gaussian(drawn.normal(loc=0.65, scale=0.27, size=base.shape[:2]), 3.7)
    liquid[liquid < 0.69] = 0
    values = base / 255.0
    for _ in range(count):
        yield _whole(values + _water((liquid * 255).astype(np.uint8))[..., np.newaxis] * _PALE_TURQUOISE)
        # origin -1: of four weights the third stands at the place itself, as with numpy.convolve's "same"
        liquid = convolve1d(liquid, [0.05, 0.1, 0.15, 0.7], axis=0, mode="constant", origin=-1)


def _water(liquid: NDArray[np.uint8]) -> NDArray[np.float32]:
    """How much of the water's colour is added, 0 to .6: most at the edges of the drops, lit from one side."""
    distance = cv2.distanceTransform(255 - cv2.Canny(liquid, 50, 150), cv2.DIST_L2, 5)
    distance = cv2.blur(np.minimum(distance, 20), (3, 3)).astype(np.uint8)
    relief = cv2.filter2D(cv2.equalizeHist(distance), cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
    water = liquid.astype(np.float32) * np.asarray(cv2.blur(relief, (3, 3)), np.float32)
    most = water.max()
    return water * (np.float32(0.6) / most) if most else water


_PALE_TURQUOISE = np.array([175, 238, 238]) / 255

_NOISES = {"gaussian_noise": _gaussian_noise, "shot_noise": _shot_noise, "speckle_noise": _speckle_noise}
_FILTERS = {"motion_blur": _motion_blurred, "brightness": _brightened, "gaussian_blur": _gaussian_blurred}
_MOVES = {"translate": _translated, "rotate": _rotated, "tilt": _tilted, "scale": _scaled, "shear": _sheared}
_DRAWN = {"snow": _snowy, "spatter": _spattered}
