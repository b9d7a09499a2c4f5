"""The page on EX3: measures by run, scenario and class, the regression, and sheets of predicted masks."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cleanset.dataset.ilsvrc import class_names
from cleanset.errors import CleansetError
from cleanset.studies.training.experiments import in_order
from cleanset.studies.training.finished import FinishedRun
from cleanset.studies.training.segmentation.measures import BACKGROUND_CLASS
from cleanset.studies.training.segmentation.sheets import SHEET_COLUMNS
from cleanset.studies.training.study import TrainingStudy

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


def table_records(tables: Mapping[str, pd.DataFrame], name: str) -> list[dict[str, Any]]:
    """The rows of a table, NaN as None; none without the table."""
    table = tables.get(name)
    if table is None:
        return []
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def copied_sheets(study: TrainingStudy, run: FinishedRun, report: Path) -> list[Tile]:
    """Copy the tiles of a run's first fold into the report. Raises CleansetError for a table that does not fit them."""
    source = study.fold(run.name, run.folds[0].fold).folder / SHEETS
    table = source / "sheets.csv"
    if not table.is_file():
        return []
    rows, remedy = pd.read_csv(table), f"run dvc checkout train@{run.name}"
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


def segmentation_context(tables: Mapping[str, pd.DataFrame], sheets: Mapping[str, Sequence[Tile]]) -> dict[str, Any]:
    """The variables of the page's template; none without segmentation."""
    means = table_records(tables, "segmentation_means")
    if not means:
        return {}
    classes = table_records(tables, "segmentation_classes")
    scenarios = in_order(row["scenario"] for row in means)
    return {
        "scenarios": scenarios,
        "segmented_runs": list(dict.fromkeys(row["run"] for row in means)),
        "means": {(row["run"], row["scenario"]): row for row in means},
        "cells": {(row["run"], row["scenario"], row["class_index"]): row["iou"] for row in classes},
        "classes": [(index, _class_name(index)) for index in _worst_classes(classes)],
        "all_classes": len({row["class_index"] for row in classes}),
        "regression": [_term(row) for row in table_records(tables, "segmentation_regression")],
        "anova": [
            {**row, "source": TERMS.get(row["source"], row["source"])}
            for row in table_records(tables, "segmentation_anova")
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
