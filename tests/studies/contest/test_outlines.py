"""Outlines: areas and boxes by hand, what is refused, pixels inside against winding numbers."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.studies.contest.outlines import (
    Outline,
    as_text,
    box,
    box_area,
    check_inside,
    doubled_area,
    filled_pixels,
    overlap,
    parse_outline,
)
from tests.properties import examples

TRIANGLE = ((0, 0), (10, 0), (0, 6))
L_SHAPE = ((2, 1), (8, 1), (8, 3), (4, 3), (4, 9), (2, 9))


@pytest.mark.parametrize(
    ("outline", "doubled", "around"),
    [(TRIANGLE, 60, (0, 0, 10, 6)), (TRIANGLE[::-1], 60, (0, 0, 10, 6)), (L_SHAPE, 48, (2, 1, 8, 9))],
)
def test_area_and_box(outline: Outline, doubled: int, around: tuple[int, ...]) -> None:
    assert (doubled_area(outline), box(outline)) == (doubled, around)
    assert box_area(outline) == (around[2] - around[0]) * (around[3] - around[1])
    assert parse_outline([list(point) for point in outline]) == outline


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0, 0], [5, 5]], "an outline with 2 points; expected 3 to 1000"),
        ([[0, 0]] * 1001, "an outline with 1001 points"),
        ([[0, 0], [4, 4], [4, 0], [0, 4]], "crosses or touches itself"),
        ([[0, 0], [4, 4], [9, 0], [9, 4], [4, 9], [0, 9], [4, 4]], "a point twice"),
        ([[0, 0], [8, 0], [8, 8], [4, 0], [0, 8]], "crosses or touches itself"),  # a corner on another edge
        ([[0, 0], [8, 0], [4, 0], [4, 4]], "crosses or touches itself"),  # an edge that runs back
        ([[4, 4], [0, 0], [8, 0], [2, 0]], "crosses or touches itself"),
        ([[0, 0], [5, 5], [10, 10]], "an outline of no area"),
        ([[0, 0], [10, 10], [5, 5], [3, 3]], "an outline of no area"),
        ([[0, 0], [5, 0], [5, -1]], "x and y of each point as whole numbers from 0 to 65,535"),
        ([[0, 0], [5, 0], [5, 65_536]], "whole numbers from 0"),
        ([[0, 0], [5, 0], [5, 1.5]], "whole numbers from 0"),
        ([[0, 0], [5, 0], [5, True]], "whole numbers from 0"),
        ([[0, 0], [5, 0], [5]], "whole numbers from 0"),
        ([[0, 0], [5, 0], "ab"], "whole numbers from 0"),
        ("0,0 5,5", "an outline with 2 points; expected 3 to 1000"),
        (" ".join(["0,0"] * 1001), "an outline with 1001 points"),
        ("0,0 4,4 4,0 0,4", "crosses or touches itself"),
        ("0,0 5,0 5,65536", "whole numbers from 0 to 65,535"),
        (None, "expected an outline: the corners as text"),
    ],
)
def test_refused(points: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_outline(points)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "0,0 5,0 5",
        "0,0  5,0 5,5",
        " 0,0 5,0 5,5",
        "0,0 5,0 5,5\n",
        "0,0\t5,0\t5,5",
        "0, 0 5, 0 5, 5",
        "0,0 5,0 5,-1",
        "0,0 5,0 5,1.5",
        "0,0 5,0 05,5",
        "0,0 5,0 5,123456",
        "0,0 5,0 5,٥",
    ],
)
def test_refused_texts(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected an outline: the corners as text, x,y of each, such as "):
        parse_outline(text)


def test_as_text() -> None:
    assert as_text(L_SHAPE) == "2,1 8,1 8,3 4,3 4,9 2,9"
    assert parse_outline("2,1 8,1 8,3 4,3 4,9 2,9") == L_SHAPE
    assert parse_outline("0,65535 65535,0 65535,65535") == ((0, 65535), (65535, 0), (65535, 65535))


def test_outside_the_image() -> None:
    check_inside(TRIANGLE, 10, 6)
    with pytest.raises(ValueError, match=r"the point \[10, 0\], outside the image of 9 x 6 pixels"):
        check_inside(TRIANGLE, 9, 6)
    with pytest.raises(ValueError, match=r"the point \[0, 6\], outside the image of 10 x 5 pixels"):
        check_inside(TRIANGLE, 10, 5)


def winding(outline: Outline, x: float, y: float) -> int:
    """How often an outline turns around a point."""
    angles = [math.atan2(below - y, right - x) for right, below in (*outline, outline[0])]
    turns = [(b - a + math.pi) % (2 * math.pi) - math.pi for a, b in pairwise(angles)]
    return round(sum(turns) / (2 * math.pi))


def crosses(outline: Outline) -> bool:
    """Whether edges that are no neighbors meet, by solving for the point in which their lines do."""
    count = len(outline)
    for i in range(count):
        for j in range(i + 2, count - (i == 0)):
            a, b, c, d = (np.array(outline[k % count], float) for k in (i, i + 1, j, j + 1))
            matrix = np.column_stack([b - a, c - d])
            if abs(np.linalg.det(matrix)) < 1e-9:
                ends = [(c, a, b), (d, a, b), (a, c, d), (b, c, d)]
                if any(abs(np.hypot(*(p - q)) + np.hypot(*(p - r)) - np.hypot(*(q - r))) < 1e-9 for p, q, r in ends):
                    return True
                continue
            s, t = np.linalg.solve(matrix, c - a)
            if -1e-9 <= s <= 1 + 1e-9 and -1e-9 <= t <= 1 + 1e-9:
                return True
    return False


POINTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=3, max_size=6, unique=True)


def runs_back(outline: Outline) -> bool:
    """Whether an edge turns by 180 degrees into the next."""
    for a, b, c in zip(outline, outline[1:] + outline[:1], outline[2:] + outline[:2], strict=True):
        before, behind = np.subtract(b, a), np.subtract(c, b)
        if math.isclose(before @ behind, -np.hypot(*before) * np.hypot(*behind)):
            return True
    return False


def accepted(points: Outline) -> bool:
    try:
        return parse_outline(points) == parse_outline(as_text(points)) == points
    except ValueError:
        return False


@given(POINTS)
@examples(300)
def test_simple_polygons_only(points: list[tuple[int, int]]) -> None:
    outline = tuple(points)
    assert accepted(outline) == (not crosses(outline) and not runs_back(outline))
    if accepted(outline):
        inside = filled_pixels(outline, 8, 8)
        for x, y in product(range(8), range(8)):
            if not on_edge(outline, x + 0.5, y + 0.5):
                assert inside[y, x] == (winding(outline, x + 0.5, y + 0.5) != 0)


def on_edge(outline: Outline, x: float, y: float) -> bool:
    edges = zip(outline, (*outline[1:], outline[0]), strict=True)
    return any(math.isclose(math.dist((x, y), a) + math.dist((x, y), b), math.dist(a, b)) for a, b in edges)


def test_the_overlap_with_a_mask() -> None:
    mask = np.zeros((10, 10), np.bool_)
    mask[0:4, 0:4] = True
    square = ((2, 0), (6, 0), (6, 4), (2, 4))
    assert filled_pixels(square, 10, 10).sum() == 16
    assert overlap(square, mask) == 8 / 24
    assert overlap(((0, 0), (4, 0), (4, 4), (0, 4)), mask) == 1
    assert overlap(((5, 5), (9, 5), (9, 9)), mask) == 0
