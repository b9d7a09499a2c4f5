"""Curves of training as polylines of a chart: scales, ticks and points, which the pages draw as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LEFT, RIGHT, TOP, BOTTOM = 34.0, 296.0, 8.0, 112.0
"""The plot's sides within a chart of 300 x 132."""
STEPS = (1, 2, 2.5, 5, 10)
"""Distances between ticks, times a power of ten."""
MAX_POINTS = 300
"""Points of a polyline; a longer history is thinned, its first and last point kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A line of a chart: its name, its place among the colors, and whether it is drawn faintly, behind the others."""

    name: str
    color: int
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart ready to draw: ticks as (height, text), the first and last x, lines as (color, faint, points)."""

    title: str
    label: str
    ticks: Sequence[tuple[float, str]]
    first: int
    last: int
    lines: Sequence[tuple[int, bool, str]]


def chart(title: str, label: str, curves: Sequence[Curve], highest: float | None = None) -> Chart:
    """The chart of curves from 0 to `highest`, or to a round number above the largest value.

    Values that are not finite break no line: they are left out. A chart without a value has ticks and no lines.
    """
    kept = [(each, np.isfinite(each.y)) for each in curves]
    top = max((float(each.y[finite].max()) for each, finite in kept if finite.any()), default=0.0)
    step = tick_step(highest if highest is not None else top)
    limit = highest if highest is not None else step * max(1, math.ceil(top / step - 1e-9))
    xs = [each.x[finite] for each, finite in kept if finite.any()]
    first, last = (min(float(x.min()) for x in xs), max(float(x.max()) for x in xs)) if xs else (0.0, 0.0)
    lines = [
        (each.color, each.faint, _points(each.x[finite], each.y[finite], (first, last), limit))
        for each, finite in sorted(kept, key=lambda one: not one[0].faint)
        if finite.any()
    ]
    heights = [step * place for place in range(round(limit / step) + 1)]
    ticks = [(round(BOTTOM - (BOTTOM - TOP) * value / limit, 1), f"{value:g}") for value in heights]
    return Chart(title, label, ticks, int(first), int(last), lines)


def tick_step(largest: float) -> float:
    """A round distance between ticks, with two to four of them up to `largest`."""
    if largest <= 0:
        return 1.0
    rough = largest / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in STEPS if step * power >= rough * (1 - 1e-9))


def _points(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], ends: tuple[float, float], limit: float) -> str:
    if len(x) > MAX_POINTS:
        kept = np.unique(np.linspace(0, len(x) - 1, MAX_POINTS).round().astype(int))
        x, y = x[kept], y[kept]
    width = ends[1] - ends[0]
    across = (x - ends[0]) / width if width else np.zeros(len(x))
    found = zip(LEFT + (RIGHT - LEFT) * across, BOTTOM - (BOTTOM - TOP) * np.minimum(y / limit, 1), strict=True)
    points = [f"{left:.1f},{down:.1f}" for left, down in found]
    # a line needs two points: one epoch is drawn as a short dash
    return " ".join(points if len(points) > 1 else [points[0], f"{LEFT + 6:.1f},{points[0].partition(',')[2]}"])
