"""The perturbations of ImageNet-P: sequences of frames, each slightly different from the one before.

Parameters come from the published script, make_imagenet_p.py, and the frames have its values. Frames are made in
memory; the benchmark stored them as H.264 video. Each frame of noise has noise of its own; all others change steadily.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import cos, fsum, hypot, radians, sin

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import convolve1d

from cleanset.evaluation.sets import ImageFile
from cleanset.images.preprocessing import BASE_SIZE, Pixels, central
from cleanset.statistics.basics import Floats, Singles
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.exact import gaussian, motion_blur, snowflakes, with_hsv
from cleanset.studies.robustness.images import wide_pixels

MatrixRows = list[list[float]]
"""Rows of numbers."""


def translate(image: Pixels, right: int) -> Pixels:
    """The image moved to the right by whole pixels, to the left if negative."""
    moved = np.zeros_like(image)
    width = image.shape[1]
    moved[:, max(right, 0) : width + min(right, 0)] = image[:, max(-right, 0) : width - max(right, 0)]
    return moved


def rotate(image: Pixels, degrees: float) -> Pixels:
    """The image rotated clockwise (bilinear)."""
    angle = radians(degrees)
    return _affine(image, xx=cos(angle), xy=sin(angle), yx=-sin(angle), yy=cos(angle))


def scale(image: Pixels, factor: float) -> Pixels:
    """The image enlarged by a factor (bilinear, without antialiasing)."""
    return _affine(image, xx=1 / factor, xy=0.0, yx=0.0, yy=1 / factor)


def shear(image: Pixels, degrees: float) -> Pixels:
    """Vertical lines inclined to the left, their length kept (bilinear); later torchvisions keep the image's height."""
    angle = radians(degrees)
    stretched = 1 / cos(angle)  # the products have the roundings of torchvision
    return _affine(image, xx=stretched * cos(angle), xy=stretched * sin(angle), yx=0.0, yy=stretched)


def _affine(image: Pixels, xx: float, xy: float, yx: float, yy: float) -> Pixels:
    """The image under a linear map; the matrix maps a place in the result to one in the image.

    What stays in place is half a pixel right of the centre and below it, as in torchvision 0.2.1, which was the newest
    when ImageNet-P was made.
    """
    x = image.shape[1] * 0.5 + 0.5
    y = image.shape[0] * 0.5 + 0.5
    data = (xx, xy, xx * -x + xy * -y + x, yx, yy, yx * -x + yy * -y + y)
    size = (image.shape[1], image.shape[0])
    moved = Image.fromarray(image).transform(size, Image.Transform.AFFINE, data, Image.Resampling.BILINEAR)
    return np.asarray(moved)


def tilt(image: Pixels, degrees: float) -> Pixels:
    """The image rotated in space about its vertical and its horizontal axis, by one angle, and projected (bilinear)."""
    height, width = image.shape[:2]
    return np.asarray(cv2.warpPerspective(image, np.array(tilt_matrix(height, width, degrees)), (width, height)))


def tilt_matrix(height: int, width: int, degrees: float) -> MatrixRows:
    """The 3 x 3 projection of `tilt`; the focal length is the diagonal.

    The image is one pixel in front of the centre of rotation, as in the published script of ImageNet-P: without
    rotation it becomes smaller by 1 / (diagonal + 1).
    """
    c = cos(radians(degrees))
    s = sin(radians(degrees))
    x = width / 2
    y = height / 2
    focal = hypot(width, height)
    into_space = [[1.0, 0.0, -x], [0.0, 1.0, -y], [0.0, 0.0, 1.0]]
    about_vertical = [[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]]
    about_horizontal = [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]
    in_space = _product(about_horizontal, _product(about_vertical, into_space))
    in_space[2][2] += focal
    return _product([[focal, 0.0, x], [0.0, focal, y], [0.0, 0.0, 1.0]], in_space)


def _product(left: MatrixRows, right: MatrixRows) -> MatrixRows:
    """The product of two matrices, each sum rounded once: BLAS does not give the same bits on every machine."""
    columns = list(zip(*right, strict=True))
    return [[fsum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


KIND = "perturbation"
"""The kind of change, from which seeds are derived."""

GAUSSIAN_SIGMAS = (0.03, 0.05, 0.08)
"""Standard deviation of the noise that is added to values in 0..1, by level."""

SHOT_COUNTS = (300, 120, 60)
"""Mean photon count of a value of 1, by level."""

SPECKLE_SIGMAS = (0.05, 0.1, 0.15)
"""Standard deviation of the noise, as a share of each value, by level."""


Frames = Callable[[int], Pixels]
"""Function from a frame's number, from 0, to its pixels."""


def frames_of(image: Pixels, name: str, seed: int = 0, *, level: int = 1, size: int = BASE_SIZE) -> Frames:
    """The frames of one perturbation by number, each uint8 of shape (size, size, 3).

    The frames show the central `size` x `size` pixels of `image`, uint8 of shape (height, width, 3), which is not
    changed. Perturbations that move it bring in pixels from next to it (`wide_image`), and black beyond.
    `seed` is the image's (`seeds.image_seed`); draws follow from it, the name, the level and the frame alone.
    `level` is the difficulty of noise, 1 for all others. Fastest in ascending order.
    """
    base = np.ascontiguousarray(central(image, size))
    if name in _NOISES:
        return _noisy(base, name, seed, level)
    if name in _DRAWN:
        return _DRAWN[name](base, np.random.RandomState(change_seed(seed, KIND, name, 0)))
    if name in _MOVES:
        return lambda frame: np.ascontiguousarray(central(_MOVES[name](image, frame), size))
    if name in _FILTERS:
        return lambda frame: _FILTERS[name](base, frame)
    return _zoom_blurred(image, size)


def _whole(values: NDArray[np.floating]) -> Pixels:
    """Values clipped to 0..1 as 0..255, truncated as in the published script."""
    whole: Pixels = (np.clip(values, 0, 1) * 255).astype(np.uint8)
    return whole


def _noisy(base: Pixels, name: str, seed: int, level: int) -> Frames:
    """Frames with noise of their own; the first has none. A level above 1 is a sequence of its own, as published."""
    named = name if level == 1 else f"{name}_{level}"
    values = base / 255.0

    def frame_at(frame: int) -> Pixels:
        if frame == 0:
            return base.copy()
        # RandomState, whose numbers numpy never changes
        return _whole(_NOISES[name](values, level, np.random.RandomState(change_seed(seed, KIND, named, frame))))

    return frame_at


def _gaussian_noise(values: Floats, level: int, drawn: np.random.RandomState) -> Singles:
    # in float32, as torch adds it in the published script
    noise = drawn.standard_normal(values.shape).astype(np.float32)
    return values.astype(np.float32) + np.float32(GAUSSIAN_SIGMAS[level - 1]) * noise


def _shot_noise(values: Floats, level: int, drawn: np.random.RandomState) -> Floats:
    count = SHOT_COUNTS[level - 1]
    noisy: Floats = drawn.poisson(values * count) / count
    return noisy


def _speckle_noise(values: Floats, level: int, drawn: np.random.RandomState) -> Floats:
    return values + values * (SPECKLE_SIGMAS[level - 1] * drawn.standard_normal(values.shape))


def _motion_blurred(base: Pixels, frame: int) -> Pixels:
    """Blurred along a direction that rotates by 4 degrees a frame."""
    return motion_blur(base, radius=10, sigma=3, angle=(frame - 30) * 4)


def _brightened(base: Pixels, frame: int) -> Pixels:
    return with_hsv(base, 1.0, 0.0, (frame - 15) * 2 / 100)


def _gaussian_blurred(base: Pixels, frame: int) -> Pixels:
    return _whole(gaussian(base / 255.0, 0.25 + 0.035 * frame, channel_axis=-1, truncate=6.0))


def _zoom_blurred(image: Pixels, size: int) -> Frames:
    """The mean of the image and its enlargements up to this frame's, truncated; in float32, as torch's tensors are."""
    total = np.zeros((size, size, 3), np.float32)
    added = 0

    def frame_at(frame: int) -> Pixels:
        nonlocal added
        # the sum of all enlargements so far is kept; an earlier frame needs it from the beginning
        if frame + 1 < added:
            total[:] = 0
            added = 0
        while added <= frame:
            np.add(total, central(scale(image, 1 + 0.004 * added), size) / np.float32(255), out=total)
            added += 1
        blurred: Pixels = (total / np.float32(added) * np.float32(255)).astype(np.uint8)
        return blurred

    return frame_at


def _snowy(base: Pixels, drawn: np.random.RandomState) -> Frames:
    """Snowflakes over a paler image, drawn once and blurred along a direction that rotates by 4 degrees a frame."""
    flakes = snowflakes(drawn.normal(0.05, 0.3, base.shape[:2]), zoom=3, threshold=0.5)
    values = base / 255.0
    grey = cv2.cvtColor(values.astype(np.float32), cv2.COLOR_RGB2GRAY)[..., np.newaxis]
    pale = 0.85 * values + (1 - 0.85) * np.maximum(values, grey * 1.5 + 0.5)

    def frame_at(frame: int) -> Pixels:
        layer = (motion_blur(flakes, radius=14, sigma=4, angle=frame * 4 - 150) / 255.0)[..., np.newaxis]
        return _whole(pale + layer + np.rot90(layer, k=2))

    return frame_at


def _spattered(base: Pixels, drawn: np.random.RandomState) -> Frames:
    """Drops of water that run down the image."""
    liquid = gaussian(drawn.normal(loc=0.65, scale=0.27, size=base.shape[:2]), 3.7)
    liquid[liquid < 0.69] = 0
    liquids = [liquid]
    values = base.astype(np.float32) / np.float32(255)

    def frame_at(frame: int) -> Pixels:
        while len(liquids) <= frame:
            # origin -1 centres the four weights as numpy.convolve's mode "same" does, which the published script uses
            liquids.append(convolve1d(liquids[-1], [0.05, 0.1, 0.15, 0.7], axis=0, mode="constant", origin=-1))
        water = _water((liquids[frame] * 255).astype(np.uint8))
        return _whole(values + water[..., np.newaxis] * _PALE_TURQUOISE)

    return frame_at


def _water(liquid: NDArray[np.uint8]) -> Singles:
    """The share of the water's colour that is added, 0 to .6, largest at the lit edges of the drops."""
    distance = cv2.distanceTransform(255 - cv2.Canny(liquid, 50, 150), cv2.DIST_L2, 5)
    distance = cv2.blur(np.minimum(distance, 20), (3, 3)).astype(np.uint8)
    relief = cv2.filter2D(cv2.equalizeHist(distance), cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
    water = liquid.astype(np.float32) * np.asarray(cv2.blur(relief, (3, 3)), np.float32)
    most = water.max()
    return water / most * np.float32(0.6) if most else water


_PALE_TURQUOISE = (np.array([175, 238, 238]) / 255).astype(np.float32)

_NOISES: dict[str, Callable[[Floats, int, np.random.RandomState], NDArray[np.floating]]]
_NOISES = {"gaussian_noise": _gaussian_noise, "shot_noise": _shot_noise, "speckle_noise": _speckle_noise}
_FILTERS = {"motion_blur": _motion_blurred, "brightness": _brightened, "gaussian_blur": _gaussian_blurred}
_MOVES: dict[str, Callable[[Pixels, int], Pixels]] = {
    "translate": lambda image, frame: translate(image, frame - 20),
    "rotate": lambda image, frame: rotate(image, frame - 15),
    "tilt": lambda image, frame: tilt(image, frame - 15),
    "scale": lambda image, frame: scale(image, (40 + 2.5 * frame) / 100),
    "shear": lambda image, frame: shear(image, frame - 15),
}
_DRAWN = {"snow": _snowy, "spatter": _spattered}


@dataclass(frozen=True, slots=True)
class PerturbedImage:
    """The frames of perturbations; `levels`: the level of each."""

    levels: Mapping[str, int]

    def __call__(self, file: ImageFile, change: str, step: int, seed: int) -> Pixels:
        """A frame; `step` is its number, from 0."""
        return _frames(file, change, self.levels[change], seed)(step)


# the frames of a sequence follow each other
@lru_cache(maxsize=1)
def _frames(file: ImageFile, change: str, level: int, seed: int) -> Frames:
    return frames_of(wide_pixels(file), change, seed, level=level)
