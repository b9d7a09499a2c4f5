"""The lines of accuracy over coverage on pages: a model's points, and its accuracies at 80 % and 100 % coverage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.coverage import CURVE_POINTS, AtCoverage, at_coverage, ranked

REPORTED = 0.8
"""The coverage that Unrestricted Adversarial Examples reports beside the full one."""


@dataclass(frozen=True, slots=True)
class CoverageLine:
    """A model on some images: its accuracy at 80 % coverage by both rankings, and at 100 %.

    `points`: coverage and accuracy, 0 to 1, of the most confident image, of the two most confident ones, and so on;
    at most CURVE_POINTS of them, and equal accuracies in between left out.
    """

    name: str
    images: int
    plain: AtCoverage
    as_published: AtCoverage
    full: AtCoverage
    points: tuple[tuple[float, float], ...]


def coverage_line(name: str, confidence: Floats, correct: Flags, names: Sequence[str]) -> CoverageLine:
    """The line of a model; `names` break ties, the lower first. Raises CleansetError as `coverage.covered` does."""
    found = [
        at_coverage(confidence, correct, names, REPORTED, ranking=ranking) for ranking in ("plain", "as_published")
    ]
    full = at_coverage(confidence, correct, names, 1.0)
    counts = np.arange(1, len(correct) + 1)
    accuracies = np.cumsum(correct[ranked(confidence, names)]) / counts
    points = list(zip((counts / len(correct)).tolist(), accuracies.tolist(), strict=True))
    return CoverageLine(
        name=name,
        images=len(correct),
        plain=found[0],
        as_published=found[1],
        full=full,
        points=tuple(corner_points(limited_points(points))),
    )


def limited_points(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most CURVE_POINTS of the points of a line, evenly spread, with its ends."""
    last = len(points) - 1
    shown = min(len(points), CURVE_POINTS)
    return [points[place * last // max(shown - 1, 1)] for place in range(shown)]


def corner_points(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a line without those in the middle of a level part, which it passes anyway."""
    last = len(points) - 1
    return [
        point
        for place, point in enumerate(points)
        if place in (0, last) or not points[place - 1][1] == point[1] == points[place + 1][1]
    ]
