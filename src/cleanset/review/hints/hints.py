"""Hints that an image may have been modified, shown beside it. People decide.

A hint never counts as a verdict, and an image without one may be as flawed as any. No hint finds
several objects, a wrong class, a drawing, a small object in a large image, text away from the edges or
written upwards, a wordless watermark that only one image has, or a filter that leaves colours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cleanset.review.hints.measures import Fingerprint, Measures
from cleanset.review.hints.text import TextLine, added_line
from cleanset.vocabulary import Reason

Kind = Reason | Literal["few_pixels"]
"""An image of few pixels need not have a flaw: its object may fill it."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A sign of a flaw, and the sign in words. `others`: the images that it compares with.

    `kind`: the reason to reject the image that the sign speaks for, or few_pixels.
    """

    kind: Kind
    text: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Values from which a measure counts as a sign: round numbers, chosen on half of the photographs."""

    seam: float = 0.95
    saturation: float = 16.0
    tint: float = 2.5
    plain_levels: float = 0.55
    background: float = 0.5
    sharpness: float = 0.4
    noise: float = 15.0
    short_side: int = 150
    """Short side in pixels; smaller images are enlarged by more than half for the models."""
    hash_distance: int = 60
    """Number of differing bits, of 256, in the most similar orientation."""
    corner_correlation: float = 0.3


THRESHOLDS = Thresholds()


def hints_of_image(
    measures: Measures, lines: Sequence[TextLine] = (), thresholds: Thresholds = THRESHOLDS
) -> list[Hint]:
    """The hints from one image alone, and from the lines of text that were read in it."""
    found = list(_hints(measures, thresholds))
    line = added_line(lines, measures.size)
    if line is not None:
        found.append(Hint("text", f"“{_shortened(line.text)}”, {_position(line, measures.size)}"))
    if min(measures.size) < thresholds.short_side:
        found.append(Hint("few_pixels", f"{measures.size[0]} × {measures.size[1]} pixels"))
    return found


def _hints(measures: Measures, limits: Thresholds) -> Iterator[Hint]:
    margins = dict(zip(("left", "top", "right", "bottom"), measures.margins, strict=True))
    if any(measures.margins):
        widths = ", ".join(f"{side} {max(round(100 * share), 1)} %" for side, share in margins.items() if share)
        yield Hint("border", f"plain margins: {widths}")
    for seam, course in zip(measures.seams, ("from top to bottom", "from left to right"), strict=True):
        if seam >= limits.seam:
            yield Hint("collage", f"a straight edge {course}")
    if measures.background >= limits.background:
        # what stands before a plain background is often grey or black by nature, and the background has few levels
        yield Hint("artificial_background", "a plain background")
    else:
        yield from _filters(measures, limits)
    if measures.sharpness <= limits.sharpness:
        yield Hint("blur", "no sharp edge anywhere")
    if measures.noise >= limits.noise:
        yield Hint("noise", f"noise of {measures.noise:.0f} grey levels")


def _filters(measures: Measures, limits: Thresholds) -> Iterator[Hint]:
    if measures.saturation <= limits.saturation:
        yield Hint("filter", "nearly without colour")
    elif measures.tint <= limits.tint:
        yield Hint("filter", "a single tint")
    if measures.plain_levels >= limits.plain_levels:
        yield Hint("filter", "few levels of brightness")


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

CORNERS = ("top left", "top right", "bottom left", "bottom right")


def hints_between_images(
    fingerprints: Mapping[str, Fingerprint], thresholds: Thresholds = THRESHOLDS
) -> dict[str, list[Hint]]:
    """The hints from comparing images, by image id: near-duplicates and repeated corners."""
    names = list(fingerprints)
    found: dict[str, list[Hint]] = {name: [] for name in names}
    if len(names) < 2:
        return found
    is_same = _distances([fingerprints[name].hashes for name in names]) <= thresholds.hash_distance
    for name, others in _others(names, is_same):
        found[name].append(Hint("duplicate", f"nearly the same as {_in_words(others)}", others))
    measured = [place for place, name in enumerate(names) if fingerprints[name].corners]
    with_corners = [names[place] for place in measured]
    for corner, place in enumerate(CORNERS):
        if with_corners:
            details = np.stack([fingerprints[name].corners[corner] for name in with_corners])
            is_repeated = details @ details.T >= thresholds.corner_correlation
            is_repeated &= ~is_same[np.ix_(measured, measured)]  # for a duplicate no further hint is needed
            for name, others in _others(with_corners, is_repeated):
                found[name].append(Hint("watermark", f"the same detail {place} as in {_in_words(others)}", others))
    return found


def _distances(hashes: Sequence[NDArray[np.bool_]]) -> NDArray[np.float32]:
    """Number of differing bits of every pair of images, one of them turned or mirrored so that it is smallest."""
    signs = 2 * np.stack(hashes).astype(np.float32) - 1
    stored = signs[:, 0]
    # the product of signs is the number of equal bits less that of different ones
    differing = (signs.shape[2] - np.einsum("ib,job->ijo", stored, signs, optimize=True).max(axis=2)) / 2
    return np.asarray(np.minimum(differing, differing.T), np.float32)


def _others(names: Sequence[str], related: NDArray[np.bool_]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name that is related to others, with these, sorted."""
    for place, name in enumerate(names):
        others = sorted(other for other, is_related in zip(names, related[place], strict=True) if is_related)
        others = [other for other in others if other != name]
        if others:
            yield name, tuple(others)


def _in_words(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
