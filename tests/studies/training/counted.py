"""Counts of test images by run, fold, scenario and class, written down."""

from collections.abc import Mapping, Sequence

import pandas as pd

from cleanset.studies.training.experiments import ComparedRun

CLASSES = (3, 8)


def counted(counts: Mapping[tuple[str, str], Sequence[int]], images: int = 10) -> pd.DataFrame:
    """A test table: by run and scenario, the correct ones of each fold's class 3; class 8 has as many."""
    rows = [
        (run, f"fold_{fold:02d}", scenario, index, images, correct, 1.0)
        for (run, scenario), by_fold in counts.items()
        for fold, correct in enumerate(by_fold, start=1)
        for index in CLASSES
    ]
    return pd.DataFrame(rows, columns=["run", "fold", "scenario", "class_index", "images", "correct", "loss"])


def run_of(name: str, scenario: str, **changed: object) -> ComparedRun:
    """A run on a scenario, of the same network and settings as the others."""
    given: dict[str, object] = {
        "network": "timm:test", "recipe": "standard", "protocol": "as_coded", "parameters": 7,
        "settings": {"rate": 0.1},
    }  # fmt: skip
    return ComparedRun(name, scenario=scenario, **{**given, **changed})  # type: ignore[arg-type]
