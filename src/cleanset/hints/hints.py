"""Hints that an image may have been modified, shown beside it. People decide.

A hint never counts as a verdict, and an image without one may be as flawed as any. No hint finds
several objects, a wrong class, a drawing, an artificial background, a small object in a large image, large
lettering, a faint or wordless watermark that only one image has, or a filter that leaves colours and many
levels of brightness.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cleanset.hints.measures import Fingerprint, Measures
from cleanset.vocabulary import Reason


@dataclass(frozen=True, slots=True)
class Hint:
    """A possible reason to reject an image, and the sign of it in words."""

    kind: Reason
    text: str


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Values from which a measure counts as a sign: round numbers, chosen on 75 photographs and half of the sample."""

    seam: float = 0.95
    saturation: float = 16.0
    tint: float = 2.5
    plain_levels: float = 0.55
    sharpness: float = 0.4
    noise: float = 15.0
    letters: int = 9
    short_side: int = 150
    """Short side in pixels; smaller images are enlarged by more than half for the models."""
    hash_distance: int = 8
    """Number of differing bits, of 64."""
    corner_correlation: float = 0.3


THRESHOLDS = Thresholds()


def hints_of_image(measures: Measures, thresholds: Thresholds = THRESHOLDS) -> list[Hint]:
    """The hints from one image alone."""
    found = list(_hints(measures, thresholds))
    if min(measures.size) < thresholds.short_side:
        found.append(Hint("too_small", f"{measures.size[0]} × {measures.size[1]} pixels"))
    return found


def _hints(measures: Measures, limits: Thresholds) -> Iterator[Hint]:
    margins = dict(zip(("left", "top", "right", "bottom"), measures.margins, strict=True))
    # one plain strip with a straight edge is as often a floor or a sky
    if (margins["left"] and margins["right"]) or (margins["top"] and margins["bottom"]):
        widths = ", ".join(f"{side} {max(round(100 * share), 1)} %" for side, share in margins.items() if share)
        yield Hint("border", f"plain margins: {widths}")
    for seam, course in zip(measures.seams, ("from top to bottom", "from left to right"), strict=True):
        if seam >= limits.seam:
            yield Hint("collage", f"a straight edge {course}")
    if measures.saturation <= limits.saturation:
        yield Hint("filter", "nearly without colour")
    elif measures.tint <= limits.tint:
        yield Hint("filter", "a single tint")
    if measures.plain_levels >= limits.plain_levels:
        yield Hint("filter", "few levels of brightness")
    if measures.sharpness <= limits.sharpness:
        yield Hint("blur", "no sharp edge anywhere")
    if measures.noise >= limits.noise:
        yield Hint("noise", f"noise of {measures.noise:.0f} grey levels")
    if measures.letters >= limits.letters:
        yield Hint("text", f"{measures.letters} shapes like letters in a line, {_position(*measures.letters_at)}")


def _position(x: float, y: float) -> str:
    """The place of a point, given in shares of width and height, in words."""
    row = ("top", "middle", "bottom")[min(int(3 * y), 2)]
    return f"{row} {('left', 'centre', 'right')[min(int(3 * x), 2)]}"


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
    hashes = np.stack([fingerprints[name].hash for name in names])
    is_same = (hashes[:, None] != hashes[None]).sum(axis=2) <= thresholds.hash_distance
    for name, others in _others(names, is_same):
        found[name].append(Hint("duplicate", f"nearly the same as {others}"))
    measured = [place for place, name in enumerate(names) if fingerprints[name].corners]
    with_corners = [names[place] for place in measured]
    for corner, place in enumerate(CORNERS):
        if with_corners:
            details = np.stack([fingerprints[name].corners[corner] for name in with_corners])
            is_repeated = details @ details.T >= thresholds.corner_correlation
            is_repeated &= ~is_same[np.ix_(measured, measured)]  # for a duplicate no further hint is needed
            for name, others in _others(with_corners, is_repeated):
                found[name].append(Hint("watermark", f"the same detail {place} as in {others}"))
    return found


def _others(names: Sequence[str], related: NDArray[np.bool_]) -> Iterator[tuple[str, str]]:
    """Yield each name that is related to others, with these in words."""
    for place, name in enumerate(names):
        others = sorted(other for other, is_related in zip(names, related[place], strict=True) if is_related)
        others = [other for other in others if other != name]
        if others:
            yield name, others[0] if len(others) == 1 else f"{others[0]} and {len(others) - 1} more"
