"""A training study whose runs are finished: its files are written down, nothing is trained."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from cleanset.studies.training.study import TrainingStudy

CLASSES = (3, 8)
SCENARIOS = ("blur_object", "random_background")
PARAMS: dict[str, Any] = {
    "data": {"images": "images"},
    "folds": 3,
    "runs": {
        "ex1": {"network": {"name": "test_vit"}, "epochs": 4, "folds": 3, "test": ["original", *SCENARIOS]},
        "ex2_blur": {"network": {"name": "test_vit"}, "epochs": 4, "folds": 3, "scenario": "blur_object"},
        "ex2_random": {"network": {"name": "test_vit"}, "epochs": 4, "folds": 3, "scenario": "random_background"},
        "adversarial": {
            "network": {"name": "test_vit"}, "epochs": 4, "folds": 3, "recipe": "adversarial",
            "adversarial": {"eps": "4/255", "steps": 2, "step": "2/255"},
        },
    },
    "grids": {"ex2": ["ex2_*"]},
}  # fmt: skip
"""Four runs of one network: EX1, EX2 on two scenarios, and another recipe."""
CORRECT = {
    ("ex1", "original"): (18, 18, 18), ("ex1", "blur_object"): (12, 14, 16), ("ex1", "random_background"): (2, 4, 6),
    ("ex2_blur", "blur_object"): (16, 16, 16), ("ex2_random", "random_background"): (12, 12, 12),
    ("adversarial", "original"): (14, 15, 16),
}  # fmt: skip
"""Correct ones of 20 images of each of the two classes, by run, scenario and fold."""


def finished_study(folder: Path, params: dict[str, Any] | None = None) -> TrainingStudy:
    """The study, written to a folder below `folder`."""
    study = TrainingStudy(folder / "studies" / "training")
    study.folder.mkdir(parents=True)
    study.params_yaml.write_text(yaml.safe_dump(params or PARAMS, sort_keys=False))
    for name, run in (params or PARAMS)["runs"].items():
        scenarios = run.get("test") or [run.get("scenario", "original")]
        for fold in range(run["folds"]):
            counts = [(each, CORRECT[name, each][fold]) for each in scenarios]
            write_fold(study, name, f"fold_{fold + 1:02d}", run["epochs"], counts)
    return study


def write_fold(study: TrainingStudy, run: str, fold: str, epochs: int, counts: Sequence[tuple[str, int]]) -> None:
    """The files that training leaves; the loss falls by half at every epoch."""
    files, epoch = study.fold(run, fold), np.arange(1, epochs + 1)
    files.folder.mkdir(parents=True)
    history = pd.DataFrame({"epoch": epoch, "step": 10 * epoch})
    for part, first in (("train", 2.0), ("validation", 3.0)):
        history[f"{part}_loss"] = first / 2**epoch
        history[f"{part}_accuracy"] = 1 - 0.5 / epoch
    history["rate"] = 0.1
    files.history.write_text(history.to_csv(index=False))
    record = {"parameters_in_millions": 0.37, "epoch": epochs, "epochs": epochs}
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
