"""The charts of the page of curves: by run, and by scenario with several runs in each."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from cleanset.studies.training.accuracies import in_order
from cleanset.studies.training.charts import Chart, Curve, chart
from cleanset.studies.training.finished import FinishedRun
from cleanset.studies.training.histories import DATA_PARTS, smoothed

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
