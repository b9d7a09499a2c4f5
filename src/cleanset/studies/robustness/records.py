"""The records beside answers: what these were computed with, and whether that is what is measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.files import read_text, sha256
from cleanset.parsing import parse_json
from cleanset.validation import shown

REMEDY = "run dvc checkout to restore it, or the stage that writes it once more"


def images_sha256(images: pd.DataFrame) -> str:
    """A digest of the files of some rows of STUDY_IMAGES and of their bytes, in their order."""
    return sha256("\n".join(images["file"] + " " + images["file_sha256"]).encode())


def read_record(path: Path) -> dict[str, Any]:
    """A record of answers. Raises CleansetError if it is missing or none."""
    record = parse_json(read_text(path, REMEDY), str(path), f"the record of answers: {REMEDY}")
    if not isinstance(record, dict) or not isinstance(record.get("parameters"), int):
        raise CleansetError(f"{path}: no record of answers; expected weights, parameters, seed and images: {REMEDY}")
    return record


def check_record(path: Path, record: Mapping[str, Any], expected: Mapping[str, object]) -> None:
    """Raise CleansetError unless the record has the expected values, by key."""
    for key, value in expected.items():
        found = record.get(key)
        if found != value:
            raise CleansetError(
                f"{path}: answers with {key} {shown(found)}; expected {shown(value)}, as in this study: {REMEDY}"
            )
