"""The perturbations of ImageNet-P: their names, groups and frames, and the params that choose among them.

Source: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations"
(ICLR 2019). In the order of its tables.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cleanset.plumbing.validation import AtLeastOne, Section, check_known
from cleanset.studies.robustness.sections import FamilySection, check_names, expand_groups

PERTURBATION_GROUPS: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise"),
    "blur": ("motion_blur", "zoom_blur"),
    "weather": ("snow", "brightness"),
    "digital": ("translate", "rotate", "tilt", "scale"),
}
"""The 10 test perturbations of ImageNet-P, over which mFP, mFR and mT5D are the mean."""

PERTURBATIONS: tuple[str, ...] = tuple(name for group in PERTURBATION_GROUPS.values() for name in group)
"""The 10 test perturbations."""

VALIDATION_PERTURBATIONS: tuple[str, ...] = ("speckle_noise", "gaussian_blur", "spatter", "shear")
"""The 4 perturbations that ImageNet-P adds for tuning."""

ALL_PERTURBATIONS: tuple[str, ...] = PERTURBATIONS + VALIDATION_PERTURBATIONS
"""The 10 test perturbations and then the 4 validation ones."""

NOISE_PERTURBATIONS: tuple[str, ...] = ("gaussian_noise", "shot_noise", "speckle_noise")
"""Perturbations whose frames are compared with the first one, and depend on difficulty."""

NOISE_DIFFICULTIES = (1, 2, 3)
"""Difficulties at which noise is made; for all others the difficulty is a step between frames."""

FRAMES = 31
"""Frames of a published sequence, but for translate."""

TRANSLATE_FRAMES = 41
"""Frames of a published sequence of translate."""

FIRST_FRAMES = 30
"""Frames of every sequence in summaries of ImageNet-P (the paper: more than 30)."""


def frame_count(name: str, *, first_30: bool = False) -> int:
    """The number of frames of a perturbation: 31, of translate 41; with `first_30` the first 30 of each.

    Raises CleansetError for an unknown perturbation.
    """
    check_known("perturbation", name, ALL_PERTURBATIONS)
    if first_30:
        return FIRST_FRAMES
    return TRANSLATE_FRAMES if name == "translate" else FRAMES


def perturbations_of(names_or_groups: Iterable[str]) -> tuple[str, ...]:
    """The given perturbations, each group replaced by its members, in the order of ALL_PERTURBATIONS.

    Raises CleansetError for a name that is neither a perturbation nor a group.
    """
    return expand_groups("perturbation", names_or_groups, PERTURBATION_GROUPS, known=ALL_PERTURBATIONS)


_Known = AfterValidator(lambda names: check_names(names, perturbations_of))
_Expanded = Annotated[list[str], _Known, AfterValidator(lambda names: list(perturbations_of(names)))]


class Perturbations(FamilySection):
    """The perturbations of ImageNet-P that are measured; `published` is a folder of ImageNet-P's videos."""

    names: Annotated[_Expanded, Field(default_factory=lambda: list(PERTURBATIONS))]
    """The perturbations; a group stands for its members."""
    difficulty: Annotated[int, Field(ge=NOISE_DIFFICULTIES[0], le=NOISE_DIFFICULTIES[-1])] = 1
    """For noise, its level; for all others, the step between the frames that are compared."""
    frames: Literal["as_published", "first_30"] = "as_published"
    """31 frames, and 41 of translate (as_published), or the first 30 of each (first_30)."""
    max_images: AtLeastOne | None = None
    """The number of images, taken as the first of each class, then the second, and so on. null: all."""
    codec: Literal["h264"] | None = None
    """Frames are stored as the benchmark's were, as H.264 by ffmpeg, and read again. null: they are not stored."""

    def levels(self) -> dict[str, int]:
        """The level at which each perturbation is made; except for noise, the difficulty does not change the frames."""
        noise = dict.fromkeys(NOISE_PERTURBATIONS, self.difficulty)
        return {name: noise.get(name, 1) for name in self.names}

    def frame_counts(self) -> dict[str, int]:
        """The number of frames of each perturbation, in the order of the benchmark."""
        return {name: frame_count(name, first_30=self.frames == "first_30") for name in self.names}

    def changes(self) -> list[tuple[str, int]]:
        """Each frame of each perturbation."""
        return [(name, frame) for name, count in self.frame_counts().items() for frame in range(count)]


class PerturbationMeasures(Section):
    """The reference of FR."""

    reference: str | None = None
    """The model that FR is relative to. null: no FR."""
