"""The stored predictions of a model on a set: a Parquet file, and beside it a record of what they were made from."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.files import sha256, write_text
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
    TOP5_PROBABILITIES,
    Table,
    nullable,
    write_table,
)

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
    top5_probability=TOP5_PROBABILITIES,
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
