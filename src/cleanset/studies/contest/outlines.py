"""Outlines that judges draw: simple polygons with corners on whole pixels, their area and box, exactly."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanset.images.boxes import Box

Point = tuple[int, int]
Outline = tuple[Point, ...]
"""Corners as x to the right and y down, in pixels from the top left corner; the last is joined to the first."""
MIN_POINTS = 3
MAX_POINTS = 1000
MAX_COORDINATE = 65_535

_NUMBER = "(?:0|[1-9][0-9]{0,4})"
# *+ does not backtrack: a long text that does not match is refused at once
_TEXT = re.compile(f"{_NUMBER},{_NUMBER}(?: {_NUMBER},{_NUMBER})*+")
_EXPECTED = 'expected an outline: the corners as text, x,y of each, such as "10,10 40,10 40,30", or a list of points'
_EXPECTED_POINT = f"expected x and y of each point as whole numbers from 0 to {MAX_COORDINATE:,}"


def parse_outline(points: Any) -> Outline:
    """The outline in the text of a file, as `as_text` writes it, or in a list of [x, y].

    Raises ValueError unless it is a polygon that does not cross or touch itself.
    """
    outline = _parsed(points) if isinstance(points, str) else _from_list(points)
    if not MIN_POINTS <= len(outline) <= MAX_POINTS:
        raise ValueError(f"an outline with {len(outline)} points; expected {MIN_POINTS} to {MAX_POINTS}")
    if len(set(outline)) < len(outline):
        raise ValueError(
            "an outline with a point twice; expected each corner once, and the last not equal to the first"
        )
    corners = list(zip(outline, (*outline[1:], outline[0]), (*outline[2:], *outline[:2]), strict=True))
    # a corner on a straight edge is allowed, one at which the outline turns back is not
    straight = [corner for corner in corners if _turn(*corner) == 0]
    if len(straight) == len(corners):
        raise ValueError("an outline of no area; expected corners that are not all on one line")
    runs_back = any(not _between(b, a, c) for a, b, c in straight)
    if runs_back or _edges_meet(outline):
        raise ValueError("an outline that crosses or touches itself; expected a simple polygon: draw it again")
    return outline


def as_text(outline: Outline) -> str:
    """The corners as SVG's `points` has them: `x,y` of each, with a space between two corners."""
    return " ".join(f"{x},{y}" for x, y in outline)


def _parsed(text: str) -> Outline:
    if not _TEXT.fullmatch(text):
        raise ValueError(_EXPECTED)
    numbers = [int(number) for number in text.replace(",", " ").split()]
    if max(numbers) > MAX_COORDINATE:
        raise ValueError(_EXPECTED_POINT)
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _from_list(points: Any) -> Outline:
    if not isinstance(points, Sequence):
        raise ValueError(_EXPECTED)
    return tuple(_point(point) for point in points)


def _point(point: Any) -> Point:
    if isinstance(point, list | tuple) and len(point) == 2:
        x, y = point
        # not isinstance, for which True is an int
        if type(x) is type(y) is int and 0 <= x <= MAX_COORDINATE and 0 <= y <= MAX_COORDINATE:
            return x, y
    raise ValueError(_EXPECTED_POINT)


def check_inside(outline: Outline, width: int, height: int) -> None:
    """Raise ValueError unless the outline lies inside an image of `width` x `height` pixels, or on its border."""
    for x, y in outline:
        if x > width or y > height:
            raise ValueError(
                f"an outline with the point [{x}, {y}], outside the image of {width} x {height} pixels; "
                "expected all points inside"
            )


def doubled_area(outline: Outline) -> int:
    """Twice the area in square pixels, by the shoelace formula: a whole number."""
    return abs(sum(x * below - right * y for (x, y), (right, below) in _edges(outline)))


def box(outline: Outline) -> Box:
    """The smallest box around an outline."""
    xs, ys = [x for x, _ in outline], [y for _, y in outline]
    return min(xs), min(ys), max(xs), max(ys)


def box_area(outline: Outline) -> int:
    """The area of the smallest box around an outline, in square pixels."""
    left, top, right, bottom = box(outline)
    return (right - left) * (bottom - top)


def filled_pixels(outline: Outline, width: int, height: int) -> NDArray[np.bool_]:
    """The pixels whose centers are inside the outline, shape (height, width)."""
    # inside: an odd number of edges to the right of a center; in half pixels a center is never on a corner's row
    centers_x, centers_y = np.arange(width) * 2 + 1, np.arange(height) * 2 + 1
    inside = np.zeros((height, width), np.bool_)
    for (x, y), (right, below) in _edges(outline):
        if y == below:
            continue
        rows = np.flatnonzero((centers_y > 2 * min(y, below)) & (centers_y < 2 * max(y, below)))
        crossing = 2 * x + (centers_y[rows] - 2 * y) * (right - x) / (below - y)
        inside[rows] ^= centers_x[None, :] < crossing[:, None]
    return inside


def overlap(outline: Outline, mask: NDArray[np.bool_]) -> float:
    """Intersection over union of an outline's pixels and a mask of shape (height, width), 0 to 1."""
    pixels = filled_pixels(outline, mask.shape[1], mask.shape[0])
    union = int((pixels | mask).sum())
    return int((pixels & mask).sum()) / union if union else 0.0


def _edges(outline: Outline) -> list[tuple[Point, Point]]:
    return list(zip(outline, (*outline[1:], outline[0]), strict=True))


def _turn(a: Point, b: Point, c: Point) -> int:
    """Sign of the side of the line from a to b on which the point c is; 0 on the line."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _edges_meet(outline: Outline) -> bool:
    """Whether two edges that are not neighbors have a point in common."""
    # by their left ends, so that only edges that overlap from left to right are compared
    edges = sorted((min(a[0], b[0]), max(a[0], b[0]), place, a, b) for place, (a, b) in enumerate(_edges(outline)))
    for index, (_, right, place, a, b) in enumerate(edges, 1):
        for left, _, other, c, d in edges[index:]:
            if left > right:
                break
            if abs(place - other) not in (1, len(edges) - 1) and _meet(a, b, c, d):
                return True
    return False


def _between(point: Point, a: Point, b: Point) -> bool:
    """Whether a point of the line through a and b is between the two."""
    return min(a[0], b[0]) <= point[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= point[1] <= max(a[1], b[1])


def _meet(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the segments from a to b and from c to d have a point in common."""
    if max(a[1], b[1]) < min(c[1], d[1]) or max(c[1], d[1]) < min(a[1], b[1]):
        return False
    turns = _turn(a, b, c), _turn(a, b, d), _turn(c, d, a), _turn(c, d, b)
    if turns[0] * turns[1] < 0 and turns[2] * turns[3] < 0:
        return True
    on = ((c, a, b), (d, a, b), (a, c, d), (b, c, d))
    return any(turn == 0 and _between(*points) for turn, points in zip(turns, on, strict=True))
