"""Cheap measures of signs that an image was modified; the thresholds are in `hints`.

All but the hash are measured on the brightness (Rec. 601) or colours of the image, reduced by a whole
factor until no side is longer than `MAX_SIDE_PIXELS` pixels; a flaw that is visible only at the
full size of a larger image is missed.
"""

from dataclasses import dataclass

import imagehash
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from scipy import ndimage

from cleanset.images.codec import decode

MAX_SIDE_PIXELS = 512
CORNER_WIDTH, CORNER_HEIGHT = 120, 48
"""Pixels of each corner that are compared between images."""

_Grey = NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one image.

    `margins`: left, top, right, bottom: share of the width or height that is plain and ends in a straight edge.
    `seams`: the straightest edge from top to bottom and from left to right, away from the outer tenths:
    the share of its length that is an edge.
    `saturation`: the 95th of 100 pixels' difference between its strongest and weakest colour, in grey levels.
    `tint`: how far colours stray from the mean colour of their brightness, in grey levels (root mean square).
    `plain_levels`: the share of pixels on the eight commonest grey levels.
    `sharpness`: the steepest edges between neighbours by those over four pixels: 0.25 for ramps, 1 for steps.
    `noise`: standard deviation of the noise, in grey levels (Immerkaer 1996, with the median).
    `letters`: the most shapes like letters in one line, and `letters_at` the middle of that line: shares
    of width and height.
    `size`: width and height in stored pixels.
    """

    margins: tuple[float, float, float, float]
    seams: tuple[float, float]
    saturation: float
    tint: float
    plain_levels: float
    sharpness: float
    noise: float
    letters: int
    letters_at: tuple[float, float]
    size: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """A perceptual hash of 64 bits and the fine detail of the four corners, for comparing images."""

    hash: NDArray[np.bool_]
    corners: tuple[NDArray[np.float32], ...]


def measure(image: Image.Image) -> tuple[Measures, Fingerprint]:
    """Measure a decoded image of any mode and size."""
    factor = -(-max(image.size) // MAX_SIDE_PIXELS)
    image = image.convert("RGB")
    small = image.reduce(factor) if factor > 1 else image
    luma = small.convert("L")
    # signed, so that differences of neighbours do not wrap around
    grey = np.asarray(luma).astype(np.int16)
    detail = _detail(luma, max(luma.size) // 40)
    saturation, tint = _colours(small)
    letters, letters_at = max(
        _longest_line(detail >= _MIN_LETTER_CONTRAST), _longest_line(detail <= -_MIN_LETTER_CONTRAST)
    )
    measures = Measures(
        margins=_margins(grey),
        seams=_seams(grey),
        saturation=saturation,
        tint=tint,
        plain_levels=_plain_levels(luma),
        sharpness=_sharpness(grey),
        noise=_noise(grey),
        letters=letters,
        letters_at=letters_at,
        size=image.size,
    )
    return measures, Fingerprint(imagehash.phash(luma).hash.ravel(), _corners(luma))


def measure_jpeg(data: bytes) -> tuple[Measures, Fingerprint]:
    """Measure the bytes of a JPEG. Raises ValueError for anything else."""
    return measure(decode(data))


# Straight edges

_MIN_STEP = 16
"""Grey levels between pixels two apart that make an edge."""
_MAX_PLAIN_DEVIATION = 6.0
"""Largest standard deviation of a plain row; JPEG leaves some noise."""
_MAX_MARGIN_SHARE = 0.3
"""Share of the width or height within which margins are looked for."""
_MIN_STRAIGHT_SHARE = 0.6
"""Share of a row's pixels that must step for a margin to end there."""


def _edges(grey: _Grey) -> NDArray[np.float64]:
    """The share of pixels where the brightness steps across a row, for each row but the first and last."""
    return np.asarray((np.abs(grey[2:] - grey[:-2]) >= _MIN_STEP).mean(axis=1))


def _margins(grey: _Grey) -> tuple[float, float, float, float]:
    height, width = grey.shape
    # only the middle of each row: the other two margins would make none plain
    rows, columns = grey[:, width // 5 : width - width // 5], grey[height // 5 : height - height // 5].T
    return _margin(columns), _margin(rows), _margin(columns[::-1]), _margin(rows[::-1])


def _margin(rows: _Grey) -> float:
    """Share of the rows before the innermost straight edge that ends a plain row; most before it are plain too."""
    count = int(len(rows) * _MAX_MARGIN_SHARE)
    plain = rows[:count].std(axis=1) <= _MAX_PLAIN_DEVIATION
    edges = _edges(rows[: count + 1])
    for end in range(len(edges), 1, -1):
        if edges[end - 1] >= _MIN_STRAIGHT_SHARE and plain[end - 1] and plain[:end].mean() >= 0.8:
            return end / len(rows)
    return 0.0


def _seams(grey: _Grey) -> tuple[float, float]:
    def straightest(rows: _Grey) -> float:
        inner = _edges(rows)[len(rows) // 10 : -(len(rows) // 10) or None]
        return float(inner.max(initial=0))

    return straightest(grey.T), straightest(grey)


# Colours


def _colours(small: Image.Image) -> tuple[float, float]:
    """`saturation` and `tint`, of the image reduced by four more: without noise and the fringes of JPEG."""
    red, green, blue = (np.asarray(band).ravel().astype(np.int16) for band in small.reduce(4).split())
    spread = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    levels = (red + 2 * green + blue) >> 4  # 64 of them
    counts = np.bincount(levels, minlength=64)
    strays = 0.0
    for band in (red, blue):
        values = band.astype(np.float64)
        strays += (values**2).sum() - (np.bincount(levels, values, 64) ** 2 / np.maximum(counts, 1)).sum()
    # rounding may leave the difference of two large sums slightly below 0
    return float(np.percentile(spread, 95)), float((max(strays, 0.0) / (2 * red.size)) ** 0.5)


def _plain_levels(luma: Image.Image) -> float:
    histogram = np.array(luma.histogram())
    return float(np.sort(histogram)[-8:].sum() / histogram.sum())


# Detail


_EDGE_SHARE = 0.0005
"""Share of the steps between neighbours that count as edges. (Steps over four pixels find each edge four times.)"""


def _sharpness(grey: _Grey) -> float:
    def steepest(reach: int) -> float:
        steps = [np.abs(way[reach:] - way[:-reach])[:, ::2] for way in (grey, grey.T)]
        counts = np.cumsum(sum(np.bincount(step.ravel(), minlength=256) for step in steps))
        return float(np.searchsorted(counts, (1 - reach * _EDGE_SHARE) * counts[-1]))

    return steepest(1) / max(steepest(4), 1.0)


def _noise(grey: _Grey) -> float:
    across = grey[:, 2:] - 2 * grey[:, 1:-1] + grey[:, :-2]
    both = across[2:] - 2 * across[1:-1] + across[:-2]
    # 6 is the norm of this kernel, 0.6745 the median of |x| for a standard normal x
    return float(np.median(np.abs(both[::2, ::2]))) / (6 * 0.6745) if both.size else 0.0


_MIN_LETTER_CONTRAST = 28
"""Grey levels between a letter and its surroundings."""
_MIN_LETTER_PIXELS = 6
"""Height of the smallest letter."""


def _longest_line(marked: NDArray[np.bool_]) -> tuple[int, tuple[float, float]]:
    """Number and middle of the longest row of shapes that are close together and of similar height."""
    labels, count = ndimage.label(marked)
    large = np.bincount(labels.ravel(), minlength=count + 1) >= _MIN_LETTER_PIXELS**2 // 3
    # label 0 is all that is not marked
    large[0] = False
    boxes = ndimage.find_objects(np.where(large, np.cumsum(large), 0).astype(np.int32)[labels])
    found = [
        (columns.start, columns.stop, rows.start, rows.stop)
        for rows, columns in boxes
        if _MIN_LETTER_PIXELS <= rows.stop - rows.start <= marked.shape[0] // 10
        and columns.stop - columns.start <= 2 * (rows.stop - rows.start)
    ]
    if not found:
        return 0, (0.5, 0.5)
    left, right, top, bottom = np.array(sorted(found)).T
    height = bottom - top
    gap, ratio = left - right[:, None], height / height[:, None]
    follows = (gap >= -1) & (gap <= height) & (np.abs(bottom - bottom[:, None]) <= 0.3 * height)
    follows &= (ratio >= 0.6) & (ratio <= 1.7)
    lengths, starts = np.ones(len(found), np.int64), left.copy()
    for place in range(1, len(found)):  # from left to right, so that what it follows is already counted
        before = np.where(follows[:place, place], lengths[:place], 0)
        last = before.argmax()
        if before[last]:
            lengths[place] += before[last]
            starts[place] = starts[last]
    end = int(lengths.argmax())
    middle = (starts[end] + right[end]) / (2 * marked.shape[1]), (top[end] + bottom[end]) / (2 * marked.shape[0])
    return int(lengths[end]), (float(middle[0]), float(middle[1]))


# For comparing images


def _corners(luma: Image.Image) -> tuple[NDArray[np.float32], ...]:
    """The fine detail of the four corners, each of mean 0 and norm 1, or zeros for an empty corner.

    In the order top left, top right, bottom left, bottom right. Empty for an image that is too small.
    """
    if luma.height < 2 * CORNER_HEIGHT or luma.width < 2 * CORNER_WIDTH:
        return ()
    detail = _detail(luma, 2).astype(np.float32)
    return tuple(
        _unit(detail[rows, columns])
        for rows in (slice(CORNER_HEIGHT), slice(-CORNER_HEIGHT, None))
        for columns in (slice(CORNER_WIDTH), slice(-CORNER_WIDTH, None))
    )


_MIN_CORNER_DETAIL = 4.0
"""Standard deviation of a corner's detail, in grey levels, below which it is taken for empty."""


def _unit(patch: NDArray[np.float32]) -> NDArray[np.float32]:
    # without its straight lines, which frames and horizons have at the same place by chance
    patch = patch - patch.mean(axis=0)
    patch -= patch.mean(axis=1, keepdims=True)
    length = float(np.sqrt((patch**2).sum()))
    return (patch / length if length >= _MIN_CORNER_DETAIL * patch.size**0.5 else np.zeros_like(patch)).ravel()


def _detail(luma: Image.Image, radius: int) -> NDArray[np.int16]:
    """The brightness of each pixel above that of its surroundings, a square of `radius` pixels to each side."""
    around = np.asarray(luma.filter(ImageFilter.BoxBlur(radius))).astype(np.int16)
    return np.asarray(luma).astype(np.int16) - around
