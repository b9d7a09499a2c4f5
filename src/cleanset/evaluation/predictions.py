"""The predictions of a model on a set, and the files that hold them, with a record."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.evaluation.sets import Item
from cleanset.files import read_bytes, sha256, write_text
from cleanset.parsing import parse_json
from cleanset.tables import (
    CLASS,
    FILE,
    FLAG,
    LOG_ODDS,
    PROBABILITY,
    SCORES,
    SHA256,
    TIER,
    TOP5_CLASSES,
    Table,
    nullable,
    read_table,
    write_table,
)
from cleanset.tables import TOP5_PROBABILITIES as PROBABILITIES

PREDICTIONS = Table(
    key=("file",),
    file=FILE,  # within the set
    class_index=CLASS,  # of the set
    tier=nullable(TIER),
    sha256=SHA256,  # of the bytes of the file
    prediction=CLASS,  # the top-1 class
    confidence=PROBABILITY,  # its softmax probability
    correct=FLAG,
    top5_class=TOP5_CLASSES,
    top5_probability=PROBABILITIES,
    log_odds=LOG_ODDS,  # of the top-1 class
)
_SCORES: dict[str, Any] = SCORES.columns | {"image_id": FILE}
NAMED_SCORES = Table(**_SCORES)
"""SCORES of images that have any names."""


def predictions(items: Sequence[Item], scores: pd.DataFrame) -> pd.DataFrame:
    """The columns of PREDICTIONS, from the scores of exactly these items, in the same order."""
    if scores["image_id"].tolist() != [item.file for item in items]:
        raise ValueError("scores of other images than the set has")
    classes = pd.Series([item.class_index for item in items], dtype="int16")
    first = scores["top5_class"].str[0].astype("int16").reset_index(drop=True)
    return pd.DataFrame(
        {
            "file": [item.file for item in items],
            "class_index": classes,
            "tier": pd.Series([item.tier for item in items], dtype=object),
            "sha256": [item.sha256 for item in items],
            "prediction": first,
            "confidence": scores["top5_probability"].str[0].astype("float32").tolist(),
            "correct": first == classes,
            "top5_class": scores["top5_class"].tolist(),
            "top5_probability": scores["top5_probability"].tolist(),
            "log_odds": scores["log_odds"].tolist(),
        }
    )


def write_predictions(path: Path, table: pd.DataFrame, record: dict[str, Any]) -> None:
    """Write predictions, and beside them as JSON what they were computed with and their SHA-256."""
    write_table(path, table, PREDICTIONS)
    content = record | {"predictions_sha256": sha256(path.read_bytes())}
    write_text(path.with_suffix(".json"), json.dumps(content, indent=2) + "\n")


def read_finished(path: Path, fingerprint: str) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Predictions and record of an earlier run with the same fingerprint, if they are there and unchanged."""
    try:
        record = parse_json(read_bytes(path.with_suffix(".json")), str(path), "a record")
        same = record["fingerprint"] == fingerprint and record["predictions_sha256"] == sha256(read_bytes(path))
        return (read_table(path, PREDICTIONS), record) if same else None
    # a damaged record is like none: the predictions are computed again
    except (OSError, ValueError, LookupError, TypeError, CleansetError):
        return None
