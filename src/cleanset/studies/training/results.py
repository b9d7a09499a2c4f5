"""All tables of a training study's finished runs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from cleanset.evaluation.measures import measures_frame
from cleanset.plumbing.json_files import JsonObject
from cleanset.statistics.formats import rounded, rounded_p
from cleanset.studies.robustness.results import records
from cleanset.studies.training.accuracies import ACCURACY_COLUMNS, fold_accuracies, mean_accuracies
from cleanset.studies.training.experiments import (
    GAIN_COLUMNS,
    deviations,
    gains,
    inner_section,
    pairs,
    table_2,
    trained_scores,
)
from cleanset.studies.training.finished import FinishedRun
from cleanset.studies.training.histories import final_values
from cleanset.studies.training.params import SegmentationMeasures
from cleanset.studies.training.segmentation.measures import tables as segmentation_tables

DIGITS = 6
P_VALUES = ("p", "p_holm")
"""Decimals of numbers in tables and metrics: processors differ in the last digits of sums."""


class Summary(NamedTuple):
    """The tables of a study's finished runs."""

    tables: Mapping[str, pd.DataFrame]
    """The tables by the stem of their CSV file."""
    trained: Mapping[str, Mapping[str, float]]
    """EX1 compared with EX2 for the robustness study: by network its accuracies on originals and scenarios."""

    def records(self, name: str) -> list[JsonObject]:
        """The rows of a table, NaN as None; empty without the table."""
        return records(self.tables[name]) if name in self.tables else []


def summarise(
    runs: Sequence[FinishedRun], histories: pd.DataFrame, measures: SegmentationMeasures, parts: int
) -> Summary:
    """All tables of finished runs. `histories`: their rows, of `history_rows`; `parts`: `folds` of the params."""
    tables = {
        "runs": pd.DataFrame(map(_run_row, runs)),
        "histories": histories,
        "final_values": final_values(runs, histories),
    }
    trained: dict[str, dict[str, float]] = {}
    tested = [(each, tests) for each in runs if len(tests := each.tests())]
    classified = [(each, tests) for each, tests in tested if each.run.task == "classification"]
    if classified:
        of_class = pd.concat([tests for _, tests in classified], ignore_index=True)
        by_fold = fold_accuracies(of_class)
        means = mean_accuracies(by_fold, parts)
        tables |= {"class_accuracies": of_class, "fold_accuracies": by_fold}
        tables["accuracies"] = measures_frame(means.values(), ACCURACY_COLUMNS)
        if found := pairs(each for each, _ in classified):
            tables["gains"] = measures_frame(gains(found, by_fold, parts), GAIN_COLUMNS)
            tables["table_2"] = table_2(found, means)
            tables |= {"deviations": deviations(found, means), "trained_scores": trained_scores(found, means)}
            trained = inner_section(found, means)
    segmented = [tests for each, tests in tested if each.run.task == "segmentation"]
    if segmented:
        tables |= segmentation_tables(pd.concat(segmented, ignore_index=True), measures)
    return Summary({name: rounded_table(table) for name, table in tables.items()}, trained)


def rounded_table(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose floating-point numbers are rounded to DIGITS; no p-value becomes 0."""
    found = {}
    for name in table.select_dtypes("float"):
        to_digits = rounded_p if str(name) in P_VALUES else rounded
        found[str(name)] = [to_digits(value, DIGITS) for value in table[name].tolist()]
    return table.assign(**found)


def _run_row(each: FinishedRun) -> JsonObject:
    run = each.run
    records = [fold.record for fold in each.folds]
    return {
        "run": each.name,
        "task": run.task,
        "recipe": run.recipe,
        "settings": run.training_recipe.settings_text(),
        "network": each.network,
        "parameters_in_millions": each.parameters,
        "scenario": run.scenario,
        "protocol": run.protocol,
        "size": run.size,
        "folds": len(records),
        "training_images": max(record.training_images for record in records),
        "epochs": rounded(float(np.mean([record.epochs for record in records])), 1),
        "kept_epochs": " ".join(str(record.epoch) for record in records),
        "kept": records[0].kept,
        "trained_on": " ".join(run.trained_on),
    }
