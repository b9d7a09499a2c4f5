"""The watermark on images: its pixels, and the font that it may be set in."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFont

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels
from cleanset.plumbing.files import sha256
from cleanset.studies.robustness.watermarks.changes import FontFile, text_mask, watermarked

BLACK = np.zeros((224, 224, 3), np.uint8)


@pytest.fixture
def font(tmp_path: Path) -> FontFile:
    """Pillow's own font, in a file; it has no Chinese characters, and draws boxes."""
    face = ImageFont.load_default(36)
    assert isinstance(face, ImageFont.FreeTypeFont)
    assert isinstance(face.path, BytesIO)
    data = face.path.getvalue()
    (tmp_path / "some.otf").write_bytes(data)
    return FontFile(tmp_path / "some.otf", sha256(data))


def box(pixels: Pixels) -> tuple[int, int, int, int] | None:
    """The part of an image that is not black: left, top, right and bottom, the last two exclusive."""
    return Image.fromarray(pixels).getbbox()


def test_the_watermark_is_where_the_authors_draw_it() -> None:
    found = watermarked(BLACK)
    # the authors' program on black, with its font: (3, 100, 217, 135)
    assert box(found) == (3, 100, 217, 136)
    # half opacity, white
    assert found.max() == 128
    assert np.array_equal(found[..., 0], found[..., 1])
    assert np.array_equal(found[..., 0], found[..., 2])


def test_the_two_characters_stand_three_times() -> None:
    mask = np.asarray(text_mask())
    assert np.array_equal(mask[:, 3:72], mask[:, 75:144])
    assert np.array_equal(mask[:, 3:72], mask[:, 147:216])
    assert mask.max() == 255
    # the authors' text covers 1,523 pixels
    assert round(float(mask.sum()) / 255) == 1579


def test_it_makes_pixels_paler_by_how_much_they_are_covered() -> None:
    generator = np.random.default_rng(5)
    image = generator.integers(0, 256, BLACK.shape, dtype=np.uint8)
    kept = image.copy()
    found = watermarked(image)
    share = np.asarray(text_mask(), np.float64)[..., np.newaxis] / 255 * 128 / 255
    assert np.abs(found - (image + share * (255.0 - image))).max() < 1.5
    assert np.array_equal(image, kept)
    white = np.full_like(BLACK, 255)
    assert np.array_equal(watermarked(white), white)


def test_it_can_be_set_in_a_font(font: FontFile) -> None:
    found = watermarked(BLACK, font)
    at = box(found)
    assert at is not None
    assert at[0] >= 2
    assert at[1] >= 89
    assert found.max() == 128
    assert not np.array_equal(found, watermarked(BLACK))


def test_a_font_is_read_once(font: FontFile) -> None:
    found = watermarked(BLACK, font)
    font.path.unlink()
    assert np.array_equal(watermarked(BLACK, font), found)


def test_another_file_than_the_font_is_refused(font: FontFile) -> None:
    with pytest.raises(CleansetError, match=r"SHA-256 .*; expected 000, as watermarks.font_sha256 in params.yaml"):
        FontFile(font.path, "000").font()
    font.path.write_bytes(b"no font")
    with pytest.raises(CleansetError, match=r"some.otf: .*; expected a font, such as an OpenType"):
        FontFile(font.path, sha256(b"no font")).font()
    font.path.unlink()
    with pytest.raises(CleansetError, match=r"some.otf: No such file .*; expected the font that watermarks.font names"):
        font.font()


@pytest.mark.parametrize("image", [BLACK[:200], BLACK.astype(np.float32), BLACK[..., 0]])
def test_another_array_is_refused(image: Pixels) -> None:
    with pytest.raises(ValueError, match=r"expected uint8 of shape \(224, 224, 3\)"):
        watermarked(image)
