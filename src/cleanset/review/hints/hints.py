"""Hints that an image may have been modified, shown beside it, and a proposal for a crop. People decide.

A hint never counts as a verdict, and an image without one may be as flawed as any. No hint finds several objects, a
wrong class, a drawing, a small object in a large image, large words across the middle, text written at an angle, a
wordless watermark, most collages, or a filter that leaves many colours.

A proposal is the largest part of an image without its margins and the lines of text that were added. Nothing here knows
where the object is, or whether it stays fully visible in the proposal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cleanset.classes import ClassTable
from cleanset.review.hints.measures import ImageMeasures
from cleanset.review.hints.text import TextLine, added_line
from cleanset.vocabulary import Reason

# an image of few pixels need not have a flaw: its object may fill it; nor a dark or a bright one
HintKind = Reason | Literal["few_pixels", "dark", "bright"]


@dataclass(frozen=True, slots=True)
class Hint:
    """A sign of a flaw, and the sign in words. `others`: the images that it compares with.

    `kind`: the reason to reject the image that the sign speaks for, or few_pixels, dark, bright.
    """

    kind: HintKind
    text: str
    others: tuple[str, ...] = ()


# Values from which a measure counts as a sign: round numbers, chosen on half of the photographs.
MIN_SEAM = 0.9
# of the darkest and the brightest of 250 photographs, 99 of 100 pixels are below 98, and above 102
MAX_DARK_LEVEL = 90.0
MIN_BRIGHT_LEVEL = 150.0
MAX_COLOURLESS = 8.0
MAX_TINT = 3.0
# a photograph without strong colours rarely has a tint of this median saturation
MIN_TINTED = 10.0
MIN_NEUTRAL = 0.5
MIN_ONE_COLOUR = 60.0
MIN_BACKGROUND = 0.7
MAX_SHARPNESS = 0.4
MIN_NOISE = 18.0
# smaller images are enlarged by more than half for the models
MIN_SHORT_SIDE_PIXELS = 150


def hints_of_image(measures: ImageMeasures, classes: ClassTable, lines: Sequence[TextLine] = ()) -> list[Hint]:
    """The hints from one image alone, and from the lines of text that were read in it."""
    found = list(_hints(measures))
    line = added_line(lines, measures.size)
    if line is not None:
        found.append(Hint("text", f"“{_shortened(line.text)}”, {_position(line, measures.size)}"))
    # the limit is of ImageNet's models; what enlarges images of other sizes is not known
    if classes.is_imagenet and min(measures.size) < MIN_SHORT_SIDE_PIXELS:
        found.append(Hint("few_pixels", f"{measures.size[0]} × {measures.size[1]} pixels"))
    return found


def _hints(measures: ImageMeasures) -> Iterator[Hint]:
    margins = dict(zip(("left", "top", "right", "bottom"), measures.margins, strict=True))
    if any(measures.margins):
        widths = ", ".join(f"{side} {max(round(100 * share), 1)} %" for side, share in margins.items() if share)
        yield Hint("border", f"plain margins: {widths}")
    for seam, course in zip(measures.seams, ("from top to bottom", "from left to right"), strict=True):
        if seam >= MIN_SEAM:
            yield Hint("collage", f"a straight edge {course}")
    low, high = measures.levels
    # first: with few levels between them, all areas look plain, and all colours faint
    if high <= MAX_DARK_LEVEL:
        yield Hint("dark", f"hardly a pixel above level {high:.0f} of 255")
    elif low >= MIN_BRIGHT_LEVEL:
        yield Hint("bright", f"hardly a pixel below level {low:.0f} of 255")
    elif measures.background >= MIN_BACKGROUND:
        # what stands before a plain background is often grey or black by nature, and the background has few levels
        yield Hint("artificial_background", "a plain background")
    else:
        yield from _filters(measures)
    if measures.sharpness <= MAX_SHARPNESS:
        yield Hint("blur", "no sharp edge anywhere")
    if measures.noise >= MIN_NOISE:
        yield Hint("noise", f"noise of {measures.noise:.0f} grey levels")


def _filters(measures: ImageMeasures) -> Iterator[Hint]:
    median, high, highest = measures.saturations
    if high <= MAX_COLOURLESS:
        yield Hint("filter", "nearly without colour")
    elif measures.tint <= MAX_TINT and median >= MIN_TINTED:
        yield Hint("filter", "a single tint")
    elif measures.neutral >= MIN_NEUTRAL and highest >= MIN_ONE_COLOUR:
        yield Hint("filter", "grey with some colour")


MAX_TEXT = 40
"""Characters of a line of text that a hint shows."""


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _position(line: TextLine, size: tuple[int, int]) -> str:
    """The place of the middle of a line in an image of this size, in words."""
    (left, top, right, bottom), (width, height) = line.box, size
    row = ("top", "middle", "bottom")[min(3 * (top + bottom) // (2 * height), 2)]
    return f"{row} {('left', 'centre', 'right')[min(3 * (left + right) // (2 * width), 2)]}"


# Between images
