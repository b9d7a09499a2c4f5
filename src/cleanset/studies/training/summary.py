"""Stage summary: measures of all finished runs as CSV, their metrics, and the report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from cleanset.files import Lines, replacing, write_metrics, write_text
from cleanset.studies.training.experiments import (
    Pair,
    TrainedScore,
    deviations,
    fold_accuracies,
    gains,
    in_order,
    inner_section,
    mean_accuracies,
    pairs,
    table_2,
    trained_scores,
)
from cleanset.studies.training.finished import FinalValue, FinishedRun, finished_runs, plotted
from cleanset.studies.training.params import ORIGINAL, Run, SegmentationMeasures, read_training_params
from cleanset.studies.training.segmentation.results import tables as segmentation_tables
from cleanset.studies.training.study import TrainingStudy

DIGITS = 6
"""Decimals of numbers in tables and metrics: processors differ in the last digits of sums."""
TRAINED = "trained.yaml"
"""The file with what the robustness study takes as `measures.scenarios.trained`."""
LEVELS = 255
"""Distances in an image's values are shown as fractions of this."""


class Summary(NamedTuple):
    """The tables by the stem of their CSV file, and EX1 beside EX2."""

    tables: Mapping[str, pd.DataFrame]
    pairs: Sequence[Pair]
    trained: Mapping[str, Mapping[str, float]]


def summarise(runs: Sequence[FinishedRun], measures: SegmentationMeasures | None = None) -> Summary:
    """All tables of finished runs."""
    histories = [each for run in runs for each in run.histories()]
    final = [value for each in histories for value in each.final_values()]
    tables = {
        "runs": pd.DataFrame([_run_row(each) for each in runs]),
        "histories": plotted(histories),
        "final_values": pd.DataFrame(final, columns=FinalValue._fields),
    }
    found, trained = list[Pair](), dict[str, dict[str, float]]()
    tests = [each.tests() for each in runs if each.run.task == "classification"]
    classified = pd.concat(tests, ignore_index=True) if any(map(len, tests)) else None
    if classified is not None:
        by_fold = fold_accuracies(classified)
        tables |= {
            "class_accuracies": classified,
            "fold_accuracies": by_fold,
            "accuracies": mean_accuracies(by_fold),
        }
        found = pairs(each.compared() for each in runs if each.run.task == "classification" and len(each.tests()))
        if found:
            deviating = deviations(found, by_fold)
            tables |= {
                "gains": gains(found, by_fold),
                "table_2": table_2(found, by_fold),
                "deviations": deviating,
                "trained_scores": pd.DataFrame(trained_scores(found, deviating), columns=TrainedScore._fields),
            }
            trained = inner_section(found, by_fold)
    segmented = [each.tests() for each in runs if each.run.task == "segmentation"]
    if any(map(len, segmented)):
        tables |= segmentation_tables(pd.concat(segmented, ignore_index=True), measures)
    return Summary({name: table.round(DIGITS) for name, table in tables.items()}, found, trained)


def _run_row(each: FinishedRun) -> dict[str, Any]:
    run, records = each.run, [fold.record for fold in each.folds]
    return {
        "run": each.name,
        "task": run.task,
        "recipe": run.recipe,
        "settings": recipe_text(run),
        "network": each.network,
        "parameters_in_millions": each.parameters,
        "scenario": run.scenario,
        "protocol": run.protocol,
        "size": run.size,
        "folds": len(records),
        "epochs": round(float(np.mean([record["epochs"] for record in records])), 1),
        "trained_on": " ".join(run.trained_on or []),
    }


def recipe_text(run: Run) -> str:
    """The settings of a run's recipe, as text; distances as fractions of 255, those left out not at all."""
    if run.recipe == "standard":
        return ""
    section = getattr(run, "augmix" if run.recipe == "augmix_mixing" else run.recipe)
    found = []
    for key, value in section.model_dump(exclude_none=True).items():
        if run.recipe == "augmix_mixing" and key == "consistency":
            continue
        if key in ("eps", "step"):
            value = f"{value * LEVELS:.4g}/{LEVELS}"
        text = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
        found.append(f"{key.replace('_', ' ')} {text}")
    return ", ".join(found)


def metric_values(summary: Summary) -> Lines:
    """The lines of `dvc metrics show`: a number for each run by line."""
    lines: dict[str, dict[str, float | int | None]] = {}
    accuracies = summary.tables.get("accuracies")
    for row in [] if accuracies is None else accuracies.to_dict("records"):
        lines.setdefault(f"accuracy/{row['scenario']}", {})[row["run"]] = row["accuracy"]
    for row in summary.tables["gains"].to_dict("records") if summary.pairs else []:
        lines.setdefault(f"gain/{row['scenario']}", {})[row["ex1"]] = row["gain"]
    for row in summary.tables["trained_scores"].to_dict("records") if summary.pairs else []:
        value = None if np.isnan(row["score"]) else row["score"]
        lines.setdefault(f"score_{row['definition']}", {})[row["run"]] = value
    segmented = summary.tables.get("segmentation_means")
    for row in [] if segmented is None else segmented.to_dict("records"):
        for measure in ("mean_iou", "mean_boundary_iou"):
            value = None if np.isnan(row[measure]) else row[measure]
            lines.setdefault(f"{measure}/{row['scenario']}", {})[row["run"]] = value
    return lines


def trained_yaml(trained: Mapping[str, Mapping[str, float]]) -> str:
    """The section `trained` as YAML, a line for each network."""
    if not trained:
        return "{}\n"
    return "".join(
        yaml.safe_dump({name: dict(found)}, default_flow_style=None, sort_keys=False, width=10_000)
        for name, found in trained.items()
    )


def write_measures(folder: Path, summary: Summary) -> None:
    """Write each table as CSV, and the section of the robustness study; nothing else stays in the folder."""
    with replacing(folder) as partial:
        for name, table in summary.tables.items():
            write_text(partial / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
        write_text(partial / TRAINED, trained_yaml(summary.trained))


def scenarios_of(runs: Sequence[FinishedRun]) -> list[str]:
    """The scenarios that runs were trained on, originals first."""
    return in_order([ORIGINAL, *(each.run.scenario for each in runs)])


def run(study: TrainingStudy) -> None:
    """Read the finished runs, write data/measures/, metrics/ and report/, and the costs beside them."""
    from cleanset.studies.training.costs import write_costs_page
    from cleanset.studies.training.pages import write_report

    params = read_training_params(study.params_yaml)
    runs, missing = finished_runs(study, params)
    summary = summarise(runs, params.measures.segmentation)
    write_measures(study.measures, summary)
    write_metrics(study.metrics, metric_values(summary))
    write_report(study, runs, missing, summary)
    write_costs_page(study, runs)
