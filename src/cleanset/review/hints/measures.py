"""The computations behind the hints at an image: borders, straight edges, colours, background, sharpness, noise.

What a border, a seam or a plain area is, is decided here; the limit of a single measured value is in `kinds`. All are
computed on the brightness (Rec. 601) or colours of the image, reduced by an integer factor until no side is longer than
`MAX_SIDE_PIXELS` pixels; a flaw visible only at the full size of a larger image is missed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.fingerprints import reduction
from cleanset.statistics.basics import Floats, Singles

Grey = NDArray[np.int16]
"""Brightness by row and column, in grey levels; signed, so that differences do not wrap around."""

# grey levels between pixels two apart that make an edge
_MIN_STEP = 16
# largest standard deviation of a plain row; JPEG leaves some noise
_MAX_PLAIN_DEVIATION = 6.0
# share of the width or height within which margins are looked for
MAX_MARGIN_SHARE = 0.3
# share of a row's pixels that must step for a margin to end there
_MIN_STRAIGHT_SHARE = 0.6
# largest standard deviation of the last rows of a margin, as far as `_MAX_UNEVEN_PIXELS` inside: lines of a frame
_MAX_UNEVEN_DEVIATION = 12.0
_MAX_UNEVEN_PIXELS = 3
# rows between a margin and the photograph that are a mixture of both: JPEG and scaling soften edges
_MAX_SOFT_PIXELS = 2
# width of the wider of two opposite margins, if another side has none: lines of one pixel were as often no border
_MIN_WIDER_PIXELS = 2


def straight_shares(grey: Grey) -> Floats:
    """The share of pixels where the brightness steps across a row, for each row but the first and last."""
    return np.asarray((np.abs(grey[2:] - grey[:-2]) >= _MIN_STEP).mean(axis=1))


def border(grey: Grey) -> tuple[int, int, int, int]:
    """Pixels of a border at the left, top, right and bottom, its soft edges included; all 0 without one.

    A border has margins on two opposite sides, or lines on all four: one plain strip with a straight edge is as often a
    floor or a sky. Margins of the other two sides, if there are any, belong to it. Something is inside it: in an
    image of a few pixels, the margins of opposite sides may meet.
    """
    height, width = grey.shape
    # only the middle of each row: the other two margins would make none plain
    rows = grey[:, width // 5 : width - width // 5]
    columns = grey[height // 5 : height - height // 5].T
    left = _margin(columns)
    top = _margin(rows)
    right = _margin(columns[::-1])
    bottom = _margin(rows[::-1])
    is_border = any(min(pair) and max(pair) >= _MIN_WIDER_PIXELS for pair in ((left, right), (top, bottom)))
    is_border |= min(left, top, right, bottom) > 0
    is_border &= left + right < width and top + bottom < height
    return (left, top, right, bottom) if is_border else (0, 0, 0, 0)


def _margin(rows: Grey) -> int:
    """Number of rows to the innermost straight edge that ends a plain row; most before it are plain too."""
    count = int(len(rows) * MAX_MARGIN_SHARE)
    plain = rows[:count].std(axis=1) <= _MAX_PLAIN_DEVIATION
    edges = straight_shares(rows[: count + 1])
    for end in range(len(edges), 0, -1):
        if edges[end - 1] >= _MIN_STRAIGHT_SHARE and plain[end - 1] and plain[:end].mean() >= 0.8:
            return _soft_end(rows, _uneven_end(rows, end))
    return 0


def _uneven_end(rows: Grey, end: int) -> int:
    """The end of a margin that is plain up to `end`, with further rows that are nearly plain up to a straight edge."""
    following = rows[end : end + _MAX_UNEVEN_PIXELS + 2]
    edges = straight_shares(following)
    is_last = (edges >= _MIN_STRAIGHT_SHARE) & (following[: len(edges)].std(axis=1) <= _MAX_UNEVEN_DEVIATION)
    return end + int(np.flatnonzero(is_last)[-1]) + 1 if is_last.any() else end


def _soft_end(rows: Grey, end: int) -> int:
    """The end of a margin, with the rows that are, all along, between its brightness and the row that follows."""
    following = rows[end : end + _MAX_SOFT_PIXELS + 1]
    level = float(rows[end - 1].mean())
    away = np.sign(following[1:] - level) * np.diff(following, axis=0)
    is_soft = (away >= _MIN_STEP).mean(axis=1) >= _MIN_STRAIGHT_SHARE
    return end + (len(is_soft) if is_soft.all() else int(is_soft.argmin()))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedImage:
    """An image as all measures need it."""

    size: tuple[int, int]
    """Width and height in stored pixels."""

    small: Image.Image
    """The image in RGB, with no side longer than MAX_SIDE_PIXELS."""

    grey: Grey
    """Its brightness."""

    margins: tuple[int, int, int, int]
    """Pixels of a border at the left, top, right and bottom of `small`, as `border` gives them."""

    inside: Image.Image
    """The part of `small` inside its margins."""


def prepared(image: Image.Image) -> PreparedImage:
    """A decoded image of any mode and size, prepared for being measured."""
    factor = reduction(image.size)
    rgb = image.convert("RGB")
    small = rgb.reduce(factor) if factor > 1 else rgb
    grey = np.asarray(small.convert("L")).astype(np.int16)
    left, top, right, bottom = border(grey)
    return PreparedImage(
        size=image.size,
        small=small,
        grey=grey,
        margins=(left, top, right, bottom),
        inside=small.crop((left, top, small.width - right, small.height - bottom)),
    )


def size_of_measured(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height at which an image of this size is measured."""
    factor = reduction(size)
    return -(-size[0] // factor), -(-size[1] // factor)


# levels of a colour between pixels two apart that make a seam: two images may be of nearly equal brightness
_MIN_SEAM_STEP = 8


def seams(inside: Image.Image) -> tuple[float, float]:
    """`Collage.seams` of an image without its margins, whose ends would be taken for seams."""
    colours = np.stack([np.asarray(band).astype(np.int16) for band in inside.split()])

    def straightest(rows: NDArray[np.int16]) -> float:
        if rows.shape[1] < 11:
            return 0.0
        outer = max(rows.shape[1] // 10 - 3, 0)
        steps = np.abs(np.diff(rows, axis=1)).max(axis=0)
        shares = _steps(rows, steps), _lines(rows[1], steps)
        return max(float(each[outer : len(each) - outer].max(initial=0)) for each in shares)

    return straightest(np.ascontiguousarray(colours.swapaxes(1, 2))), straightest(colours)


# standard deviation below which an image is too plain to have halves
_MIN_CONTRAST = 10.0


def asymmetry(inside: Image.Image) -> float:
    """`Collage.asymmetry` of an image without its margins."""
    grey = np.asarray(inside.convert("L")).astype(np.float32)
    return min(_asymmetry(grey), _asymmetry(grey.T))


def _asymmetry(rows: Singles) -> float:
    """The root mean square of the difference from the mirrored rows, by their standard deviation."""
    # a horizon, which is the same in all columns, does not count as a detail
    details = rows - rows.mean(axis=1, keepdims=True)
    contrast = float(details.std())
    return float(np.sqrt(np.mean((details - details[:, ::-1]) ** 2))) / contrast if contrast >= _MIN_CONTRAST else 1.0


def _steps(rows: NDArray[np.int16], steps: NDArray[np.int16]) -> Floats:
    """By row but for three at each end, the share of pixels where colours (bands x rows x columns) step at once.

    `steps`: the largest of each pixel to the next row.
    """
    # over two rows, because reducing an image may spread a seam over one; texture steps as much next to it
    across = np.abs(rows[:, 4:-2] - rows[:, 2:-4]).max(axis=0)
    beside = np.maximum.reduce([steps[:-5], steps[1:-4], steps[4:-1], steps[5:]])
    return np.asarray(((across >= _MIN_SEAM_STEP) & (across > beside)).mean(axis=1))


def _lines(green: NDArray[np.int16], steps: NDArray[np.int16]) -> Floats:
    """The same for the pixels of a thin line between two images, which both differ from it in one direction."""
    # in green alone, since such lines are white, black or grey
    line = green[3:-3]
    found = np.zeros_like(line)
    for before, after in ((green[1:-5], green[5:-1]), (green[:-6], green[6:])):
        one = line - before
        other = line - after
        # the smaller of the two where both are positive or both negative, else nothing above 0
        found = np.maximum.reduce([found, np.minimum(one, other), -np.maximum(one, other)])
    beside = np.maximum(steps[:-5], steps[5:])
    return np.asarray(((found >= _MIN_SEAM_STEP) & (found > beside)).mean(axis=1))


# levels between the colours of a grey pixel: JPEG changes them a little
_MAX_NEUTRAL = 3


def colours(small: Image.Image) -> tuple[tuple[float, float, float], float, float]:
    """`saturations`, `neutral` and `tint` of `Filter`, on the image reduced by four: without noise or fringes."""
    red, green, blue = (np.asarray(band).ravel().astype(np.int16) for band in small.reduce(4).split())
    spread = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    levels = (red + 2 * green + blue) >> 4  # 64 of them
    # black and white are neutral in any photograph
    is_between = (levels >= 6) & (levels < 58)
    neutral = float((is_between & (spread <= _MAX_NEUTRAL)).sum() / max(is_between.sum(), 1))
    counts = np.bincount(levels, minlength=64)
    strays = 0.0
    for band in (red, blue):
        values = band.astype(np.float64)
        strays += (values**2).sum() - (np.bincount(levels, values, 64) ** 2 / np.maximum(counts, 1)).sum()
    median, high, highest = np.percentile(spread, (50, 95, 99)).tolist()
    # rounding may leave the difference of two large sums slightly below 0
    return (median, high, highest), neutral, float((max(strays, 0.0) / (2 * red.size)) ** 0.5)


# largest difference of neighbours in a plain area, in levels of each colour; photographs have more noise
_MAX_PLAIN_STEP = 3
# levels of each colour between a background and its usual colour: shadows and lights change it
_MAX_COLOUR_DISTANCE = 16
# one pixel inside: the outermost is often a remainder of a frame
_SIDES = (np.s_[1], np.s_[-2], np.s_[:, 1], np.s_[:, -2])


def background(inside: Image.Image) -> float:
    """`PlainBackground.background` of an image without its margins, reduced by two more: without the noise of JPEG."""
    pixels = np.asarray(inside.reduce(2)).astype(np.int16)
    if min(pixels.shape[:2]) < 4:
        return 0.0
    plain = np.ones(pixels.shape[:2], np.bool_)
    for of_axis, steps in ((plain, np.diff(pixels, axis=0)), (plain.T, np.diff(pixels, axis=1).swapaxes(0, 1))):
        is_even = np.abs(steps).max(axis=2) <= _MAX_PLAIN_STEP
        of_axis[1:] &= is_even
        of_axis[:-1] &= is_even
    is_plain, around = ([array[side] for side in _SIDES] for array in (plain, pixels))
    usual = np.concatenate([colours[of] for colours, of in zip(around, is_plain, strict=True)])
    if not len(usual):
        return 0.0
    colour = np.median(usual, axis=0)
    near = [np.abs(colours - colour).max(axis=1) <= _MAX_COLOUR_DISTANCE for colours in around]
    return float(np.mean([(of & each).mean() for of, each in zip(is_plain, near, strict=True)]))


SHARPNESS_OF_RAMPS = 0.25
"""The sharpness of an image whose edges are all ramps of four pixels or more."""
# share of the steps between neighbours that count as edges. (Steps over four pixels find each edge four times.)
_EDGE_SHARE = 0.0005


def sharpness(grey: Grey) -> float:
    """`Blur.sharpness` of the brightness of an image."""

    def steepest(reach: int) -> float:
        steps = [np.abs(way[reach:] - way[:-reach])[:, ::2] for way in (grey, grey.T)]
        counts = np.cumsum(sum(np.bincount(step.ravel(), minlength=256) for step in steps))
        return float(np.searchsorted(counts, (1 - reach * _EDGE_SHARE) * counts[-1]))

    return steepest(1) / max(steepest(4), 1.0)


def noise(grey: Grey) -> float:
    """`Noise.noise` of the brightness of an image."""
    across = grey[:, 2:] - 2 * grey[:, 1:-1] + grey[:, :-2]
    both = across[2:] - 2 * across[1:-1] + across[:-2]
    # 6 is the norm of this kernel, 0.6745 the median of |x| for a standard normal x
    return float(np.median(np.abs(both[::2, ::2]))) / (6 * 0.6745) if both.size else 0.0
