"""The record of the signs that a model only looks strong: data/attack_warnings/<model>.json. No torch."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cleanset.files import read_text, write_text
from cleanset.validation import parse_record

_REMEDY = "run dvc repro in the study, or dvc pull to fetch it"


class Seen(BaseModel):
    """A sign that was seen, by its name, and what it is based on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sign: str
    text: str


class WarningRecord(BaseModel):
    """The signs that were seen of a model, on so many images; `parameters`: those of the probe."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: str
    images: Annotated[int, Field(ge=0)]
    parameters: dict[str, Any]
    warnings: tuple[Seen, ...]


def read_warnings(path: Path) -> WarningRecord:
    """Read a record. Raises CleansetError if it is missing or not what stage attack_warnings writes."""
    text = read_text(path, _REMEDY)
    return parse_record(WarningRecord, text, path, f"what stage attack_warnings writes: {_REMEDY}")


def write_warnings(path: Path, record: WarningRecord) -> None:
    """Write a record."""
    write_text(path, json.dumps(record.model_dump(), indent=2) + "\n")
