import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cleanset.images.preprocessing import jpeg, through_jpeg
from tests.properties import examples

NOISE = np.random.default_rng(0).integers(0, 256, (40, 56, 3), dtype=np.uint8)


def test_the_settings_are_in_the_file() -> None:
    image = Image.open(io.BytesIO(jpeg(NOISE, 85)))
    assert (image.size, image.mode, image.format) == ((56, 40), "RGB", "JPEG")
    assert "progressive" not in image.info
    # quality 85 scales the standard tables by .3: (16 * 30 + 50) // 100 is 5, (17 * 30 + 50) // 100 is 5
    assert [table[0] for table in image.quantization.values()] == [5, 5]  # type: ignore[attr-defined]
    assert [layer[1:3] for layer in image.layer] == [(2, 2), (1, 1), (1, 1)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("quality", [85, 95, 10])
def test_the_pixels_are_those_of_the_benchmarks_files(quality: int) -> None:
    """Theirs have optimised Huffman tables and Pillow's default subsampling."""
    out = io.BytesIO()
    Image.fromarray(NOISE).save(out, "JPEG", quality=quality, optimize=True)
    assert out.getvalue() != jpeg(NOISE, quality)
    assert np.array_equal(through_jpeg(NOISE, quality), np.asarray(Image.open(out)))


def test_without_a_quality_the_pixels_stay() -> None:
    assert through_jpeg(NOISE, None) is NOISE


@pytest.mark.parametrize("quality", [0, 101, -5])
def test_another_quality_is_refused(quality: int) -> None:
    with pytest.raises(ValueError, match=f"JPEG quality {quality}; expected 1 to 100"):
        jpeg(NOISE, quality)


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 100), st.integers(0, 255))
@examples(50)
def test_a_grey_image_keeps_its_shape_and_nearly_its_grey(height: int, width: int, quality: int, grey: int) -> None:
    found = through_jpeg(np.full((height, width, 3), grey, np.uint8), max(quality, 50))
    assert found.shape == (height, width, 3)
    assert np.abs(found.astype(int) - grey).max() <= 2
