"""The record of the signs of gradient masking that a model showed: data/attack_warnings/<model>.json."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

from cleanset.plumbing.json_files import read_json, write_json
from cleanset.studies.attacks.baselines import Baselines
from cleanset.studies.attacks.results import ALL_TRUSTED, Attacked, ProbedImages, Trust
from cleanset.studies.attacks.signs import SeenSign
from cleanset.studies.attacks.threats import Ball

_REMEDY = "run dvc repro in studies/attacks, or dvc pull to fetch it"


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Candidate:
    """The image that the probe found near another one, judged as those of all attacks are."""

    file: str
    """The image that it was made of, by its file in the finished set."""

    search: str
    """The search that found it: the first one to find a misclassified image, or else the strongest."""

    was_correct: bool
    """Whether the model classifies the image itself correctly."""

    is_error: bool
    """Whether the model misclassifies the candidate."""

    l2: float
    """Its distance from the image, of pixels in 0..1."""

    linf: float
    """Its largest change of a color, 0 to 1."""

    png_sha256: str
    """SHA-256 of its PNG."""

    png: str | None = None
    """The PNG in base64, if it breaks the image; None if the file is elsewhere."""


class WarningRecord(BaseModel):
    """The signs that a model showed on a number of images; `parameters`: the parameters of the probe.

    `files`: these images. `not_told`: the signs that so few images, or a model alone, cannot show. `candidates`: what
    the probe found near each image; empty if it made no search. `baselines`: what it found in growing balls and by
    noise; None without a search.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: str
    images: Annotated[int, Field(ge=0)]
    files: tuple[str, ...] = ()
    parameters: dict[str, Any]
    warnings: tuple[SeenSign, ...]
    not_told: tuple[SeenSign, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    baselines: Baselines | None = None

    @property
    def ball(self) -> Ball:
        """The ball that the probe searched."""
        return Ball("Linf", float(self.parameters["eps"]))

    @property
    def trust(self) -> Trust:
        """The images whose gradient can be trusted."""
        return trust_of(self.warnings, self.files)

    @property
    def probed(self) -> ProbedImages | None:
        """What the probe found; None if it made no search."""
        if not self.candidates:
            return None
        columns = ("file", "was_correct", "is_error", "l2", "linf")
        rows = {name: [getattr(each, name) for each in self.candidates] for name in columns}
        return ProbedImages(rows=pd.DataFrame(rows), ball=self.ball)


def trust_of(signs: Collection[SeenSign], files: Collection[str]) -> Trust:
    """The images whose gradient can be trusted: none if more than half of the probed `files` have a sign."""
    images = frozenset(file for each in signs for file in each.images or ())
    # what misleads on most images misleads on the others, too, where the probe does not see it
    if any(each.images is None for each in signs) or 2 * len(images) > len(files):
        return Trust(checked=frozenset(), untrusted=None)
    return Trust(checked=frozenset(files), untrusted=images)


def attacked_model(results: Mapping[str, pd.DataFrame], record: WarningRecord | None) -> Attacked:
    """The results of all attacks on a model, rows of ATTACKED by attack, with its warnings; None: not looked for."""
    return Attacked(
        results=results,
        probed=None if record is None else record.probed,
        trust=ALL_TRUSTED if record is None else record.trust,
    )


def read_warnings(path: Path) -> WarningRecord:
    """Read a record of stage attack_warnings. Raises CleansetError if it is missing or invalid."""
    found: WarningRecord = read_json(path, WarningRecord, "the output of stage attack_warnings", _REMEDY)
    return found


def write_warnings(path: Path, record: WarningRecord) -> None:
    """Write a record."""
    write_json(path, record.model_dump())
