"""The page of segmentation: its tables, its map of IoU, and the tiles of predicted masks."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import read_frame
from cleanset.plumbing.json_files import JsonObject
from cleanset.studies.training.accuracies import in_order
from cleanset.studies.training.finished import FinishedRun
from cleanset.studies.training.results import Summary
from cleanset.studies.training.segmentation.measures import BACKGROUND_CLASS
from cleanset.studies.training.segmentation.sheets import SHEET_COLUMNS
from cleanset.studies.training.study import TrainingStudy

CLASSES_IN_IOU_MAP = 40
"""Classes in a map of IoU; with more, those that are segmented worst."""
TERMS = {"model": "run", "class_index": "class"}
"""The names of the regression's factors on the page, where they differ."""


def copy_sheets(study: TrainingStudy, classes: ClassTable, run: FinishedRun, report: Path) -> list[JsonObject]:
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
    summary: Summary, classes: ClassTable, sheets: Mapping[str, Sequence[JsonObject]]
) -> JsonObject:
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


def _term(row: JsonObject, classes: ClassTable) -> JsonObject:
    """A row of the regression with classes and scenarios in words."""
    level = row["level"]
    if row["factor"] == "class_index":
        level = _class_name(int(level), classes)
    elif row["factor"] == "scenario":
        level = str(level).replace("_", " ")
    return {**row, "factor": TERMS.get(row["factor"], row["factor"]), "level": level}


def _by_scenario(tiles: Sequence[JsonObject]) -> dict[str, list[JsonObject]]:
    """The tiles of each scenario."""
    names = in_order(row["scenario"] for row in tiles)
    return {name: [row for row in tiles if row["scenario"] == name] for name in names}
