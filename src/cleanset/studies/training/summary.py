"""Stage `summary`: measures of all finished runs as CSV, their metrics, and the report."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import yaml

from cleanset.plumbing.csv_files import write_frame
from cleanset.plumbing.files import replacing, write_text
from cleanset.plumbing.json_files import json_record
from cleanset.plumbing.metrics import Lines, write_metrics
from cleanset.statistics.formats import rounded
from cleanset.studies.training.finished import FinishedRun, finished_runs
from cleanset.studies.training.histories import history_rows
from cleanset.studies.training.pages import ReportData, write_report
from cleanset.studies.training.results import Summary, summarise
from cleanset.studies.training.study import StudyInputs, TrainingStudy

TRAINED_YAML = "trained.yaml"
"""The file with the values for the robustness study's `measures.scenarios.trained`."""


METRICS = (
    ("accuracies", "accuracy/{scenario}", "run", "accuracy"),
    ("gains", "gain/{scenario}", "pair", "gain"),
    ("trained_scores", "score_{definition}", "pair", "score"),
    ("segmentation_means", "mean_iou/{scenario}", "run", "mean_iou"),
    ("segmentation_means", "mean_boundary_iou/{scenario}", "run", "mean_boundary_iou"),
)
"""Table, line of metrics, column with the run or pair of runs, column with the number."""


def metric_values(summary: Summary) -> Lines:
    """The lines of `dvc metrics show`: a number for each run, or pair of runs, by line."""
    lines: dict[str, dict[str, float | int | None]] = {}
    for table, name, run, measure in METRICS:
        for row in summary.records(table):
            lines.setdefault(name.format_map(row), {})[row[run]] = row[measure]
    return lines


def trained_yaml(trained: Mapping[str, Mapping[str, float]]) -> str:
    """The section `trained` as YAML, a line for each network."""
    content = {name: dict(found) for name, found in trained.items()}
    return str(yaml.safe_dump(content, default_flow_style=None, sort_keys=False, width=10_000))


def write_measures(folder: Path, summary: Summary) -> None:
    """Write each table as CSV, and the section of the robustness study; nothing else stays in the folder."""
    with replacing(folder) as partial:
        for name, table in summary.tables.items():
            write_frame(partial / f"{name}.csv", table)
        write_text(partial / TRAINED_YAML, trained_yaml(summary.trained))


COSTS = ("seconds", "images", "images_per_second", "peak_memory_bytes")
"""Numbers that every record of costs has."""


def costs_table(study: TrainingStudy, runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """The costs of all folds whose training left them, which a checkout from DVC's cache does not bring.

    `times_the_fastest`: the rate of the fastest run of the same size, batch and device by this one's. Raises
    CleansetError for a number that is missing.
    """
    rows = []
    for run in runs:
        for fold in run.folds:
            path = study.cost(run.name, fold.fold)
            if not path.is_file():
                continue
            remedy = "remove it; the table then leaves this run out"
            record = json_record(path, "the costs of a run", remedy, COSTS)
            sizes = {"size": run.run.size, "batch": run.run.batch}
            rows.append({"run": run.name, "fold": fold.fold, "network": run.network, **sizes, **record})
    table = pd.DataFrame(rows)
    if rows:
        # networks can be compared only where they saw the same images on the same device
        alike = table.groupby(["size", "batch", "device"])["images_per_second"]
        times = alike.transform("max") / table["images_per_second"]
        table["times_the_fastest"] = [rounded(each, 2) for each in times.tolist()]
    return table


def run(study: TrainingStudy) -> None:
    """Read the finished runs, write data/measures/, metrics/ and report/, and costs/costs.csv, outside DVC."""
    inputs = StudyInputs.read(study)
    runs, missing = finished_runs(study, inputs.params)
    histories = history_rows(runs)
    summary = summarise(runs, histories, inputs.params.measures.segmentation, inputs.params.folds)
    write_measures(study.measures, summary)
    write_metrics(study.metrics, metric_values(summary))
    report = ReportData(classes=inputs.classes, runs=runs, missing=missing, histories=histories, summary=summary)
    write_report(study, report)
    study.costs.mkdir(parents=True, exist_ok=True)
    write_frame(study.costs / "costs.csv", costs_table(study, runs))
