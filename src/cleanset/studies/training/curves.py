"""The charts of the page of curves: by run, and by scenario with several runs in each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from cleanset.studies.training.accuracies import in_order
from cleanset.studies.training.finished import FinishedRun
from cleanset.studies.training.histories import DATA_PARTS, smoothed

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


SHARES = ("accuracy", "robust_accuracy", "mean_iou")
"""Measures between 0 and 1, whose charts end at 1 so that they can be compared."""
RUNS_IN_A_CHART = 6
"""Runs in a chart by scenario, as many as there are kinds of lines; more of them get charts of their own."""


class ChartGroup(NamedTuple):
    """Charts that belong together."""

    title: str
    """Its heading."""
    note: str
    """What the runs have in common."""
    names: Sequence[str]
    """The legend of the lines."""
    charts: Sequence[Chart]
    """The charts."""


def run_charts(runs: Sequence[FinishedRun], rows: pd.DataFrame) -> list[ChartGroup]:
    """For each run, a chart of each measure: training and validation, mean over the folds, raw and smoothed."""
    found = []
    for run in runs:
        charts = []
        for measure, values in _by_measure(rows[rows["run"] == run.name]):
            label = f"{words(measure)} of {run.name} by epoch, training and validation"
            charts.append(_chart(words(measure), label, values, by="part", names=DATA_PARTS, top=_top(measure)))
        note = f"{run.network}, {run.run.recipe}" + f", mean over {len(run.folds)} folds" * (len(run.folds) > 1)
        found.append(ChartGroup(run.name, note, DATA_PARTS, charts))
    return found


def scenario_charts(runs: Sequence[FinishedRun], rows: pd.DataFrame) -> list[ChartGroup]:
    """For each task and scenario, its runs together: charts of each measure, training and validation."""
    found = []
    for task in dict.fromkeys(each.run.task for each in runs):
        for scenario in in_order(each.run.scenario for each in runs if each.run.task == task):
            names = [each.name for each in runs if (each.run.task, each.run.scenario) == (task, scenario)]
            parts = [names[first : first + RUNS_IN_A_CHART] for first in range(0, len(names), RUNS_IN_A_CHART)]
            for number, part in enumerate(parts, 1):
                title = words(scenario) + f", {number} of {len(parts)}" * (len(parts) > 1)
                found.append(ChartGroup(title, task, part, _scenario_charts(scenario, part, rows)))
    return found


def _scenario_charts(scenario: str, names: Sequence[str], rows: pd.DataFrame) -> list[Chart]:
    charts = []
    for measure, values in _by_measure(rows[rows["run"].isin(names)]):
        for part in DATA_PARTS:
            title = f"{words(measure)}, {'training' if part == 'train' else part}"
            label = f"{title}, of runs on {words(scenario)} by epoch"
            drawn = _chart(title, label, values[values["part"] == part], by="run", names=names, top=_top(measure))
            charts += [drawn] if drawn.lines else []
    return charts


def _by_measure(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each measure: those of the first run, losses last, then those that only others have."""
    of_runs = [found["measure"].unique() for _, found in rows.groupby("run", sort=False)]
    names = dict.fromkeys(name for each in of_runs for name in sorted(each, key=lambda name: name.endswith("loss")))
    return [(name, rows[rows["measure"] == name]) for name in names]


def _top(measure: str) -> float | None:
    """The upper end of a measure's charts; None: by its values."""
    return 1.0 if measure in SHARES else None


def _chart(title: str, label: str, rows: pd.DataFrame, *, by: str, names: Sequence[str], top: float | None) -> Chart:
    """The chart of a line for each name in the column `by`: the mean over folds, faint, and smoothed."""
    lines = []
    for color, name in enumerate(names):
        # of the folds that have reached an epoch
        means = rows[rows[by] == name].groupby("epoch")["value"].mean()
        lines += [Curve(color, faint=True, values=means), Curve(color, faint=False, values=smoothed(means))]
    return chart(title, label, lines, top)


def words(name: str) -> str:
    """A name with spaces."""
    return name.replace("_", " ").replace("iou", "IoU")
