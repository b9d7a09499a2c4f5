"""The largest box without obstacles, against every box of a small image; and what is proposed for crops."""

import io
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from cleanset.classes import imagenet
from cleanset.images.boxes import Box
from cleanset.review.hints.crop_proposal import crop_proposal, largest_box_without
from cleanset.review.hints.hints import ImageMeasures, hints_of_image, measure
from cleanset.review.hints.kinds import Border
from cleanset.review.hints.text import TextLine
from tests.properties import examples
from tests.review.hints.plain import changed, plain

SIDE = 6


@st.composite
def boxes(draw: st.DrawFn, low: int = -2, high: int = SIDE + 2) -> Box:
    left, right = sorted(draw(st.lists(st.integers(low, high), min_size=2, max_size=2, unique=True)))
    top, bottom = sorted(draw(st.lists(st.integers(low, high), min_size=2, max_size=2, unique=True)))
    return left, top, right, bottom


def area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def by_trying_all(obstacles: list[Box], inside: Box) -> int:
    """The area of the largest free box, pixel by pixel; 0 without one."""
    free = np.zeros((SIDE, SIDE), bool)
    free[inside[1] : inside[3], inside[0] : inside[2]] = True
    for left, top, right, bottom in obstacles:
        free[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = False
    pairs = list(combinations(range(SIDE + 1), 2))
    return max(
        (
            (right - left) * (bottom - top)
            for (left, right), (top, bottom) in product(pairs, repeat=2)
            if free[top:bottom, left:right].all()
        ),
        default=0,
    )


@examples(400)
@given(st.lists(boxes(), max_size=5), boxes(0, SIDE), st.integers(0, 12))
def test_no_free_box_is_larger(obstacles: list[Box], inside: Box, min_area: int) -> None:
    largest = by_trying_all(obstacles, inside)
    box = largest_box_without(obstacles, inside, min_area)
    if largest < max(min_area, 1):
        assert box is None
    else:
        assert box is not None
        assert by_trying_all(obstacles, box) == area(box) == largest
        assert all(low >= edge for low, edge in zip(box[:2], inside[:2], strict=True))
        assert all(high <= edge for high, edge in zip(box[2:], inside[2:], strict=True))


def test_ties_go_to_the_left_and_upper() -> None:
    assert largest_box_without([(4, 0, 6, 10)], (0, 0, 10, 10)) == (0, 0, 4, 10)
    assert largest_box_without([(0, 4, 10, 6)], (0, 0, 10, 10)) == (0, 0, 10, 4)
    assert largest_box_without([(0, 0, 10, 10)], (0, 0, 10, 10)) is None
    assert largest_box_without([], (5, 0, 3, -2)) is None
    # up to where the obstacle ends, which is as low as the box
    assert largest_box_without([(0, 0, 1, 2)], (0, 0, 2, 1)) == (1, 0, 2, 1)
    assert largest_box_without([(1, 0, 2, 2)], (0, 0, 2, 1)) == (0, 0, 1, 1)
    assert largest_box_without([(0, 0, 2, 1)], (0, 0, 1, 2)) == (0, 1, 1, 2)


PLAIN = plain((400, 300))
STAMP = TextLine("stock.com", 0.9, (300, 270, 390, 290), 0.0)
SIGN = TextLine("BAKERY", 0.9, (180, 100, 220, 116), 0.0)
"""Lettering in the middle, as on a shop."""


def proposed(measures: ImageMeasures, *lines: TextLine, min_side: int = 32) -> tuple[Box, str, str, float] | None:
    found = crop_proposal(measures, lines, min_side)
    return None if found is None else (found.box, found.reason, found.without, kept_share(found.box, measures))


def kept_share(box: Box, measures: ImageMeasures) -> float:
    return round(area(box) / (measures.size[0] * measures.size[1]), 3)


def test_without_text_and_margins_there_is_no_proposal() -> None:
    assert proposed(PLAIN) is None


def test_an_added_line_is_left_out_with_room_around_it() -> None:
    assert proposed(PLAIN, STAMP) == ((0, 0, 400, 265), "watermark", "“stock.com”", 0.883)
    caption = replace(STAMP, text="picture of the week")
    assert proposed(PLAIN, caption) == ((0, 0, 400, 265), "text", "“picture of the week”", 0.883)


def test_lettering_elsewhere_is_left_out_only_if_no_line_was_added() -> None:
    assert proposed(PLAIN, STAMP, SIGN) == ((0, 0, 400, 265), "watermark", "“stock.com”", 0.883)
    assert proposed(PLAIN, SIGN) == ((0, 120, 400, 300), "text", "“BAKERY”", 0.6)
    assert proposed(PLAIN, replace(SIGN, score=0.5)) is None
    assert proposed(PLAIN, replace(SIGN, box=(180, 140, 220, 156))) is None  # 59 % would be left at most


def test_margins_are_left_out_and_no_more() -> None:
    framed = changed(PLAIN, margins=(0.1, 0, 0.05, 0.02))
    assert proposed(framed) == ((40, 0, 380, 294), "border", "the plain margins", 0.833)
    assert proposed(framed, SIGN) == ((40, 0, 380, 294), "border", "the plain margins", 0.833)
    assert proposed(framed, STAMP) == ((40, 0, 380, 265), "watermark", "the plain margins, “stock.com”", 0.751)
    assert proposed(changed(PLAIN, margins=(0.2, 0.1, 0.2, 0.1))) is None  # 48 %


def test_in_a_large_image_margins_end_where_they_were_measured() -> None:
    large = changed(PLAIN, margins=(0.1, 0, 0.1, 0), size=(1200, 900))  # measured at 400 × 300
    assert proposed(large) == ((120, 0, 1080, 900), "border", "the plain margins", 0.8)
    odd = changed(PLAIN, margins=(0.1, 0, 0.1, 0), size=(1199, 900))  # measured at 400 × 300: the last of two pixels
    assert proposed(odd) == ((120, 0, 1080, 900), "border", "the plain margins", 0.801)


def bars(left: int, top: int, right: int, bottom: int, softness: float = 0.0, level: int = 0) -> Image.Image:
    """A texture of 64 × 64 pixels between plain bars, softened, and read back from a JPEG file."""
    coarse = np.random.default_rng(3).integers(90, 230, (17, 17), np.uint8)
    image = Image.fromarray(coarse).resize((64, 64), Image.Resampling.BICUBIC)
    inner = image.crop((left, top, 64 - right, 64 - bottom))
    image.paste(level, (0, 0, 64, 64))
    image.paste(inner, (left, top))
    out = io.BytesIO()
    image.filter(ImageFilter.GaussianBlur(softness)).save(out, "JPEG", quality=92)
    return Image.open(out).convert("RGB")


@pytest.mark.parametrize(
    ("widths", "box"),
    [
        ((0, 2, 0, 1), (0, 2, 64, 63)),
        ((2, 0, 1, 0), (2, 0, 63, 64)),
        ((0, 1, 0, 3), (0, 1, 64, 61)),
        ((8, 0, 9, 0), (8, 0, 55, 64)),
        ((3, 1, 3, 1), (3, 1, 61, 63)),
        ((1, 3, 2, 4), (1, 3, 62, 60)),
    ],
)
def test_margins_of_a_few_pixels_are_left_out_on_every_side(widths: Box, box: Box) -> None:
    measures, _ = measure(bars(*widths))
    assert proposed(measures)[:3] == (box, "border", "the plain margins")  # type: ignore[index]
    assert measure(bars(*widths).crop(box))[0].of(Border).margins == (0, 0, 0, 0)


def test_the_rows_that_a_soft_edge_mixes_are_left_out() -> None:
    soft = bars(4, 0, 4, 0, softness=0.7)
    found = proposed(measure(soft)[0])
    assert found is not None
    assert found[0] == (5, 0, 59, 64)
    assert measure(soft.crop(found[0]))[0].of(Border).margins == (0, 0, 0, 0)


@pytest.mark.parametrize("widths", [(0, 12, 0, 0), (0, 0, 5, 0), (3, 3, 0, 0), (0, 1, 0, 1), (0, 0, 0, 0)])
def test_without_a_hint_at_a_border_no_margin_is_left_out(widths: Box) -> None:
    """One strip may be a floor or a sky."""
    measures, _ = measure(bars(*widths))
    assert "border" not in {hint.kind for hint in hints_of_image(measures, imagenet())}
    assert proposed(measures) is None


def test_a_proposal_has_the_smallest_side_of_a_crop() -> None:
    small = changed(PLAIN, margins=(0, 0.1, 0, 0.1), size=(60, 40))
    assert proposed(small, min_side=32) == ((0, 4, 60, 36), "border", "the plain margins", 0.8)
    assert proposed(small, min_side=33) is None


def test_the_longest_of_several_lines_is_reported() -> None:
    date = TextLine("12.5.2009", 0.9, (10, 275, 80, 285), 0.0)
    caption = replace(STAMP, text="picture of the week")
    assert proposed(PLAIN, caption, date) == ((0, 0, 400, 265), "text", "“picture of the week” and 1 more", 0.883)


@pytest.mark.parametrize("size", [(1, 1), (3, 400), (1, 5000)])
def test_any_size(size: tuple[int, int]) -> None:
    framed = changed(PLAIN, margins=(0.3, 0.3, 0.3, 0.3), size=size)
    assert crop_proposal(framed, [replace(STAMP, box=(0, 0, *size))]) is None


@examples(400)
@given(
    st.tuples(st.integers(1, 700), st.integers(1, 700)),
    st.lists(boxes(0, 600), max_size=4),
    st.tuples(*[st.floats(0, 0.3)] * 4),
)
def test_a_proposal_keeps_enough_and_is_inside(
    size: tuple[int, int], lines: list[Box], margins: tuple[float, float, float, float]
) -> None:
    found = crop_proposal(
        changed(PLAIN, size=size, margins=margins), [TextLine("lettering", 0.9, box, 0.0) for box in lines]
    )
    if found is not None:
        left, top, right, bottom = found.box
        assert 0 <= left < right <= size[0]
        assert 0 <= top < bottom <= size[1]
        assert 10 * area(found.box) >= 6 * size[0] * size[1]
        assert found.box != (0, 0, *size)


@pytest.mark.parametrize(
    ("size", "boxes_of_lines", "margins", "box"),
    [
        ((100, 100), [(0, 0, 100, 12)], (0, 0, 0, 0), (0, 15, 100, 100)),
        ((100, 100), [(30, 0, 40, 8)], (0.02, 0, 0, 0), (2, 10, 100, 100)),
        ((100, 50), [], (0.1, 0, 0.1, 0.2), (10, 0, 90, 40)),
        ((700, 500), [(650, 10, 690, 30)], (0, 0.1, 0, 0.1), (0, 50, 700, 450)),
    ],
)
def test_what_is_proposed(size: tuple[int, int], boxes_of_lines: list[Box], margins: Any, box: Box) -> None:
    lines = [TextLine("lettering", 0.9, each, 0.0) for each in boxes_of_lines]
    found = crop_proposal(changed(PLAIN, size=size, margins=margins), lines)
    assert found is not None
    assert found.box == box
