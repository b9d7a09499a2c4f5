"""Charts of curves by epoch: their ticks, and the points of their lines in SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

PLOT_LEFT = 34.0
PLOT_RIGHT = 296.0
PLOT_TOP = 8.0
PLOT_BOTTOM = 112.0
"""The plot's sides within a chart of 300 x 142."""
STEPS = (1, 2, 2.5, 5, 10)
"""Distances between ticks, times a power of ten."""
MAX_POINTS = 300
"""Points of a polyline; a longer history is thinned, its first and last point kept."""


class Curve(NamedTuple):
    """A line of a chart."""

    color: int
    """Its place among the colors."""
    faint: bool
    """Whether it is faint, behind the others."""
    values: "pd.Series[float]"
    """Values by epoch."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart ready to draw."""

    title: str
    """Its caption."""
    label: str
    """Its content in words, for screen readers."""
    ticks: Sequence[tuple[float, str]]
    """Height and text of each tick."""
    first: int
    """The first epoch."""
    last: int
    """The last epoch."""
    lines: Sequence[tuple[int, bool, str]]
    """Color, whether it is faint, and points of each line."""


def chart(title: str, label: str, curves: Sequence[Curve], highest: float | None = None) -> Chart:
    """The chart of curves from 0 to `highest`, or to a round number above the largest value.

    Values that are not finite break no line: they are left out. A chart without a value has ticks and no lines.
    """
    finite = [each._replace(values=each.values[np.isfinite(each.values)]) for each in curves]
    kept = [each for each in finite if len(each.values)]
    top = max((float(each.values.max()) for each in kept), default=0.0)
    step = tick_step(top if highest is None else highest)
    limit = step * max(1, math.ceil(top / step - 1e-9)) if highest is None else highest
    epochs = [int(epoch) for each in kept for epoch in each.values.index] or [0]
    first = min(epochs)
    last = max(epochs)
    lines = [
        (each.color, each.faint, _points(each.values, first, last, limit))
        for each in sorted(kept, key=lambda one: not one.faint)
    ]
    heights = [step * place for place in range(round(limit / step) + 1)]
    ticks = [(round(PLOT_BOTTOM - (PLOT_BOTTOM - PLOT_TOP) * value / limit, 1), f"{value:g}") for value in heights]
    return Chart(title=title, label=label, ticks=ticks, first=first, last=last, lines=lines)


def tick_step(largest: float) -> float:
    """A round distance between ticks, with two to four of them up to `largest`."""
    if largest <= 0:
        return 1.0
    rough = largest / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in STEPS if step * power >= rough * (1 - 1e-9))


def _points(values: "pd.Series[float]", first: int, last: int, limit: float) -> str:
    if len(values) > MAX_POINTS:
        values = values.iloc[np.unique(np.linspace(0, len(values) - 1, MAX_POINTS).round().astype(int))]
    across = (values.index.to_numpy("float64") - first) / max(1, last - first)
    heights = PLOT_BOTTOM - (PLOT_BOTTOM - PLOT_TOP) * np.minimum(values.to_numpy() / limit, 1)
    points = [
        f"{left:.1f},{down:.1f}"
        for left, down in zip(PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * across, heights, strict=True)
    ]
    # a line needs two points: one epoch is drawn as a short dash
    return " ".join(points if len(points) > 1 else [points[0], f"{PLOT_LEFT + 6:.1f},{points[0].partition(',')[2]}"])
