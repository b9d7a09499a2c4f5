"""Which lines of text hint at an addition, and what RapidOCR reads."""

from dataclasses import replace

import pytest
from PIL import Image, ImageDraw, ImageFont

from cleanset.review.hints.hints import Hint, hints_of_image
from cleanset.review.hints.measures import measure
from cleanset.review.hints.text import TextLine, added_line, can_read_text, lines_of_text

needs_reader = pytest.mark.skipif(not can_read_text(), reason="the extra text is not installed")

SIZE = (400, 300)
LINE = TextLine("stock.com", 0.9, (300, 270, 390, 290), 0.0)
"""A watermark at the bottom right, 10 pixels from both edges."""


@pytest.mark.parametrize(
    ("line", "is_added"),
    [
        (LINE, True),
        (replace(LINE, score=0.6), True),
        (replace(LINE, score=0.59), False),
        (replace(LINE, text="© 2011"), False),  # four letters or digits
        (replace(LINE, text="© 2011a"), True),
        (replace(LINE, slope=0.08), True),
        (replace(LINE, slope=0.09), False),
        (replace(LINE, box=(150, 24, 250, 50)), True),
        (replace(LINE, box=(150, 25, 250, 50)), False),
        (replace(LINE, box=(32, 140, 250, 160)), True),
        (replace(LINE, box=(33, 140, 367, 160)), False),
        (replace(LINE, box=(33, 140, 368, 160)), True),
        (replace(LINE, box=(150, 250, 250, 276)), True),
        (replace(LINE, box=(150, 250, 250, 275)), False),
    ],
)
def test_what_counts_as_added(line: TextLine, is_added: bool) -> None:
    assert added_line([line], SIZE) == (line if is_added else None)


def test_the_longest_is_shown() -> None:
    other = replace(LINE, text="all rights reserved", box=(5, 5, 90, 20))
    assert added_line([LINE, other, replace(LINE, text="far longer than both", score=0.1)], SIZE) == other
    assert added_line([], SIZE) is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (LINE, "“stock.com”, bottom right"),
        (replace(LINE, box=(0, 0, 90, 20)), "“stock.com”, top left"),
        (replace(LINE, box=(0, 140, 400, 160)), "“stock.com”, middle centre"),
        (replace(LINE, text="m" * 41), f"“{'m' * 39}…”, bottom right"),
        (replace(LINE, text="m" * 40), f"“{'m' * 40}”, bottom right"),
    ],
)
def test_hint(line: TextLine, expected: str) -> None:
    plain, _ = measure(Image.effect_mandelbrot(SIZE, (-2, -1, 1, 1), 20))
    assert [hint for hint in hints_of_image(plain, [line]) if hint.kind == "text"] == [Hint("text", expected)]
    assert "text" not in {hint.kind for hint in hints_of_image(plain)}


@needs_reader
@pytest.mark.slow
def test_reading() -> None:
    image = Image.new("RGB", (320, 240), (90, 120, 90))
    ImageDraw.Draw(image).text((10, 215), "picture of the week", fill="white", font=ImageFont.load_default(16))
    before = image.tobytes()
    (line,) = lines_of_text(image)
    assert line.text == "picture of the week"
    assert line.score > 0.9
    left, top, right, bottom = line.box
    assert 0 <= left <= 10
    assert 205 <= top <= 220
    assert 140 <= right <= 170
    assert 228 <= bottom <= 240
    assert line.slope < 0.02
    assert added_line([line], image.size) == line
    assert image.tobytes() == before


@needs_reader
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_images_without_text(mode: str) -> None:
    assert lines_of_text(Image.new(mode, (5, 40))) == ()


@needs_reader
@pytest.mark.slow
def test_a_strip_is_refused() -> None:
    with pytest.raises(ValueError, match="Resize"):
        lines_of_text(Image.new("RGB", (3000, 9)))
