"""Preprocessing keras256 against numbers of OpenCV.

Made with opencv-python-headless 5.0.0, `pixels` being an RGB image of `width` x `height`:
    side = min(width, height)
    size = width * 256 // side, height * 256 // side
    resized = cv2.resize(pixels.astype(np.float32), size, interpolation=cv2.INTER_CUBIC)
    left, top = size[0] // 2 - 112, size[1] // 2 - 112
    result = np.clip(np.rint(resized[top : top + 224, left : left + 224]), 0, 255).astype(np.uint8)
"""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.codec import decode
from cleanset.images.preprocessing import KERAS256, taps
from tests.properties import examples
from tests.ten_images import drawn_image, jpeg

OF_OPENCV = {
    # width, height: SHA-256 of the 224 x 224 x 3 bytes; pixels (0, 0), (0, 223), (111, 112), (223, 100) as row, column
    (5, 7): (
        "f45477484732de51fd6aafb98ce0961d9b199b7b5e27b43b24ed2bb00fe28d4a",
        ([0, 22, 44], [20, 49, 76], [11, 44, 77], [24, 62, 100]),
    ),
    (1, 1): (
        "9e436b164531c64a2562b757f298a7e58deb7d9e938a14408c81bf3b0e623e4d",
        ([0, 22, 45], [0, 22, 45], [0, 22, 45], [0, 22, 45]),
    ),
    (256, 300): (
        "976f439b695903a5641b6652c911bf2ab66fce9d6c26fc6a15698cb607ff2cc2",
        ([123, 185, 248], [36, 80, 124], [10, 129, 247], [70, 84, 97]),
    ),
    (311, 421): (
        "c938d6158180f82ae1acffd78dca70a80c7fd0b91897eac7977b89c909cdaf2b",
        ([212, 61, 78], [162, 193, 46], [118, 135, 141], [202, 98, 169]),
    ),
    (500, 375): (
        "975e9c1155ed591f65db26b84ebe7bc6be6880d3de20803ec528366f4be2b6f4",
        ([255, 232, 53], [120, 71, 142], [69, 165, 137], [179, 214, 14]),
    ),
    (271, 523): (
        "53cad16fae8e0ee675e1b34aacb27480238973467999fd0faf351d6add44d97a",
        ([83, 4, 184], [119, 216, 71], [112, 57, 114], [171, 129, 69]),
    ),
}


def formula(width: int, height: int) -> Image.Image:
    """An image full of edges, the same everywhere."""
    row, column, channel = np.mgrid[:height, :width, :3]
    values = (row * row * 3 + column * column * 5 + row * column * channel * 7 + channel * 90) // 4
    return Image.fromarray((values % 256).astype(np.uint8))


def result(image: Image.Image) -> NDArray[np.uint8]:
    """Rows, columns, channels."""
    return KERAS256(image).transpose(1, 2, 0)


@pytest.mark.parametrize("size", OF_OPENCV)
def test_the_bytes_of_opencv(size: tuple[int, int]) -> None:
    sha256, four_pixels = OF_OPENCV[size]
    found = result(formula(*size))
    assert [found[place].tolist() for place in ((0, 0), (0, 223), (111, 112), (223, 100))] == list(four_pixels)
    assert hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest() == sha256


def test_where_the_kernel_overshoots() -> None:
    """Left half black, right half white: OpenCV's row around the edge."""
    edge = np.zeros((64, 64, 3), dtype=np.uint8)
    edge[:, 32:] = 255
    found = result(Image.fromarray(edge))[0, 108:116, 0]
    assert found.tolist() == [0, 0, 27, 92, 163, 228, 255, 255]


def resized(values: list[float], target: int) -> list[float]:
    """A row resized without a crop and without rounding."""
    places, weights = taps(len(values), target, 0, target)
    return [float(value) for value in (np.array(values)[places] * weights).sum(axis=0)]


def test_the_kernel_enlarging() -> None:
    """OpenCV's answer to a single bright pixel, four times as wide; exact in float32."""
    assert resized([0, 0, 0, 0, 1, 0, 0, 0, 0], 36)[10:18] == [
        -0.01025390625, -0.06591796875, -0.10986328125, -0.07177734375,
        0.11474609375, 0.42626953125, 0.74951171875, 0.96728515625,
    ]  # fmt: skip


def test_the_kernel_reducing_takes_four_pixels_all_the_same() -> None:
    squares = [0.0, 1, 4, 9, 16, 25, 36, 49]
    assert resized(squares, 3) == pytest.approx([0.5960649251937866, 12.125, 38.82059860229492], abs=1e-5)


@examples(200)
@given(st.integers(1, 3000), st.integers(256, 3000))
def test_weights_add_up_and_places_lie_inside(length: int, target: int) -> None:
    places, weights = taps(length, target, target // 2 - 112, 224)
    assert places.shape == weights.shape == (4, 224)
    assert weights.sum(axis=0) == pytest.approx(np.ones(224), abs=1e-12)
    assert 0 <= places.min() <= places.max() < length


@pytest.mark.parametrize("mode", ["L", "CMYK", "RGB"])
def test_every_mode_gives_rgb(mode: str) -> None:
    image = decode(jpeg(drawn_image(90, 60, mode)))
    found = KERAS256(image)
    assert found.shape == (3, 224, 224)
    assert found.dtype == np.uint8
    assert np.array_equal(found, KERAS256(image.convert("RGB")))


def test_other_than_pillows_bicubic() -> None:
    """Pillow smooths where it reduces; where there is much detail, the two differ visibly."""
    image = formula(500, 375)
    of_pillow = np.asarray(image.resize((341, 256), Image.Resampling.BICUBIC).crop((58, 16, 282, 240)))
    assert np.abs(of_pillow.astype(int) - result(image)).mean() > 10
