"""A training study whose runs are finished: its files are written down, nothing is trained."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from PIL import Image

from cleanset.studies.training.finished import FoldRecord
from cleanset.studies.training.study import TrainingStudy

CLASSES = (3, 8)
SCENARIOS = ("blur_object", "random_background")
PARAMS: dict[str, Any] = {
    "data": {"images": "images"},
    "folds": 3,
    "runs": {
        "ex1": {"network": {"name": "test_vit"}, "epochs": 4, "folds": 3, "test": ["original", *SCENARIOS]},
        "ex2_blur": {"network": {"name": "test_vit"}, "epochs": 4, "folds": 3, "scenario": "blur_object",
            "trained_on": ["defocus_blur", "gaussian_blur"],
        },
        "ex2_random": {"network": {"name": "test_vit"}, "epochs": 4, "folds": 3, "scenario": "random_background"},
        "adversarial": {
            "network": {"name": "test_vit"}, "epochs": 4, "folds": 3, "recipe": "adversarial",
            "adversarial": {"eps": "4/255", "steps": 2, "step": "2/255"},
        },
        "ex3_fpn": {
            "network": {"source": "smp", "name": "fpn", "encoder": "test_efficientnet"}, "steps": 20, "folds": 1,
            "task": "segmentation", "test": ["original", "random_background"],
        },
        "ex3_upernet": {
            "network": {"source": "smp", "name": "upernet", "encoder": "test_efficientnet"}, "steps": 20, "folds": 1,
            "task": "segmentation", "test": ["original", "random_background"],
        },
    },
    "grids": {"ex2": ["ex2_*"]},
}  # fmt: skip
"""Four runs of one network, EX1, EX2 on two scenarios, and another recipe; and two of segmentation."""
CORRECT = {
    ("ex1", "original"): (18, 18, 18), ("ex1", "blur_object"): (12, 14, 16), ("ex1", "random_background"): (2, 4, 6),
    ("ex2_blur", "blur_object"): (16, 16, 16), ("ex2_random", "random_background"): (12, 12, 12),
    ("adversarial", "original"): (14, 15, 16),
}  # fmt: skip
"""Correct ones of 20 images of each of the two classes, by run, scenario and fold."""


def record_of(parameters_in_millions: float = 1.0, epoch: int = 1) -> FoldRecord:
    """The record of an otherwise unknown fold."""
    return FoldRecord(
        parameters_in_millions=parameters_in_millions, epoch=epoch, epochs=3, training_images=54, kept="the last epoch"
    )


def finished_study(folder: Path, params: dict[str, Any] | None = None) -> TrainingStudy:
    """The study, written to a folder below `folder`."""
    study = TrainingStudy(folder / "studies" / "training")
    study.folder.mkdir(parents=True)
    study.params_yaml.write_text(yaml.safe_dump(params or PARAMS, sort_keys=False))
    for name, run in (params or PARAMS)["runs"].items():
        scenarios = run.get("test") or [run.get("scenario", "original")]
        if run.get("task") == "segmentation":
            write_segmentation(study, name)
            continue
        for fold in range(run["folds"]):
            counts = [(each, CORRECT[name, each][fold]) for each in scenarios]
            write_fold(study, name, f"fold_{fold + 1:02d}", run["epochs"], counts)
    return study


def write_segmentation(study: TrainingStudy, run: str) -> None:
    """The files of a segmentation run: 600 of 1,000 pixels in both, fewer on other backgrounds, and two tiles."""
    write_fold(study, run, "fold_01", 2, [])
    rows = []
    for name, lost in (("original", 0), ("random_background", 100 if run == "ex3_fpn" else 250)):
        for place, index in enumerate((-1, *CLASSES)):
            # not the same in every class, so that something is left to the residuals
            both = 600 - lost + 10 * place * (1 if lost else 2)
            rows.append((name, index, 4, 1000, both, 1400 - both, both // 4, 200))
    columns = ["pixels", "intersection", "union", "boundary_intersection", "boundary_union"]
    table = pd.DataFrame(rows, columns=["scenario", "class_index", "images", *columns])
    files = study.fold(run, "fold_01")
    files.test.write_text(table.to_csv(index=False))
    sheets = files.folder / "sheets"
    sheets.mkdir()
    lines = ["scenario,place,number,file,class_index,iou,tile"]
    for side, iou in (("best", 0.875), ("worst", 0.125)):
        tile = f"original_{side}_1.jpg"
        lines.append(f"original,{side},1,n01484850/a.jpg,3,{iou},{tile}")
        Image.new("RGB", (8, 8), (0, 114, 178)).save(sheets / tile)
    (sheets / "sheets.csv").write_text("\n".join([*lines, ""]))


def write_fold(study: TrainingStudy, run: str, fold: str, epochs: int, counts: Sequence[tuple[str, int]]) -> None:
    """The files that training leaves; the loss falls by half at every epoch."""
    files, epoch = study.fold(run, fold), np.arange(1, epochs + 1)
    files.folder.mkdir(parents=True)
    history = pd.DataFrame({"epoch": epoch, "step": 10 * epoch})
    for part, first in (("train", 2.0), ("validation", 3.0)):
        history[f"{part}_loss"] = first / 2**epoch
        history[f"{part}_{'mean_iou' if run.startswith('ex3') else 'accuracy'}"] = 1 - 0.5 / epoch
    history["rate"] = 0.1
    files.history.write_text(history.to_csv(index=False))
    record = {
        "parameters_in_millions": 0.37, "epoch": epochs, "epochs": epochs, "training_images": 54,
        "kept": "the smallest loss on images set aside",
    }  # fmt: skip
    files.record.write_text(json.dumps(record))
    rows = [(name, index, 20, correct, 0.5) for name, correct in counts for index in CLASSES]
    test = pd.DataFrame(rows, columns=["scenario", "class_index", "images", "correct", "loss"])
    files.test.write_text(test.to_csv(index=False))
    costs = {
        "device": "cpu", "seconds": 10.0 if run == "ex1" else 20.0, "images": 1000,
        "images_per_second": 100.0 if run == "ex1" else 50.0, "peak_memory_bytes": 3 * 2**20,
        "finished": "2026-01-02T03:04:05Z", "step": 10 * epochs,
    }  # fmt: skip
    study.cost(run, fold).parent.mkdir(parents=True, exist_ok=True)
    study.cost(run, fold).write_text(json.dumps(costs))
