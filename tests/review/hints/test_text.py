"""Which lines of text hint at an addition, and what RapidOCR reads."""

import os
from dataclasses import replace

import pytest
from PIL import Image, ImageDraw, ImageFont

from cleanset.classes import imagenet
from cleanset.review.hints.added_text import added_line
from cleanset.review.hints.hints import Hint, hints_of_image, measure
from cleanset.review.hints.text import TextLine, can_read_text, lines_of_text

needs_reader = pytest.mark.skipif(
    not can_read_text() and not os.environ.get("CLEANSET_NO_SKIP"), reason="the extra text is not installed"
)

SIZE = (400, 300)
LINE = TextLine("stock.com", 0.9, (300, 270, 390, 290), 0.0)
"""A watermark at the bottom right, 10 pixels from both edges."""


CAPTION = replace(LINE, text="Miller 4")
"""A line that only its place tells from one that was photographed."""


@pytest.mark.parametrize(
    ("line", "is_added"),
    [
        (CAPTION, True),
        (replace(CAPTION, score=0.6), True),
        (replace(CAPTION, score=0.59), False),
        (replace(CAPTION, text="Mil 4"), False),  # four letters or digits
        (replace(CAPTION, text="Mill 4"), True),
        (replace(CAPTION, text="HOOTER"), False),  # a word in capitals, as on things
        (replace(CAPTION, text="HOOTER INN"), True),
        (replace(CAPTION, text="SAMPLE"), True),
        (replace(CAPTION, text="Hooter"), True),
        (replace(CAPTION, slope=0.08), True),
        (replace(CAPTION, slope=0.09), False),
        (replace(CAPTION, box=(150, 24, 250, 50)), True),
        (replace(CAPTION, box=(150, 25, 250, 50)), False),
        (replace(CAPTION, box=(32, 140, 250, 160)), True),
        (replace(CAPTION, box=(33, 140, 367, 160)), False),
        (replace(CAPTION, box=(33, 140, 368, 160)), True),
        (replace(CAPTION, box=(150, 250, 250, 276)), True),
        (replace(CAPTION, box=(150, 250, 250, 275)), False),
    ],
)
def test_what_counts_as_added(line: TextLine, is_added: bool) -> None:
    assert added_line([line], SIZE) == (line if is_added else None)


MIDDLE = replace(LINE, box=(150, 140, 250, 160), slope=0.3)


@pytest.mark.parametrize(
    "text",
    [
        "www.arkive.org", "dz606.com", "alibaba.com.cn", "https://a.example", "BakerDavid@gmail.com", "© 2008 Ann",
        "(c) Steve", "Copyright A. Miller", "SAMPLE", "preview only",
    ],
)  # fmt: skip
def test_words_that_are_added_wherever_they_stand(text: str) -> None:
    line = replace(MIDDLE, text=text)
    assert added_line([line], SIZE) == line
    assert added_line([replace(line, score=0.59)], SIZE) is None


@pytest.mark.parametrize(
    "text",
    [
        "COCKTAILS", "SLOT GAME", "The 1918 Fair", "CYL16383 H16 S63", "enjoy 100% Free", "12.5 oz. net", "$1.00 / 500",
        "Comcast", "2008 12345", "Andrew Hoffman", "photocopies", "12.08.2006",
    ],
)  # fmt: skip
def test_words_of_signs_and_labels(text: str) -> None:
    assert added_line([replace(MIDDLE, text=text, slope=0.0, score=1.0)], SIZE) is None


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
    assert [hint for hint in hints_of_image(plain, imagenet(), [line]) if hint.kind == "text"] == [
        Hint("text", expected)
    ]
    assert "text" not in {hint.kind for hint in hints_of_image(plain, imagenet())}


def written(*lines: tuple[int, int, str]) -> Image.Image:
    image = Image.new("RGB", (320, 240), (90, 120, 90))
    for left, top, text in lines:
        ImageDraw.Draw(image).text((left, top), text, fill="white", font=ImageFont.load_default(16))
    return image


@pytest.mark.long
@needs_reader
@pytest.mark.slow
def test_reading() -> None:
    image = written((10, 215, "picture of the week"))
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
@pytest.mark.parametrize("turn", [Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_270])
def test_reading_upwards_and_downwards(turn: Image.Transpose) -> None:
    image = written((10, 215, "picture of the week")).transpose(turn)
    (line,) = lines_of_text(image)
    assert line.text == "picture of the week"
    assert line.slope < 0.05
    assert added_line([line], image.size) == line


@needs_reader
@pytest.mark.slow
def test_what_is_read_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that are nearest to an edge, and none of too few letters."""
    image = written((60, 110, "in the middle"), (10, 215, "picture of the week"), (290, 20, "A"))
    assert [line.text for line in lines_of_text(image)] == ["picture of the week", "in the middle"]
    monkeypatch.setattr("cleanset.review.hints.text.READ_PIXELS", 500)
    assert [line.text for line in lines_of_text(image)] == ["picture of the week"]


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
