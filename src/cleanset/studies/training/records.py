"""The files of a finished training beside its weights: history, record, costs."""

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from cleanset.files import sha256, write_text
from cleanset.studies.training.loop import Row, Trained
from cleanset.studies.training.params import Run

LIBRARIES = ("numpy", "opencv-python-headless", "pillow", "timm", "torch", "torchvision")
CODE = ("studies/robustness", "studies/attacks", "studies/training")
"""The packages that decide a network's weights."""
LIBRARIES_BY_TASK = {"classification": LIBRARIES, "segmentation": (*LIBRARIES, "segmentation-models-pytorch")}
_HISTORY_FIRST, _HISTORY_LAST = ("epoch", "step"), ("rate",)
_SIGNIFICANT = 9
"""Digits of a number in a history: all of a float32."""


def device_kind(device: torch.device) -> str:
    """The name of a GPU, or cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def history_csv(history: Sequence[Row]) -> str:
    """The history as CSV: epoch, step, measures of training and validation, rate."""
    table = pd.DataFrame(history)
    inner = [name for name in table.columns if name not in (*_HISTORY_FIRST, *_HISTORY_LAST)]
    table = table[[*_HISTORY_FIRST, *inner, *_HISTORY_LAST]].astype({"epoch": int, "step": int})
    return str(table.to_csv(index=False, lineterminator="\n", float_format=f"%.{_SIGNIFICANT}g"))


def write_record(path: Path, settings: Mapping[str, Any], trained: Trained, weights: Path, parameters: float) -> None:
    """Write everything that the weights follow from, and their SHA-256; nothing that differs from run to run."""
    record = {
        **settings,
        "parameters_in_millions": parameters,
        "epoch": trained.epoch,
        "epochs": len(trained.history),
        "weights_sha256": sha256(weights.read_bytes()),
    }
    write_text(path, json.dumps(record, indent=2) + "\n")


def write_costs(path: Path, run: Run, trained: Trained, device: torch.device, parameters: float) -> None:
    """Write seconds and images a second, of interrupted processes too, and the peak memory of this one.

    They differ from run to run, as does the time at which it finished, in UTC.
    """
    costs = {
        "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": device_kind(device),
        "step": int(trained.history[-1]["step"]),
        "batch": run.batch,
        "size": run.size,
        "seconds": round(trained.seconds, 3),
        "images": trained.images,
        "images_per_second": round(trained.images / max(trained.seconds, 1e-9), 3),
        "peak_memory_bytes": peak_memory(device),
        "parameters_in_millions": parameters,
    }
    write_text(path, json.dumps(costs, indent=2) + "\n")


def peak_memory(device: torch.device) -> int:
    """Bytes that this process took at most: of the GPU, or of main memory."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    # Linux counts in kilobytes, macOS in bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
