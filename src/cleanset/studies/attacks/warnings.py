"""The record of the signs of gradient masking that a model showed: data/attack_warnings/<model>.json."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cleanset.files import write_text
from cleanset.json_files import read_json
from cleanset.studies.attacks.signs import SeenSign

_REMEDY = "run dvc repro in studies/attacks, or dvc pull to fetch it"


class WarningRecord(BaseModel):
    """The signs that a model showed on a number of images; `parameters`: the parameters of the probe.

    `not_told`: the signs that so few images, or a model alone, cannot show.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: str
    images: Annotated[int, Field(ge=0)]
    parameters: dict[str, Any]
    warnings: tuple[SeenSign, ...]
    not_told: tuple[SeenSign, ...] = ()


def read_warnings(path: Path) -> WarningRecord:
    """Read a record of stage attack_warnings. Raises CleansetError if it is missing or invalid."""
    found: WarningRecord = read_json(path, WarningRecord, "the output of stage attack_warnings", _REMEDY)
    return found


def write_warnings(path: Path, record: WarningRecord) -> None:
    """Write a record."""
    write_text(path, json.dumps(record.model_dump(), indent=2) + "\n")
