"""Crop boxes: what is taken for one, and what an image may be cropped to."""

import numpy as np
import pytest

from cleanset.images.boxes import box_of, check_box, check_crop, parse_box


@pytest.mark.parametrize("edges", [[1, 2, 30, 40], (1, 2, 30, 40)])
def test_four_whole_numbers_are_a_box(edges: object) -> None:
    assert parse_box(edges) == (1, 2, 30, 40)


@pytest.mark.parametrize(
    "edges",
    [None, 5, "1 2 30 40", [], [1, 2, 30], [1, 2, 30, 40, 50], [-1, 2, 30, 40], [1, 2, 30.0, 40], [False, 2, 30, 40]],
)
def test_what_is_not_four_whole_numbers_is_refused(edges: object) -> None:
    with pytest.raises(ValueError, match=r"^expected four whole numbers from 0: left, top, right, bottom in pixels$"):
        parse_box(edges)


@pytest.mark.parametrize("edges", [[5, 0, 5, 9], [0, 5, 9, 5], [6, 0, 5, 9], [0, 6, 9, 5]])
def test_a_box_without_area_is_refused(edges: list[int]) -> None:
    with pytest.raises(ValueError, match=r"^crop \[.*\] has no area; expected left < right and top < bottom$"):
        parse_box(edges)


def test_a_value_of_a_column_is_a_box() -> None:
    assert box_of(None) is None
    assert box_of(np.array([1.0, 2.0, 30.0, 40.0])) == (1, 2, 30, 40)
    assert [type(edge) for edge in box_of(np.array([1, 2, 30, 40], np.int32)) or ()] == [int] * 4


@pytest.mark.parametrize(
    "box", [(-1, 0, 5, 5), (0, -1, 5, 5), (0, 0, 101, 5), (0, 0, 5, 81), (5, 0, 5, 5), (0, 5, 5, 4)]
)
def test_a_box_that_is_not_inside_the_image_is_refused(box: tuple[int, int, int, int]) -> None:
    check_box((0, 0, 100, 80), 100, 80)
    with pytest.raises(ValueError, match=r"in an image of 100 x 80 pixels; expected a box inside it$"):
        check_box(box, 100, 80)


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((0, 0, 100, 81), "in an image of 100 x 80 pixels; expected a box inside it"),
        ((0, 0, 100, 80), r"crop \[0, 0, 100, 80\] is the whole image; expected a box smaller than it"),
        (
            (0, 0, 31, 80),
            r"crop \[0, 0, 31, 80\] is 31 x 80 pixels; expected edges of at least 32 \(review.min_crop_pix",
        ),
        ((0, 49, 100, 80), r"is 100 x 31 pixels; expected edges of at least 32 .*: draw a larger box, or give another"),
    ],
)
def test_what_an_image_may_not_be_cropped_to(box: tuple[int, int, int, int], message: str) -> None:
    check_crop((0, 48, 32, 80), 100, 80, 32)
    with pytest.raises(ValueError, match=message):
        check_crop(box, 100, 80, 32)
