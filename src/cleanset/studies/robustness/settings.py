"""A study's `params.yaml`, checked on reading."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.sections import Role, Section
from cleanset.studies.robustness.mask_formats import FORMATS
from cleanset.studies.robustness.names import (
    CLEAN,
    CORRUPTIONS,
    LEVELS,
    NOISE_PERTURBATIONS,
    SCENARIO_GROUPS,
    SCENARIOS,
    SEVERITIES,
    UNCHANGED,
    corruptions_of,
    frame_count,
    perturbations_of,
    scenarios_of,
)
from cleanset.studies.robustness.scenarios import MATTES
from cleanset.studies.robustness.scenarios import Definition as ScenarioDefinition
from cleanset.validation import check_known, first_problem, shown
from cleanset.yaml_files import read_yaml

_Folder = Annotated[str, Field(min_length=1)]
"""A path, relative to the folder of params.yaml."""
_Severity = Annotated[int, Field(ge=1, le=5)]
PUBLISHED_REFERENCE = "alexnet"
"""The table of AlexNet's errors that source 003 published."""

_FOLDER_NAME = re.compile("[a-z][a-z0-9_]*")
"""As changes are named in tables."""

GENERATED = "generated_background"
RANDOM = "random_background"


class Corruptions(Section):
    """The corruptions of source 003 that are measured, by name or group, and what CE is relative to.

    `reference`: `alexnet`, the published table, or a role of the edition. `trained_on`: by role, the corruptions that
    a model was trained with; mCE is given without them, too. `published`: a folder of ImageNet-C's images, which are
    read instead of made; None: they are made.
    """

    names: Annotated[list[str], Field(min_length=1, default_factory=lambda: list(CORRUPTIONS))]
    severities: Annotated[list[_Severity], Field(min_length=1, default_factory=lambda: list(SEVERITIES))]
    reference: str = PUBLISHED_REFERENCE
    trained_on: Annotated[dict[str, list[str]], Field(default_factory=dict)]
    published: _Folder | None = None

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        return _checked(names, corruptions_of)

    @field_validator("trained_on")
    @classmethod
    def _all_known(cls, trained_on: dict[str, list[str]]) -> dict[str, list[str]]:
        return {role: _checked(names, corruptions_of) for role, names in trained_on.items()}

    def changes(self) -> list[tuple[str, int]]:
        """Each corruption at each severity, in the order of the benchmark."""
        return [(name, severity) for name in corruptions_of(self.names) for severity in sorted(set(self.severities))]


class Perturbations(Section):
    """The perturbations of source 003 that are measured, by name or group.

    `difficulty`: the level of noise, and the step between the frames that are compared of all others. `frames`: 31, of
    translate 41 (`as_published`), or 30 of each (`as_written`). `max_images`: only so many, the first of each
    class, then the second, and so on; None: all. `reference`: the role that FR is relative to; None: no FR.
    `published`: a folder of ImageNet-P's videos, which are read instead of made; None: they are made.
    """

    names: Annotated[list[str], Field(default_factory=list)]
    difficulty: Annotated[int, Field(ge=LEVELS[0], le=LEVELS[-1])] = 1
    frames: Literal["as_published", "as_written"] = "as_published"
    max_images: Annotated[int, Field(ge=1)] | None = None
    reference: str | None = None
    published: _Folder | None = None

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        return _checked(names, perturbations_of)

    def levels(self) -> dict[str, int]:
        """The level at which each perturbation is made; the difficulty of what is no noise is not in its frames."""
        noise = dict.fromkeys(NOISE_PERTURBATIONS, self.difficulty)
        return {name: noise.get(name, 1) for name in perturbations_of(self.names)}

    def frame_counts(self) -> dict[str, int]:
        """The number of frames of each perturbation, in the order of the benchmark."""
        as_in_text = self.frames == "as_written"
        return {name: frame_count(name, as_in_text=as_in_text) for name in perturbations_of(self.names)}

    def changes(self) -> list[tuple[str, int]]:
        """Each frame of each perturbation."""
        return [(name, frame) for name, count in self.frame_counts().items() for frame in range(count)]


class MaskFolder(Section):
    """Masks of objects, one file an image named by its id: a folder inside `masks`, its format, and who made them."""

    folder: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    format: str = "png"
    origin: Literal["person", "generator", "model"]

    @field_validator("format")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            check_known("mask format", name, FORMATS)
        except CleansetError as error:
            raise ValueError(str(error)) from None
        return name


class Scenarios(Section):
    """The scenarios of source 002 that are measured, by name or group, on the images that have a mask.

    `published`: a folder of images, which are read instead of made, of all images of the sets that are whole; `names`
    are then of its folders; None: they are made.

    `definition`: the paper's text or its published code. `matte`: what transparent_image is seen over.
    `object_scales`, `object_weight` and `object_moved` are those of random_background. `answers`: correct if the
    class is the most probable one of all 1,000 (all), or of the edition's classes (restricted). `baselines`: the
    model, scenario and class index that the regression compares with; those left out are the first ones.
    """

    published: _Folder | None = None  # before names, which are checked by it
    names: Annotated[list[str], Field(default_factory=list)]
    definition: ScenarioDefinition = "as_written"
    matte: str = "black"
    object_scales: Annotated[list[float], Field(min_length=2, max_length=2, default_factory=lambda: [0.5, 1.0])]
    object_weight: Annotated[float, Field(gt=0, le=1)] = 1.0
    object_moved: bool = True
    answers: Literal["all", "restricted"] = "all"
    baselines: "Baselines" = Field(default_factory=lambda: Baselines())

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str], info: ValidationInfo) -> list[str]:
        if info.data.get("published") is None:
            return _checked(names, scenarios_of)
        for name in names:
            if name in (CLEAN, UNCHANGED) or not _FOLDER_NAME.fullmatch(name):
                raise ValueError(
                    f"{shown(name)} cannot name a scenario; expected a folder in published, of small letters, digits "
                    f"and _, other than {CLEAN} and {UNCHANGED}"
                )
        return names

    @model_validator(mode="after")
    def _consistent(self) -> "Scenarios":
        if self.matte not in MATTES:
            raise ValueError(f"matte: {self.matte!r} is no matte; expected one of {', '.join(MATTES)}")
        if not 0 < self.object_scales[0] <= self.object_scales[1]:
            raise ValueError(f"object_scales: {self.object_scales}; expected a smallest above 0, and a largest")
        return self

    def changes(self) -> list[tuple[str, int]]:
        """Each scenario, in the order of `expanded`."""
        return [(name, 0) for name in self.expanded()]

    def expanded(self) -> tuple[str, ...]:
        """The scenarios, groups replaced by their members: in the order of the benchmark, others of a folder last."""
        others = [name for name in self.names if name not in (*SCENARIOS, *SCENARIO_GROUPS)]
        return (*scenarios_of(name for name in self.names if name not in others), *dict.fromkeys(others))


class Baselines(Section):
    """The levels that the regression compares all others with."""

    model: str | None = None
    scenario: str | None = None
    class_index: Annotated[int, Field(ge=0, le=999)] | None = None


class Bootstrap(Section):
    """How 95 % intervals are drawn: images are drawn within classes, `draws` times."""

    draws: Annotated[int, Field(ge=1, le=1_000_000)] = 1000


class StudyParams(Section):
    """All of a study's params.yaml.

    `images`: every model gets the images of all sets (union), or those of its own set only (own). `jpeg`: the quality
    at which a changed image is stored before a model sees it, as the benchmark's images were; None leaves that out.
    `further_models`: models that are measured beside those of the edition, whose folder `weights` are relative to.
    """

    images: Literal["union", "own"] = "union"
    jpeg: Annotated[int, Field(ge=1, le=100)] | None = 85
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    corruptions: Corruptions = Field(default_factory=lambda: Corruptions.model_validate({}))
    perturbations: Perturbations = Field(default_factory=lambda: Perturbations.model_validate({}))
    masks: Annotated[list[MaskFolder], Field(default_factory=list)]
    scenarios: Scenarios = Field(default_factory=lambda: Scenarios.model_validate({}))
    bootstrap: Bootstrap = Bootstrap()
    further_models: Annotated[dict[Role, Model], Field(default_factory=dict)]

    @field_validator("further_models")
    @classmethod
    def _no_table(cls, models: dict[str, Model]) -> dict[str, Model]:
        if PUBLISHED_REFERENCE in models:
            raise ValueError(f"{PUBLISHED_REFERENCE} names the published table; expected another role")
        return models

    def published(self, family: str) -> str | None:
        """The folder of published images of one of FAMILIES; None: its images are made."""
        return self._section(family).published

    def changes(self, family: str) -> list[tuple[str, int]]:
        """Each change of one of FAMILIES, and its step."""
        return self._section(family).changes()

    def _section(self, family: str) -> Corruptions | Perturbations | Scenarios:
        section: Corruptions | Perturbations | Scenarios = getattr(self, family)
        return section

    def models(self, roles: Iterable[str]) -> list[str]:
        """The models that are measured: those of the edition, then the further ones."""
        return [*roles, *self.further_models]


def families_of(params: StudyParams) -> list[str]:
    """Those of FAMILIES that the params name a change of."""
    named = {
        "corruptions": params.corruptions.names,
        "perturbations": params.perturbations.names,
        "scenarios": params.scenarios.names,
    }
    return [family for family, names in named.items() if names]


def _checked(names: list[str], expanded: object) -> list[str]:
    try:
        expanded(names)  # type: ignore[operator]
    except CleansetError as error:
        raise ValueError(str(error)) from None
    return names


def read_study_params(
    path: Path, roles: Sequence[str], others: Sequence[str] = (), *, further: bool = True
) -> StudyParams:
    """Read and check a study's params.yaml. Raises CleansetError naming the key.

    `roles` are the models of the edition, `others` models that `corruptions.trained_on` may name beside those that are
    measured. Without `further` those of `further_models` are not measured.
    """
    content = read_yaml(path, "expected the params of a study: git checkout it")
    if isinstance(content, dict) and "attack" in content:
        raise CleansetError(
            f"{path}: attack: this section has become a file of its own; expected its keys in "
            "studies/attacks/params.yaml: move them there"
        )
    try:
        params = StudyParams.model_validate(content)
    except ValidationError as error:
        raise CleansetError(f"{path}: {first_problem(error)}") from None
    for role in params.further_models if further else ():
        if role in roles:
            raise CleansetError(f"{path}: further_models.{role}: the edition has this role; expected another one")
        if params.images == "own":
            raise CleansetError(f"{path}: further_models: {role} has no set of its own; expected images: union")
    for key, named, known in _named_roles(params, params.models(roles) if further else list(roles), list(others)):
        if named not in known:
            raise CleansetError(f"{path}: {key}: {named} is no model; expected {', '.join(known)}")
        if params.images == "own" and key.endswith("reference") and named != PUBLISHED_REFERENCE:
            raise CleansetError(
                f"{path}: {key}: {named} sees other images than the models that it is the reference of, with "
                f"images: own; expected {' or '.join(_without_role(key))}, or images: union"
            )
    if params.scenarios.names and params.scenarios.published is None and not params.masks:
        raise CleansetError(f"{path}: scenarios.names: scenarios need masks; expected folders of them in masks")
    return params


def _named_roles(params: StudyParams, roles: list[str], others: list[str]) -> list[tuple[str, str, list[str]]]:
    """The roles that the params name: key, role, and what is known there."""
    corruptions, baseline = params.corruptions, params.scenarios.baselines.model
    found = [("corruptions.reference", corruptions.reference, [PUBLISHED_REFERENCE, *roles])]
    found += [("corruptions.trained_on", role, [*roles, *others]) for role in corruptions.trained_on]
    if params.perturbations.reference is not None:
        found.append(("perturbations.reference", params.perturbations.reference, roles))
    if baseline is not None:
        found.append(("scenarios.baselines.model", baseline, roles))
    return found


def _without_role(key: str) -> list[str]:
    return [PUBLISHED_REFERENCE] if key.startswith("corruptions") else ["no reference"]
