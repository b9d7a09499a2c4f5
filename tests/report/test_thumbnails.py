"""Thumbnails of images drawn here, decoded again and compared."""

import io

import pytest
from PIL import Image

from cleanset.report.thumbnails import Thumbnail, before_and_after, file_names, thumbnail

RED, GREEN, BLUE, WHITE = (200, 30, 30), (30, 160, 40), (30, 40, 200), (245, 245, 245)
AMBER = (255, 179, 0)
ORIENTATION = 0x0112


def quarters(width: int = 1000, height: int = 500) -> Image.Image:
    """Red, green; below them blue, white."""
    image = Image.new("RGB", (width, height))
    half, middle = width // 2, height // 2
    for colour, at in ((RED, (0, 0)), (GREEN, (half, 0)), (BLUE, (0, middle)), (WHITE, (half, middle))):
        image.paste(colour, (*at, at[0] + half, at[1] + middle))
    return image


def jpeg(image: Image.Image, orientation: int = 1, **more: object) -> bytes:
    out = io.BytesIO()
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    image.save(out, "JPEG", quality=95, exif=exif, **more)
    return out.getvalue()


def shown(made: Thumbnail) -> Image.Image:
    """The image that a page shows, of the size that it says."""
    image = Image.open(io.BytesIO(made.jpeg), formats=["JPEG"])
    image.load()
    assert image.size == (made.width, made.height)
    return image


def is_near(image: Image.Image, at: tuple[int, int], colour: tuple[int, int, int], by: int = 24) -> bool:
    found = image.convert("RGB").getpixel(at)
    assert isinstance(found, tuple)
    return all(abs(a - b) <= by for a, b in zip(found, colour, strict=True))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1000, 500), (400, 200)), ((500, 1000), (200, 400)), ((500, 375), (400, 300)),
        ((60, 40), (60, 40)), ((2000, 4), (400, 1)),
    ],
)  # fmt: skip
def test_the_longer_side_becomes_400_and_a_small_image_stays(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert shown(thumbnail(jpeg(quarters(*size)))).size == expected


def test_the_image_is_still_the_same() -> None:
    small = shown(thumbnail(jpeg(quarters())))
    for at, colour in (((60, 30), RED), ((340, 30), GREEN), ((60, 150), BLUE), ((340, 150), WHITE)):
        assert is_near(small, at, colour)


def test_the_box_is_drawn_before_and_cut_out_after() -> None:
    """The right half of 1000 x 500, shown at 400 x 200: x from 200, y from 0."""
    before, after = map(shown, before_and_after(jpeg(quarters()), (500, 0, 1000, 500)))
    assert before.size == (400, 200)
    for at in ((202, 100), (398, 100), (300, 1), (300, 198)):
        assert is_near(before, at, AMBER, by=90)
    for at, colour in (((60, 30), RED), ((340, 50), GREEN), ((60, 150), BLUE), ((340, 150), WHITE)):
        assert is_near(before, at, colour)
    assert after.size == (400, 400)
    assert is_near(after, (200, 60), GREEN)
    assert is_near(after, (200, 340), WHITE)


def test_the_box_of_a_very_long_image() -> None:
    """2000 x 4 is shown as 400 x 1, so that width and height shrink differently."""
    before, _ = before_and_after(jpeg(Image.new("RGB", (2000, 4), BLUE)), (1000, 2, 2000, 4))
    small = shown(before)
    assert is_near(small, (60, 0), BLUE)
    assert is_near(small, (300, 0), AMBER, by=90)


def test_a_box_of_one_pixel_is_drawn() -> None:
    before, after = before_and_after(jpeg(quarters()), (999, 499, 1000, 500))
    assert (before.width, before.height, after.width, after.height) == (400, 200, 1, 1)


def test_images_are_turned_as_viewers_turn_them() -> None:
    """Orientation 6: the left side of the stored pixels is shown at the top. The box is in stored pixels."""
    data = jpeg(quarters(), orientation=6)
    small = shown(thumbnail(data))
    assert small.size == (200, 400)
    for at, colour in (((30, 60), BLUE), ((160, 60), RED), ((30, 320), WHITE), ((160, 320), GREEN)):
        assert is_near(small, at, colour)
    before, after = map(shown, before_and_after(data, (0, 0, 500, 250)))
    assert before.size == (200, 400)
    assert is_near(before, (150, 198), AMBER, by=90)
    assert after.size == (200, 400)
    assert is_near(after, (90, 180), RED)


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_grey_and_cmyk_images_become_rgb(mode: str) -> None:
    small = shown(thumbnail(jpeg(quarters().convert(mode))))
    assert small.mode == "RGB"
    assert is_near(small, (340, 150), WHITE)


def test_nothing_of_the_files_metadata_is_left() -> None:
    data = jpeg(quarters(), 6, comment=b"made by somebody", icc_profile=b"profile" * 9)
    for made in (thumbnail(data), *before_and_after(data, (0, 0, 200, 100))):
        image = shown(made)
        assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
        assert not image.getexif()


def test_names_tell_crops_apart() -> None:
    assert file_names("ILSVRC2012_val_00000008", None) == ("ILSVRC2012_val_00000008.jpg",)
    assert file_names("ILSVRC2012_val_00000008", (0, 0, 387, 238)) == (
        "ILSVRC2012_val_00000008_0-0-387-238_before.jpg",
        "ILSVRC2012_val_00000008_0-0-387-238.jpg",
    )


def test_small_images_of_other_classes_are_enlarged_by_whole_factors() -> None:
    small = shown(thumbnail(jpeg(quarters(40, 32)), enlarged=True))
    assert small.size == (400, 320)
    assert shown(thumbnail(jpeg(quarters(40, 32)))).size == (40, 32)
