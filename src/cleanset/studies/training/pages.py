"""The report of a training study: runs, curves, EX1 compared with EX2, EX3; pages that open without a server."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.plumbing.files import replacing, write_text
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.validation import join_names
from cleanset.report.pages import page_environment
from cleanset.studies.attacks.page import TEMPLATES as ATTACK_TEMPLATES
from cleanset.studies.robustness.pages import TEMPLATES as ROBUSTNESS_TEMPLATES
from cleanset.studies.robustness.scenarios.params import ORIGINAL
from cleanset.studies.training.accuracies import in_order
from cleanset.studies.training.curves import run_charts, scenario_charts, words
from cleanset.studies.training.finished import FinishedRun
from cleanset.studies.training.histories import SMOOTHING
from cleanset.studies.training.results import Summary
from cleanset.studies.training.segmentation.page import copy_sheets, segmentation_context
from cleanset.studies.training.study import TrainingStudy

TEMPLATES = Path(__file__).parent / "templates"
PAGES = {
    "index.html": "Runs",
    "curves.html": "Curves",
    "experiments.html": "EX1 compared with EX2",
    "segmentation.html": "EX3: segmentation",
}
"""The pages by file name, with their titles."""
MINIATURE = 10_000
"""Training images of the largest run below which a study is called a miniature: its numbers show how it works."""
LINKED = ("robustness", "attacks")
"""The studies of the edition whose pages have links here."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportData:
    """What the pages show."""

    classes: ClassTable
    """The class table of the training images."""
    runs: Sequence[FinishedRun]
    """The finished runs."""
    missing: Sequence[str]
    """Names of the runs that have not been trained."""
    histories: pd.DataFrame
    """Every value of all histories, of `history_rows`."""
    summary: Summary
    """The tables of the finished runs."""


Key = tuple[object, ...]
"""The values of a row in some columns."""
Groups = dict[Key, list[JsonObject]]


def grouped(rows: Iterable[JsonObject], names: Sequence[str]) -> Groups:
    """Rows by their values in some columns, in the order of the first of each."""
    found: Groups = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def _index(data: ReportData) -> JsonObject:
    runs = data.runs
    summary = data.summary
    rows = summary.records("runs")
    on_originals = [row for row in rows if row["task"] == "classification" and row["scenario"] == ORIGINAL]
    by_network = grouped(on_originals, ("network", "protocol", "size", "folds"))
    most = max(row["training_images"] for row in rows)
    return {
        "missing": join_names(data.missing),
        "grouped": join_names(each.name for each in runs if each.folds[0].record.split_by),
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


def experiments_context(summary: Summary) -> JsonObject:
    """What the page on EX1 and EX2 shows; empty without a pair of runs."""
    rows = summary.records("table_2")
    gains = summary.records("gains")
    if not rows:
        return {}
    squares = _cells(summary.records("deviations"), "part")
    halves = grouped(rows, ("trained_on",))
    largest = max(abs(row[end]) for row in gains for end in ("low", "high", "gain"))
    return {
        "scenarios": in_order(row["scenario"] for row in rows),
        "trained_scenarios": in_order(row["scenario"] for row in gains),
        "halves": {half: _cells(found, "parameters_in_millions") for (half,), found in halves.items()},
        "gains": gains,
        "reach": max(0.1, np.ceil(largest * 10) / 10),
        "labels": {half: _labels(found) for (half,), found in halves.items()},
        "labels_of_pairs": _labels(gains),
        "squares": squares,
        "variances": {
            # over n - 1, as XIMAGENET-12's table 3
            key: sum(row["squared_deviation"] for row in cells.values()) / (len(cells) - 1) if len(cells) > 1 else None
            for key, cells in squares.items()
        },
        "scores": summary.records("trained_scores"),
    }


def _cells(rows: Iterable[JsonObject], name: str) -> dict[Key, dict[str, JsonObject]]:
    """Rows by scenario, by pair of runs and another column."""
    by_pair = grouped(rows, ("pair", name))
    return {key: {row["scenario"]: row for row in found} for key, found in by_pair.items()}


def _labels(rows: Iterable[JsonObject]) -> dict[str, tuple[str, str]]:
    """By pair of runs, its network, and its protocol; with its name where another pair has both."""
    networks = {row["pair"]: (row["network"], words(row["protocol"])) for row in rows}
    shared = Counter(networks.values())
    return {pair: each if shared[each] == 1 else (each[0], f"{each[1]}, {pair}") for pair, each in networks.items()}


def write_report(study: TrainingStudy, data: ReportData) -> None:
    """Write report/ without the pages that nothing was found for.

    It has the sheets of predicted masks of each segmentation run's first fold.
    """
    environment = page_environment(data.classes, TEMPLATES, ROBUSTNESS_TEMPLATES, ATTACK_TEMPLATES)
    runs = data.runs
    with replacing(study.report) as folder:
        folder.mkdir()
        sheets = {
            run.name: copy_sheets(study, data.classes, run, folder) for run in runs if run.run.task == "segmentation"
        }
        contexts: dict[str, JsonObject] = {
            "index.html": _index(data),
            "curves.html": {
                "by_run": run_charts(runs, data.histories),
                "by_scenario": scenario_charts(runs, data.histories),
            },
            "experiments.html": experiments_context(data.summary),
            "segmentation.html": segmentation_context(data.summary, data.classes, sheets),
        }
        studies = [name for name in LINKED if (study.folder / ".." / name / "dvc.yaml").is_file()]
        pages = {name: PAGES[name] for name, context in contexts.items() if context}
        common = {"pages": pages, "studies": studies, "runs": runs, "original": ORIGINAL, "smoothing": SMOOTHING}
        for name in pages:
            template = environment.get_template(f"training_{name}")
            write_text(folder / name, template.render(common | {"page": name} | contexts[name]))
