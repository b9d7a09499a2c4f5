"""Outlines that people draw: simple polygons with corners on whole pixels, so that their area is exact."""

import re

Point = tuple[int, int]
Outline = tuple[Point, ...]
"""Corners as x to the right and y down, in pixels from the top left corner; the last is joined to the first."""
MIN_CORNERS = 3
MAX_CORNERS = 1000
_NUMBER = "(?:0|[1-9][0-9]{0,4})"
_OUTLINE = re.compile(f"{_NUMBER},{_NUMBER}(?: {_NUMBER},{_NUMBER})*")


def parse_outline(text: object) -> Outline:
    """The outline in a text, as `as_text` writes it. Raises ValueError for anything else."""
    # a validated record has the corners already
    if isinstance(text, tuple):
        return text
    if not isinstance(text, str) or not _OUTLINE.fullmatch(text):
        raise ValueError('expected an outline: the corners as text, x,y of each, such as "10,10 40,10 40,30"')
    numbers = [int(each) for each in text.replace(",", " ").split(" ")]
    outline = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    if not MIN_CORNERS <= len(outline) <= MAX_CORNERS:
        raise ValueError(f"an outline with {len(outline)} corners; expected {MIN_CORNERS} to {MAX_CORNERS}")
    return outline


def as_text(outline: Outline) -> str:
    """The corners as SVG's `points` has them: `x,y` of each, with a space between two corners."""
    return " ".join(f"{x},{y}" for x, y in outline)


def check_outline(outline: Outline, width: int, height: int) -> None:
    """Raise ValueError unless an outline is a simple polygon inside an image of `width` x `height` pixels.

    It may have its corners on the border of the image; it may not cross or touch itself.
    """
    from shapely import LinearRing, is_simple, linearrings

    for x, y in outline:
        if x > width or y > height:
            raise ValueError(
                f"an outline with the corner {x},{y}, outside the image of {width} x {height} pixels; expected all "
                "corners inside"
            )
    if len(outline) < MIN_CORNERS:
        raise ValueError(f"an outline with {len(outline)} corners; expected at least {MIN_CORNERS}")
    if len(set(outline)) < len(outline):
        raise ValueError("an outline with a corner twice; expected each once, and the last not equal to the first")
    # a corner on a straight edge is allowed, one at which the outline turns back is not
    if not is_simple(linearrings(outline)):
        if not LinearRing(outline).convex_hull.area:
            raise ValueError("an outline of no area; expected corners that are not all on one line")
        raise ValueError("an outline that crosses or touches itself; expected a simple polygon: draw it again")


def doubled_area(outline: Outline) -> int:
    """Twice the area in square pixels, by the shoelace formula: a whole number."""
    total = 0
    before_x, before_y = outline[-1]
    for x, y in outline:
        total += before_x * y - x * before_y
        before_x = x
        before_y = y
    return abs(total)
