"""The twelve classes of the sample, in classes.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict

Difficulty = Literal["easy", "medium", "hard", "hopeless"]
Labels = Literal["one", "doubtful", "several", "other", "none"]


class Lot(BaseModel):
    """Images of one kind within a class; in the file a row."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int
    difficulty: Difficulty
    flaw: Literal["croppable", "lost"] | None = None
    labels: Labels = "one"


def _of_row(row: list[object]) -> dict[str, object]:
    return dict(zip(Lot.model_fields, row, strict=False))


Lots = list[Annotated[Lot, BeforeValidator(_of_row)]]


class SampleClass(BaseModel):
    """A class: where and how its object is placed, what may be next to it, and its images."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    places: list[str]
    turn: int
    foot: float | None = None
    lies: bool = False
    partners: list[str]
    lookalike: str | None = None
    lots: Lots | None = None
    flaws: dict[int, str] = {}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    usual_lots: Lots
    classes: dict[str, SampleClass]


_FILE = _File.model_validate(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")))
USUAL_LOTS = _FILE.usual_lots
SAMPLE_CLASSES: Mapping[str, SampleClass] = _FILE.classes
