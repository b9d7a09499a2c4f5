"""Moving an image about its centre: translation, rotation, scaling, shear and tilt, with black where nothing is.

Images are uint8 of shape (height, width, 3); the result has the same shape.
"""

from math import cos, fsum, hypot, radians, sin, tan

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
"""An image, uint8 of shape (height, width, 3), red first."""

Matrix = list[list[float]]
"""Rows of numbers."""


def translated(image: Pixels, right: int) -> Pixels:
    """The image moved to the right by whole pixels, to the left if negative."""
    moved = np.zeros_like(image)
    width = image.shape[1]
    moved[:, max(right, 0) : width + min(right, 0)] = image[:, max(-right, 0) : width - max(right, 0)]
    return moved


def rotated(image: Pixels, degrees: float) -> Pixels:
    """The image rotated clockwise (bilinear)."""
    angle = radians(degrees)
    return _affine(image, cos(angle), sin(angle), -sin(angle), cos(angle))


def scaled(image: Pixels, factor: float) -> Pixels:
    """The image enlarged by a factor (bilinear, without antialiasing)."""
    return _affine(image, 1 / factor, 0.0, 0.0, 1 / factor)


def sheared(image: Pixels, degrees: float) -> Pixels:
    """Vertical lines inclined to the left, their length kept (bilinear).

    As torchvision's affine did when ImageNet-P was made; later versions keep the height of the image instead.
    """
    angle = radians(degrees)
    return _affine(image, 1.0, tan(angle), 0.0, 1 / cos(angle))


def _affine(image: Pixels, xx: float, xy: float, yx: float, yy: float) -> Pixels:
    """The image under a linear map about its centre; the matrix maps a place in the result to one in the image."""
    x, y = image.shape[1] / 2, image.shape[0] / 2
    data = (xx, xy, x - xx * x - xy * y, yx, yy, y - yx * x - yy * y)
    size = (image.shape[1], image.shape[0])
    moved = Image.fromarray(image).transform(size, Image.Transform.AFFINE, data, Image.Resampling.BILINEAR)
    return np.asarray(moved)


def tilted(image: Pixels, degrees: float) -> Pixels:
    """The image rotated in space about its vertical and its horizontal axis, by one angle, and projected (bilinear)."""
    height, width = image.shape[:2]
    return np.asarray(cv2.warpPerspective(image, np.array(tilt(height, width, degrees)), (width, height)))


def tilt(height: int, width: int, degrees: float) -> Matrix:
    """The 3 x 3 projection of `tilted`; the focal length is the diagonal.

    The image stands one pixel in front of the centre of rotation, as in the published script of ImageNet-P: without
    rotation it becomes smaller by 1 / (diagonal + 1).
    """
    c, s = cos(radians(degrees)), sin(radians(degrees))
    x, y, focal = width / 2, height / 2, hypot(width, height)
    into_space = [[1.0, 0.0, -x], [0.0, 1.0, -y], [0.0, 0.0, 1.0]]
    about_vertical = [[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]]
    about_horizontal = [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]
    in_space = _product(about_horizontal, _product(about_vertical, into_space))
    in_space[2][2] += focal
    return _product([[focal, 0.0, x], [0.0, focal, y], [0.0, 0.0, 1.0]], in_space)


def _product(left: Matrix, right: Matrix) -> Matrix:
    """The product of two matrices, each sum rounded once: BLAS does not give the same bits on every machine."""
    columns = list(zip(*right, strict=True))
    return [[fsum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]
