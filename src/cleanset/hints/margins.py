"""The plain margins of a border, and straight edges, in the brightness of an image."""

import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.int16]
"""Brightness by row and column, in grey levels; signed, so that differences do not wrap around."""

_MIN_STEP = 16
"""Grey levels between pixels two apart that make an edge."""
_MAX_PLAIN_DEVIATION = 6.0
"""Largest standard deviation of a plain row; JPEG leaves some noise."""
_MAX_MARGIN_SHARE = 0.3
"""Share of the width or height within which margins are looked for."""
_MIN_STRAIGHT_SHARE = 0.6
"""Share of a row's pixels that must step for a margin to end there."""
_MAX_UNEVEN_DEVIATION = 12.0
"""Largest standard deviation of the last rows of a margin, as far as `_MAX_UNEVEN_PIXELS` inside: lines of a frame."""
_MAX_UNEVEN_PIXELS = 3
_MAX_SOFT_PIXELS = 2
"""Rows between a margin and the photograph that are a mixture of both: JPEG and scaling soften edges."""
_MIN_WIDER_PIXELS = 2
"""Width of the wider of two opposite margins: on the photographs, lines of one pixel were as often no border."""


def straight_shares(grey: Grey) -> NDArray[np.float64]:
    """The share of pixels where the brightness steps across a row, for each row but the first and last."""
    return np.asarray((np.abs(grey[2:] - grey[:-2]) >= _MIN_STEP).mean(axis=1))


def border(grey: Grey) -> tuple[int, int, int, int]:
    """Pixels of a border at the left, top, right and bottom, its soft edges included; all 0 without one.

    A border has margins on two opposite sides: one plain strip with a straight edge is as often a floor or a sky. Where
    it has them, the margins of the other two sides belong to it.
    """
    height, width = grey.shape
    # only the middle of each row: the other two margins would make none plain
    rows, columns = grey[:, width // 5 : width - width // 5], grey[height // 5 : height - height // 5].T
    left, top, right, bottom = _margin(columns), _margin(rows), _margin(columns[::-1]), _margin(rows[::-1])
    is_border = any(min(pair) and max(pair) >= _MIN_WIDER_PIXELS for pair in ((left, right), (top, bottom)))
    return (left, top, right, bottom) if is_border else (0, 0, 0, 0)


def _margin(rows: Grey) -> int:
    """Number of rows to the innermost straight edge that ends a plain row; most before it are plain too."""
    count = int(len(rows) * _MAX_MARGIN_SHARE)
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
    """The end of a margin, with the rows that lie, all along, between its brightness and the row that follows."""
    following, level = rows[end : end + _MAX_SOFT_PIXELS + 1], float(rows[end - 1].mean())
    away = np.sign(following[1:] - level) * np.diff(following, axis=0)
    is_soft = (away >= _MIN_STEP).mean(axis=1) >= _MIN_STRAIGHT_SHARE
    return end + (len(is_soft) if is_soft.all() else int(is_soft.argmin()))
