"""Files of a model's predictions, with a record."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.errors import CleansetError
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
