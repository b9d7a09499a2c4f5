"""Where a robustness study keeps what, and its `params.yaml`, checked on reading."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator

from cleanset.edition.params import Role, Section
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.robustness.names import CORRUPTIONS, SEVERITIES, corruptions_of
from cleanset.validation import first_problem
from cleanset.yaml_files import read_yaml

_Severity = Annotated[int, Field(ge=1, le=5)]
PUBLISHED_REFERENCE = "alexnet"
"""The table of AlexNet's errors that source 003 published."""


@dataclass(frozen=True, slots=True)
class Study:
    """The paths of the study in `folder`, which lies in `studies/robustness` of its edition."""

    folder: Path

    @property
    def edition(self) -> Edition:
        """The edition whose finished sets are studied."""
        return Edition(self.folder / ".." / "..")

    @property
    def params_yaml(self) -> Path:
        return self.folder / "params.yaml"

    @property
    def images(self) -> Path:
        return self.folder / "data" / "images.parquet"

    @property
    def measures(self) -> Path:
        """The measures by severity and class, as CSV."""
        return self.folder / "data" / "measures"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics"

    @property
    def report(self) -> Path:
        return self.folder / "report"

    def predictions(self, role: str) -> Path:
        return self.folder / "data" / "corruptions" / f"{role}.parquet"

    def predicted_with(self, role: str) -> Path:
        """What the predictions were computed with: weights, seed, precision, versions."""
        return self.folder / "data" / "corruptions" / f"{role}.json"

    def partial_predictions(self, role: str) -> Path:
        return self.folder / "data" / "corruptions" / f"{role}.partial-shards"


def _names(names: list[str]) -> list[str]:
    try:
        corruptions_of(names)
    except CleansetError as error:
        raise ValueError(str(error)) from None
    return names


class Corruptions(Section):
    """The corruptions of source 003 that are measured, by name or group, and what CE is relative to.

    `reference`: `alexnet`, the published table, or a role of the edition. `trained_on`: by role, the corruptions that
    a model was trained with; mCE is given without them, too.
    """

    names: Annotated[list[str], Field(min_length=1, default_factory=lambda: list(CORRUPTIONS))]
    severities: Annotated[list[_Severity], Field(min_length=1, default_factory=lambda: list(SEVERITIES))]
    reference: Role = PUBLISHED_REFERENCE
    trained_on: Annotated[dict[Role, list[str]], Field(default_factory=dict)]

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        return _names(names)

    @field_validator("trained_on")
    @classmethod
    def _all_known(cls, trained_on: dict[str, list[str]]) -> dict[str, list[str]]:
        return {role: _names(names) for role, names in trained_on.items()}

    def changes(self) -> list[tuple[str, int]]:
        """Each corruption at each severity, in the order of the benchmark."""
        return [(name, severity) for name in corruptions_of(self.names) for severity in sorted(set(self.severities))]


class Bootstrap(Section):
    """How 95 % intervals are drawn: images are drawn within classes, `draws` times."""

    draws: Annotated[int, Field(ge=1, le=1_000_000)] = 1000


class StudyParams(Section):
    """All of a study's params.yaml.

    `images`: every model gets the images of all sets (union), or those of its own set only (own). `jpeg`: the quality
    at which a changed image is stored before a model sees it, as the benchmark's images were; None leaves that out.
    """

    images: Literal["union", "own"] = "union"
    jpeg: Annotated[int, Field(ge=1, le=100)] | None = 85
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    corruptions: Corruptions = Field(default_factory=lambda: Corruptions.model_validate({}))
    bootstrap: Bootstrap = Bootstrap()


def read_study_params(study: Study, roles: list[str]) -> StudyParams:
    """Read and check a study's params.yaml; `roles` are those of the edition. Raises CleansetError naming the key."""
    path = study.params_yaml
    try:
        params = StudyParams.model_validate(read_yaml(path, "expected the params of a study: git checkout it"))
    except ValidationError as error:
        raise CleansetError(f"{path}: {first_problem(error)}") from None
    corruptions = params.corruptions
    if params.images == "own" and corruptions.reference != PUBLISHED_REFERENCE:
        raise CleansetError(
            f"{path}: corruptions.reference: {corruptions.reference} sees other images than the models that it is the "
            f"reference of, with images: own; expected {PUBLISHED_REFERENCE}, or images: union"
        )
    for key, named in (("reference", [corruptions.reference]), ("trained_on", list(corruptions.trained_on))):
        known = [PUBLISHED_REFERENCE, *roles] if key == "reference" else roles
        for role in named:
            if role not in known:
                raise CleansetError(f"{path}: corruptions.{key}: {role} is no model; expected {', '.join(known)}")
    return params
