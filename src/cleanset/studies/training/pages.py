"""The report of a training study: runs, curves, EX1 beside EX2, EX3, as pages that open without a server.

Curves of training are polylines of a chart: scales, ticks and points, which the pages draw as SVG."""

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.files import replacing, write_text
from cleanset.report.pages import page_environment
from cleanset.studies.attacks.page import TEMPLATES as ATTACK_TEMPLATES
from cleanset.studies.robustness.pages import TEMPLATES as ROBUSTNESS_TEMPLATES
from cleanset.studies.training.experiments import in_order
from cleanset.studies.training.finished import PARTS, SMOOTHING, FinishedRun, History, Summary, over_folds, smoothed
from cleanset.studies.training.params import ORIGINAL
from cleanset.studies.training.segmentation.measures import BACKGROUND_CLASS, SHEET_COLUMNS
from cleanset.studies.training.study import TrainingStudy
from cleanset.validation import join_names
from cleanset.vocabulary import class_names

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


TEMPLATES = Path(__file__).parent / "templates"
PAGES = {
    "index.html": "Runs",
    "curves.html": "Curves",
    "experiments.html": "EX1 beside EX2",
    "segmentation.html": "EX3: segmentation",
}
"""The pages by file name, with their titles."""
SHARES = ("accuracy", "robust_accuracy", "mean_iou")
"""Measures between 0 and 1, whose charts end at 1."""
MINIATURE = 10_000
"""Images; a study whose runs train on fewer is called a miniature."""
RUNS_IN_A_CHART = 6
"""Runs in one chart by scenario, as many as there are kinds of lines; more of them get charts of their own."""


@dataclass(frozen=True, slots=True)
class ChartGroup:
    """Charts that belong together, with a legend of the lines in them."""

    title: str
    note: str
    names: Sequence[str]
    charts: Sequence[Chart]


def run_charts(runs: Sequence[FinishedRun]) -> list[ChartGroup]:
    """For each run, a chart of each measure: training and validation, mean over the folds, raw and smoothed."""
    found = []
    for run in runs:
        histories = run.histories()
        charts = [_run_chart(run.name, measure, histories) for measure in _measures(histories)]
        count = len(histories)
        note = f"{run.network}, {run.run.recipe}" + (f", mean over {count} folds" if count > 1 else "")
        found.append(ChartGroup(run.name, note, [*PARTS], charts))
    return found


def _run_chart(name: str, measure: str, histories: Sequence[History]) -> Chart:
    curves = [
        curve for color, part in enumerate(PARTS) for curve in _raw_and_smooth(part, color, measure, histories, part)
    ]
    label = f"{words(measure)} of {name} by epoch, training and validation"
    return chart(words(measure), label, curves, _highest(measure))


def _raw_and_smooth(name: str, color: int, measure: str, histories: Sequence[History], part: str) -> list[Curve]:
    """The mean over folds, faint, and smoothed; none for what was not measured."""
    epochs, means = over_folds(histories, measure, part)
    if not len(epochs):
        return []
    return [Curve(name, color, epochs, means, faint=True), Curve(name, color, epochs, smoothed(means))]


def scenario_charts(runs: Sequence[FinishedRun]) -> list[ChartGroup]:
    """For each task and scenario, its runs together: charts of each measure, training and validation."""
    found = []
    for task in dict.fromkeys(each.run.task for each in runs):
        of_task = [each for each in runs if each.run.task == task]
        for scenario in in_order(each.run.scenario for each in of_task):
            of_scenario = [each for each in of_task if each.run.scenario == scenario]
            groups = range(0, len(of_scenario), RUNS_IN_A_CHART)
            for first in groups:
                part = of_scenario[first : first + RUNS_IN_A_CHART]
                number = f", {first // RUNS_IN_A_CHART + 1} of {len(groups)}" if len(groups) > 1 else ""
                charts = _scenario_charts(scenario, part)
                found.append(ChartGroup(f"{words(scenario)}{number}", task, [each.name for each in part], charts))
    return found


def _scenario_charts(scenario: str, runs: Sequence[FinishedRun]) -> list[Chart]:
    histories = {each.name: each.histories() for each in runs}
    measures = dict.fromkeys(name for each in histories.values() for name in _measures(each))
    charts = []
    for measure in measures:
        for part in PARTS:
            curves = [
                curve
                for color, (name, each) in enumerate(histories.items())
                for curve in _raw_and_smooth(name, color, measure, each, part)
            ]
            if curves:
                title = f"{words(measure)}, {'training' if part == 'train' else part}"
                charts.append(
                    chart(title, f"{title}, of runs on {words(scenario)} by epoch", curves, _highest(measure))
                )
    return charts


def _measures(histories: Sequence[History]) -> list[str]:
    """The measures that any of the histories has, losses last."""
    names = dict.fromkeys(name for each in histories for name in each.measures)
    return sorted(names, key=lambda name: name.endswith("loss"))


def _highest(measure: str) -> float | None:
    return 1.0 if measure in SHARES else None


def words(name: str) -> str:
    """A name with spaces."""
    return name.replace("_", " ").replace("iou", "IoU")


LINKED = ("robustness", "attacks")
"""The studies of the edition whose pages have links here."""
SHEETS = "sheets"
"""The folder of sheets beside a fold's weights, and in the report."""
SHOWN_CLASSES = 40
"""Classes in a map of IoU; of more, those that are segmented worst."""
TERMS = {"model": "run", "class_index": "class"}
"""The names of the regression's factors on the page, where they differ."""


class Tile(NamedTuple):
    """A predicted mask over its image: the best or worst of a scenario; `path` is relative to the report."""

    scenario: str
    place: str
    number: int
    name: str
    iou: float
    path: str


def copy_sheets(study: TrainingStudy, run: FinishedRun, report: Path) -> list[Tile]:
    """Copy the tiles of a run's first fold into the report. Raises CleansetError for a table that does not fit them."""
    source = study.fold(run.name, run.folds[0].fold).folder / SHEETS
    table = source / "sheets.csv"
    if not table.is_file():
        return []
    rows, remedy = pd.read_csv(table), f"run dvc checkout data/runs/{run.name}"
    if tuple(rows.columns) != SHEET_COLUMNS:
        raise CleansetError(
            f"{table}: columns {', '.join(rows.columns)}; expected {', '.join(SHEET_COLUMNS)}: {remedy}"
        )
    folder = report / SHEETS / run.name
    folder.mkdir(parents=True)
    tiles = []
    for row in rows.to_dict("records"):
        name = Path(str(row["tile"])).name
        if not (source / name).is_file():
            raise CleansetError(f"{source / name}: missing; expected the tiles that sheets.csv names: {remedy}")
        shutil.copyfile(source / name, folder / name)
        shown = class_names()[int(row["class_index"])].name
        place = str(row["scenario"]), str(row["place"]), int(row["number"])
        tiles.append(Tile(*place, shown, float(row["iou"]), f"{SHEETS}/{run.name}/{name}"))
    return tiles


def segmentation_context(summary: Summary, sheets: Mapping[str, Sequence[Tile]]) -> dict[str, Any]:
    """The variables of the page's template; none without segmentation."""
    means = summary.records("segmentation_means")
    if not means:
        return {}
    classes = summary.records("segmentation_classes")
    scenarios = in_order(row["scenario"] for row in means)
    return {
        "scenarios": scenarios,
        "segmented_runs": list(dict.fromkeys(row["run"] for row in means)),
        "means": {(row["run"], row["scenario"]): row for row in means},
        "cells": {(row["run"], row["scenario"], row["class_index"]): row["iou"] for row in classes},
        "classes": [(index, _class_name(index)) for index in _worst_classes(classes)],
        "all_classes": len({row["class_index"] for row in classes}),
        "regression": [_term(row) for row in summary.records("segmentation_regression")],
        "anova": [
            {**row, "source": TERMS.get(row["source"], row["source"])} for row in summary.records("segmentation_anova")
        ],
        "sheets": {run: _by_scenario(tiles) for run, tiles in sheets.items() if tiles},
    }


def _class_name(index: int) -> str:
    return "background" if index == BACKGROUND_CLASS else class_names()[index].name


def _worst_classes(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Class indices, the background first; of more than SHOWN_CLASSES those with the smallest mean IoU."""
    sums: dict[int, list[float]] = {}
    for row in rows:
        sums.setdefault(row["class_index"], []).append(1.0 if row["iou"] is None else row["iou"])
    worst = sorted(sums, key=lambda index: (sum(sums[index]) / len(sums[index]), index))[:SHOWN_CLASSES]
    return sorted(worst)


def _term(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the regression with classes and scenarios in words."""
    level = row["level"]
    if row["factor"] == "class_index":
        level = _class_name(int(level))
    elif row["factor"] == "scenario":
        level = str(level).replace("_", " ")
    return {**row, "factor": TERMS.get(row["factor"], row["factor"]), "level": level}


def _by_scenario(tiles: Sequence[Tile]) -> dict[str, dict[str, list[Tile]]]:
    found: dict[str, dict[str, list[Tile]]] = {name: {} for name in in_order(each.scenario for each in tiles)}
    for each in tiles:
        found[each.scenario].setdefault(each.place, []).append(each)
    return found


def report_pages(
    runs: Sequence[FinishedRun],
    missing: Sequence[str],
    summary: Summary,
    sheets: Mapping[str, Sequence[Tile]] | None = None,
    studies: Sequence[str] = LINKED,
) -> dict[str, str]:
    """The text of each page by its name, without those that nothing was found for; `sheets`: tiles by run.

    `studies`: of LINKED those that the edition has.
    """
    environment = page_environment(TEMPLATES, ROBUSTNESS_TEMPLATES, ATTACK_TEMPLATES)
    empty = {"experiments.html": not summary.pairs, "segmentation.html": "segmentation_means" not in summary.tables}
    pages = {name: title for name, title in PAGES.items() if not empty.get(name, False)}
    common = {"pages": pages, "studies": studies, "runs": runs, "original": ORIGINAL, "smoothing": SMOOTHING}
    contexts: dict[str, dict[str, Any]] = {
        "index.html": _index(runs, missing, summary),
        "curves.html": {"by_run": run_charts(runs), "by_scenario": scenario_charts(runs)},
        "experiments.html": _experiments(summary),
        "segmentation.html": segmentation_context(summary, sheets or {}),
    }
    return {
        name: environment.get_template(f"training_{name}").render(common | {"page": name} | contexts[name])
        for name in pages
    }


def _index(runs: Sequence[FinishedRun], missing: Sequence[str], summary: Summary) -> dict[str, Any]:
    accuracies = summary.records("accuracies")
    cells = {(row["run"], row["scenario"]): row for row in accuracies}
    by_network: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in summary.records("runs"):
        if row["task"] == "classification" and row["scenario"] == ORIGINAL:
            key = tuple(str(row[name]) for name in ("network", "protocol", "size", "folds"))
            by_network.setdefault(key, []).append(row)
    chosen_by_tests = [each.name for each in runs if each.run.keep == "best" and each.run.validation == "as_written"]
    most = max(row["training_images"] for row in summary.records("runs"))
    return {
        "missing": join_names(missing),
        "grouped": join_names([each.name for each in runs if "split_by" in each.folds[0].record]),
        "untested": join_names([each.name for each in runs if not each.run.folds]),
        "chosen_by_tests": join_names(chosen_by_tests),
        "miniature": most if most < MINIATURE else None,
        "rows": summary.records("runs"),
        "cells": cells,
        "recipes": {key: rows for key, rows in by_network.items() if len({row["recipe"] for row in rows}) > 1},
        "final": summary.records("final_values"),
    }


def _experiments(summary: Summary) -> dict[str, Any]:
    if not summary.pairs:
        return {}
    rows, gains = summary.records("table_2"), summary.records("gains")
    scenarios = in_order(row["scenario"] for row in rows)
    halves: dict[str, dict[tuple[str, str, float], dict[str, Any]]] = {}
    for row in rows:
        key = row["network"], row["protocol"], row["parameters_in_millions"]
        halves.setdefault(row["trained_on"], {}).setdefault(key, {})[row["scenario"]] = row
    squares: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in summary.records("deviations"):
        squares.setdefault((row["network"], row["protocol"], row["part"]), {})[row["scenario"]] = row
    largest = max(abs(row[end]) for row in gains for end in ("low", "high", "gain"))
    return {
        "scenarios": scenarios,
        "trained_scenarios": in_order(row["scenario"] for row in gains),
        "halves": halves,
        "gains": gains,
        "reach": max(0.1, np.ceil(largest * 10) / 10),
        "squares": squares,
        "variances": {
            key: _variance([row["squared_deviation"] for row in row_cells.values()])
            for key, row_cells in squares.items()
        },
        "scores": summary.records("trained_scores"),
    }


def _variance(squares: Sequence[float]) -> float | None:
    """The sum of a row's squares over n - 1."""
    return sum(squares) / (len(squares) - 1) if len(squares) > 1 else None


def write_report(study: TrainingStudy, runs: Sequence[FinishedRun], missing: Sequence[str], summary: Summary) -> None:
    """Write report/, with the sheets of predicted masks of each segmentation run's first fold."""
    with replacing(study.report) as folder:
        folder.mkdir()
        sheets = {run.name: copy_sheets(study, run, folder) for run in runs if run.run.task == "segmentation"}
        studies = [name for name in LINKED if (study.folder.parent / name / "dvc.yaml").is_file()]
        for name, text in report_pages(runs, missing, summary, sheets, studies).items():
            write_text(folder / name, text)
