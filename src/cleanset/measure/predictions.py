"""The stored predictions of a model on a set: a Parquet file, and beside it a record of what they were made from."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.files import read_bytes, sha256, write_text
from cleanset.parsing import parse_json
from cleanset.progress import print_notice
from cleanset.scoring.validity import MadeFrom
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
    read_table,
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


def read_finished(path: Path, made_from: MadeFrom) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Predictions and record of an earlier run that was made from the same, if they are there and unchanged.

    Prints why predictions that are there are computed again.
    """
    try:
        record = parse_json(read_bytes(path.with_suffix(".json")), str(path), "a record")
        if differences := made_from.differences(record):
            print_notice(f"{path}: computed again: {'; '.join(differences)}")
            return None
        unchanged = record["predictions_sha256"] == sha256(read_bytes(path))
        return (read_table(path, PREDICTIONS), record) if unchanged else None
    # a damaged record is like none: the predictions are computed again
    except (OSError, ValueError, LookupError, TypeError, CleansetError):
        return None
