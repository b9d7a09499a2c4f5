"""The report of a training study: runs, curves as SVG, EX1 beside EX2, EX3; pages that open without a server."""

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.csv_files import read_frame
from cleanset.errors import CleansetError
from cleanset.files import replacing, write_text
from cleanset.report.pages import page_environment
from cleanset.studies.attacks.page import TEMPLATES as ATTACK_TEMPLATES
from cleanset.studies.robustness.pages import TEMPLATES as ROBUSTNESS_TEMPLATES
from cleanset.studies.robustness.scenarios.params import ORIGINAL
from cleanset.studies.training.experiments import Summary, in_order
from cleanset.studies.training.finished import DATA_PARTS, SMOOTHING, FinishedRun, history_rows, smoothed
from cleanset.studies.training.segmentation.measures import BACKGROUND_CLASS, SHEET_COLUMNS
from cleanset.studies.training.study import TrainingStudy
from cleanset.validation import join_names

PLOT_LEFT, PLOT_RIGHT, PLOT_TOP, PLOT_BOTTOM = 34.0, 296.0, 8.0, 112.0
"""The plot's sides within a chart of 300 x 132."""
STEPS = (1, 2, 2.5, 5, 10)
"""Distances between ticks, times a power of ten."""
MAX_POINTS = 300
"""Points of a polyline; a longer history is thinned, its first and last point kept."""


class Curve(NamedTuple):
    """A line of a chart: its place among the colors, whether it is faint, behind the others, and values by epoch."""

    color: int
    faint: bool
    values: "pd.Series[float]"


class Chart(NamedTuple):
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
    finite = [each._replace(values=each.values[np.isfinite(each.values)]) for each in curves]
    kept = [each for each in finite if len(each.values)]
    top = max((float(each.values.max()) for each in kept), default=0.0)
    step = tick_step(top if highest is None else highest)
    limit = step * max(1, math.ceil(top / step - 1e-9)) if highest is None else highest
    epochs = [int(epoch) for each in kept for epoch in each.values.index] or [0]
    first, last = min(epochs), max(epochs)
    lines = [
        (each.color, each.faint, _points(each.values, first, last, limit))
        for each in sorted(kept, key=lambda one: not one.faint)
    ]
    heights = [step * place for place in range(round(limit / step) + 1)]
    ticks = [(round(PLOT_BOTTOM - (PLOT_BOTTOM - PLOT_TOP) * value / limit, 1), f"{value:g}") for value in heights]
    return Chart(title, label, ticks, first, last, lines)


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


TEMPLATES = Path(__file__).parent / "templates"
PAGES = {
    "index.html": "Runs",
    "curves.html": "Curves",
    "experiments.html": "EX1 beside EX2",
    "segmentation.html": "EX3: segmentation",
}
"""The pages by file name, with their titles."""
# measures between 0 and 1, whose charts end at 1 so that they can be compared
SHARES = ("accuracy", "robust_accuracy", "mean_iou")
# numbers of runs trained on fewer images show how a study works, not what recipes give: it is called a miniature
MINIATURE = 10_000
# as many runs in a chart by scenario as there are kinds of lines; more of them get charts of their own
RUNS_IN_A_CHART = 6


class ChartGroup(NamedTuple):
    """Charts that belong together, with a legend of the lines in them."""

    title: str
    note: str
    names: Sequence[str]
    charts: Sequence[Chart]


def run_charts(runs: Sequence[FinishedRun], rows: pd.DataFrame) -> list[ChartGroup]:
    """For each run, a chart of each measure: training and validation, mean over the folds, raw and smoothed."""
    found = []
    for run in runs:
        charts = []
        for measure, values in _by_measure(rows[rows["run"] == run.name]):
            label = f"{words(measure)} of {run.name} by epoch, training and validation"
            charts.append(_chart(words(measure), label, measure, values, "part", DATA_PARTS))
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
            drawn = _chart(title, label, measure, values[values["part"] == part], "run", names)
            charts += [drawn] if drawn.lines else []
    return charts


def _by_measure(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each measure: those of the first run, losses last, then those that only others have."""
    of_runs = [found["measure"].unique() for _, found in rows.groupby("run", sort=False)]
    names = dict.fromkeys(name for each in of_runs for name in sorted(each, key=lambda name: name.endswith("loss")))
    return [(name, rows[rows["measure"] == name]) for name in names]


def _chart(title: str, label: str, measure: str, rows: pd.DataFrame, by: str, names: Sequence[str]) -> Chart:
    """The chart of a line for each name in the column `by`: the mean over folds, faint, and smoothed."""
    curves = []
    for color, name in enumerate(names):
        # of the folds that have reached an epoch
        means = rows[rows[by] == name].groupby("epoch")["value"].mean()
        curves += [Curve(color, True, means), Curve(color, False, smoothed(means))]
    return chart(title, label, curves, 1.0 if measure in SHARES else None)


def words(name: str) -> str:
    """A name with spaces."""
    return name.replace("_", " ").replace("iou", "IoU")


LINKED = ("robustness", "attacks")
"""The studies of the edition whose pages have links here."""
CLASSES_IN_IOU_MAP = 40
"""Classes in a map of IoU; of more, those that are segmented worst."""
TERMS = {"model": "run", "class_index": "class"}
"""The names of the regression's factors on the page, where they differ."""


def copy_sheets(study: TrainingStudy, classes: ClassTable, run: FinishedRun, report: Path) -> list[dict[str, Any]]:
    """Copy the tiles of a run's first fold into the report; their rows of SHEET_COLUMNS, with path and name of class.

    Raises CleansetError for a table that does not fit them.
    """
    source = study.fold(run.name, run.folds[0].fold).sheets
    table = source / "sheets.csv"
    if not table.is_file():
        return []
    remedy = f"run dvc checkout data/runs/{run.name}"
    rows = read_frame(table, SHEET_COLUMNS, remedy)
    folder = report / source.name / run.name
    folder.mkdir(parents=True)
    tiles = []
    for row in rows.to_dict("records"):
        name = Path(row["tile"]).name
        if not (source / name).is_file():
            raise CleansetError(f"{source / name}: missing; expected the tiles that sheets.csv names: {remedy}")
        shutil.copyfile(source / name, folder / name)
        path = (folder / name).relative_to(report).as_posix()
        named = {"name": _class_name(row["class_index"], classes), "path": path}
        tiles.append({str(key): value for key, value in row.items()} | named)
    return tiles


def segmentation_context(
    summary: Summary, classes: ClassTable, sheets: Mapping[str, Sequence[dict[str, Any]]]
) -> dict[str, Any]:
    """The variables of the page's template; empty without segmentation."""
    means = summary.records("segmentation_means")
    if not means:
        return {}
    of_class = summary.tables["segmentation_classes"]
    # a class that is nowhere counts as found
    by_iou = of_class.assign(iou=of_class["iou"].fillna(1.0)).groupby("class_index")["iou"].mean()
    worst = sorted(by_iou.sort_values(kind="stable").index[:CLASSES_IN_IOU_MAP])
    anova = summary.records("segmentation_anova")
    return {
        "scenarios": in_order(row["scenario"] for row in means),
        "segmented_runs": list(dict.fromkeys(row["run"] for row in means)),
        "means": {(row["run"], row["scenario"]): row for row in means},
        "cells": {
            (row["run"], row["scenario"], row["class_index"]): row["iou"]
            for row in summary.records("segmentation_classes")
        },
        "classes": [(index, _class_name(index, classes)) for index in worst],
        "all_classes": len(by_iou),
        "regression": [_term(row, classes) for row in summary.records("segmentation_regression")],
        "anova": [{**row, "source": TERMS.get(row["source"], row["source"])} for row in anova],
        "sheets": {run: _by_scenario(tiles) for run, tiles in sheets.items() if tiles},
    }


def _class_name(index: int, classes: ClassTable) -> str:
    return "background" if index == BACKGROUND_CLASS else classes.names[index].name


def _term(row: Mapping[str, Any], classes: ClassTable) -> dict[str, Any]:
    """A row of the regression with classes and scenarios in words."""
    level = row["level"]
    if row["factor"] == "class_index":
        level = _class_name(int(level), classes)
    elif row["factor"] == "scenario":
        level = str(level).replace("_", " ")
    return {**row, "factor": TERMS.get(row["factor"], row["factor"]), "level": level}


def _by_scenario(tiles: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = grouped(tiles, "scenario")
    return {name: found[name,] for name in in_order(row["scenario"] for row in tiles)}


def grouped(rows: Iterable[dict[str, Any]], *names: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Rows by their values in some columns, in the order of the first of each."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def _index(runs: Sequence[FinishedRun], missing: Sequence[str], summary: Summary) -> dict[str, Any]:
    rows = summary.records("runs")
    on_originals = [row for row in rows if row["task"] == "classification" and row["scenario"] == ORIGINAL]
    by_network = grouped(on_originals, "network", "protocol", "size", "folds")
    most = max(row["training_images"] for row in rows)
    return {
        "missing": join_names(missing),
        "grouped": join_names(each.name for each in runs if "split_by" in each.folds[0].record),
        "untested": join_names(each.name for each in runs if not each.run.folds),
        "chosen_by_tests": join_names(
            each.name for each in runs if each.run.keep == "best" and each.run.validation == "as_written"
        ),
        "miniature": most if most < MINIATURE else None,
        "rows": rows,
        "cells": {(row["run"], row["scenario"]): row for row in summary.records("accuracies")},
        "recipes": {key: rows for key, rows in by_network.items() if len({row["recipe"] for row in rows}) > 1},
        "final": summary.records("final_values"),
    }


def _experiments(summary: Summary) -> dict[str, Any]:
    rows, gains = summary.records("table_2"), summary.records("gains")
    if not rows:
        return {}
    squares = _cells(summary.records("deviations"), "part")
    halves = grouped(rows, "trained_on")
    largest = max(abs(row[end]) for row in gains for end in ("low", "high", "gain"))
    return {
        "scenarios": in_order(row["scenario"] for row in rows),
        "trained_scenarios": in_order(row["scenario"] for row in gains),
        "halves": {half: _cells(found, "parameters_in_millions") for (half,), found in halves.items()},
        "gains": gains,
        "reach": max(0.1, np.ceil(largest * 10) / 10),
        "squares": squares,
        "variances": {
            # over n - 1, as source 002's table 3
            key: sum(row["squared_deviation"] for row in cells.values()) / (len(cells) - 1) if len(cells) > 1 else None
            for key, cells in squares.items()
        },
        "scores": summary.records("trained_scores"),
    }


def _cells(rows: Iterable[dict[str, Any]], name: str) -> dict[tuple[Any, ...], dict[str, dict[str, Any]]]:
    """Rows by scenario, by network, protocol and another column."""
    by_network = grouped(rows, "network", "protocol", name)
    return {key: {row["scenario"]: row for row in found} for key, found in by_network.items()}


def write_report(
    study: TrainingStudy, classes: ClassTable, runs: Sequence[FinishedRun], missing: Sequence[str], summary: Summary
) -> None:
    """Write report/ without the pages that nothing was found for.

    It has the sheets of predicted masks of each segmentation run's first fold.
    """
    environment = page_environment(classes, TEMPLATES, ROBUSTNESS_TEMPLATES, ATTACK_TEMPLATES)
    rows = history_rows(runs)
    with replacing(study.report) as folder:
        folder.mkdir()
        sheets = {run.name: copy_sheets(study, classes, run, folder) for run in runs if run.run.task == "segmentation"}
        contexts: dict[str, dict[str, Any]] = {
            "index.html": _index(runs, missing, summary),
            "curves.html": {"by_run": run_charts(runs, rows), "by_scenario": scenario_charts(runs, rows)},
            "experiments.html": _experiments(summary),
            "segmentation.html": segmentation_context(summary, classes, sheets),
        }
        studies = [name for name in LINKED if (study.folder / ".." / name / "dvc.yaml").is_file()]
        pages = {name: PAGES[name] for name, context in contexts.items() if context}
        common = {"pages": pages, "studies": studies, "runs": runs, "original": ORIGINAL, "smoothing": SMOOTHING}
        for name in pages:
            template = environment.get_template(f"training_{name}")
            write_text(folder / name, template.render(common | {"page": name} | contexts[name]))
