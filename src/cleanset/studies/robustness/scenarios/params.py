"""The scenarios of XIMAGENET-12: their names and groups, and the params that choose among them and define them."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from cleanset.classes import MAX_CLASSES
from cleanset.plumbing.validation import Section, one_of, shown
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED, FamilySection, check_names, expand_groups

SCENARIO_GROUPS: dict[str, tuple[str, ...]] = {
    "blur": ("blur_background", "blur_object"),
    "color": ("image_grey", "image_r", "image_g", "image_b", "image_rainbow", "image_brightness"),
    "segmented": ("segmented_image",),
    "transparent": ("transparent_image",),
    "random": ("random_background",),
    "generated": ("generated_background",),
}
"""The six scenarios of XIMAGENET-12 and the sets of images that each stands for."""

SCENARIOS: tuple[str, ...] = tuple(name for group in SCENARIO_GROUPS.values() for name in group)
"""The 12 sets of images of XIMAGENET-12's scenarios."""

RANDOM = "random_background"
GENERATED = "generated_background"

ScenarioDefinition = Literal["as_written", "as_coded"]

MATTES: dict[str, tuple[int, int, int]] = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "grey": (128, 128, 128),
    "mean": (124, 116, 104),
}
"""Colours behind a transparent image; `mean` is ImageNet's mean, which the usual normalisation maps to 0."""

_FOLDER_NAME = re.compile("[a-z][a-z0-9_]*")
"""The form of changes' names in tables."""


def scenarios_of(names_or_groups: Iterable[str]) -> tuple[str, ...]:
    """The given sets of images, each scenario replaced by its members, in the order of SCENARIOS.

    Raises CleansetError for a name that is neither a set of images nor a scenario.
    """
    return expand_groups("scenario", names_or_groups, SCENARIO_GROUPS, known=SCENARIOS)


class Scenarios(FamilySection):
    """The scenarios of XIMAGENET-12 that are measured on the images that have a mask; a group stands for its members.

    `published` is a folder with all images of the sets that are whole; `names` are then of its folders, those of the
    benchmark first.
    """

    names: Annotated[list[str], Field(default_factory=lambda: list(SCENARIOS))]
    """The scenarios; a group stands for its members."""
    definition: ScenarioDefinition = "as_written"
    """The paper's text (as_written) or its published code (as_coded)."""
    matte: Literal["black", "white", "grey", "mean"] = "black"
    """The backdrop of transparent_image."""
    object_scales: Annotated[list[float], Field(min_length=2, max_length=2, default_factory=lambda: [0.5, 1.0])]
    """The smallest and the largest factor that random_background scales the object with."""
    object_weight: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The weight of the object over the photograph of random_background; 1: opaque."""
    object_moved: bool = True
    """Whether random_background scales and moves the object."""

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str], info: ValidationInfo) -> list[str]:
        if info.data.get("published") is None:
            return list(scenarios_of(check_names(names, scenarios_of)))
        for name in names:
            if name in (CLEAN, UNCHANGED) or not _FOLDER_NAME.fullmatch(name):
                raise ValueError(
                    f"{shown(name)} cannot name a scenario; expected a folder in published, of small letters, digits "
                    f"and _, other than {CLEAN} and {UNCHANGED}"
                )
        others = [name for name in names if name not in (*SCENARIOS, *SCENARIO_GROUPS)]
        return [*scenarios_of(name for name in names if name not in others), *dict.fromkeys(others)]

    @model_validator(mode="after")
    def _consistent(self) -> "Scenarios":
        if not 0 < self.object_scales[0] <= self.object_scales[1]:
            raise ValueError(
                f"object_scales: {self.object_scales}; expected two factors above 0, the smaller one first"
            )
        return self

    def changes(self) -> list[tuple[str, int]]:
        """Each scenario."""
        return [(name, 0) for name in self.names]


ORIGINAL = "original"
"""The images unchanged, in `trained` and in the training study."""


Scenario = Annotated[str, one_of(ORIGINAL, *SCENARIOS)]


class Baselines(Section):
    """The levels that the regression compares all others with. null: the first one."""

    model: str | None = None
    """The model."""
    scenario: str | None = None
    """The scenario, or `unchanged`."""
    class_index: Annotated[int, Field(ge=0, lt=MAX_CLASSES)] | None = None
    """The class index."""


MIN_TRAINED = 2
"""Scenarios that a variance needs."""

TrainedAccuracies = dict[Scenario, Annotated[float, Field(ge=0, le=1)]]
"""The accuracy of a network trained on each scenario, on its images that were held out; ORIGINAL is one of them."""


class ScenarioMeasures(Section):
    """The definition of a correct answer, the inner part of Score, and the baselines of the regression."""

    answers: Literal["all", "restricted"] = "all"
    """An answer is correct if the class is the most probable one of all (all), or of the edition's (restricted)."""
    inner: Literal["classes", "trained"] = "classes"
    """The inner part of Score is over the classes, as the paper's text has it (classes), or over the networks trained
    on each scenario, as its table 3 (trained)."""
    trained: dict[str, TrainedAccuracies] = Field(default_factory=dict)
    """By model, the accuracies of networks trained on original and on two or more scenarios; the training study
    writes them, in data/measures/trained.yaml."""
    baselines: Baselines = Field(default_factory=lambda: Baselines())
    """The levels that the regression compares with."""

    @model_validator(mode="after")
    def _whole(self) -> "ScenarioMeasures":
        if self.inner == "trained" and not self.trained:
            raise ValueError("inner: trained needs accuracies by model in trained: add them, or choose inner: classes")
        for model, accuracies in self.trained.items():
            if ORIGINAL not in accuracies or len(accuracies) <= MIN_TRAINED:
                raise ValueError(
                    f"trained.{model}: accuracies of {', '.join(accuracies) or 'nothing'}; expected {ORIGINAL} and "
                    f"{MIN_TRAINED} scenarios or more"
                )
        return self
