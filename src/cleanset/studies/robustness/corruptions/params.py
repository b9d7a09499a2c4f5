"""The corruptions of ImageNet-C: their names, their groups, and the params that choose among them.

Source: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations"
(ICLR 2019). The order is that of its tables.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, field_validator

from cleanset.sections import Section
from cleanset.studies.robustness.names import check_names, expand_groups

CORRUPTION_GROUPS: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
}
"""The 15 test corruptions of ImageNet-C, over which mCE is the mean."""

CORRUPTIONS: tuple[str, ...] = tuple(name for group in CORRUPTION_GROUPS.values() for name in group)
"""The 15 test corruptions."""

VALIDATION_CORRUPTIONS: tuple[str, ...] = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
"""The 4 corruptions that ImageNet-C adds for tuning; they are not part of mCE and are in none of the four groups."""

ALL_CORRUPTIONS: tuple[str, ...] = CORRUPTIONS + VALIDATION_CORRUPTIONS
"""The 15 test corruptions and then the 4 validation ones."""

SEVERITIES: tuple[int, ...] = (1, 2, 3, 4, 5)

_Severity = Annotated[int, Field(ge=1, le=5)]
PUBLISHED_REFERENCE = "alexnet"
"""The table of AlexNet's errors that source 003 published."""


def corruptions_of(names_or_groups: Iterable[str]) -> tuple[str, ...]:
    """The corruptions that are named, each group replaced by its members; in the order of ALL_CORRUPTIONS, each once.

    Raises CleansetError for a name that is neither a corruption nor a group.
    """
    return expand_groups("corruption", names_or_groups, CORRUPTION_GROUPS, ALL_CORRUPTIONS)


class Corruptions(Section):
    """The corruptions of source 003 that are measured, by name or group.

    `published`: a folder of ImageNet-C's images, which are read instead of made; None: they are made.
    """

    names: Annotated[list[str], Field(min_length=1, default_factory=lambda: list(CORRUPTIONS))]
    severities: Annotated[list[_Severity], Field(min_length=1, default_factory=lambda: list(SEVERITIES))]
    published: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        return check_names(names, corruptions_of)

    def changes(self) -> list[tuple[str, int]]:
        """Each corruption at each severity, in the order of the benchmark."""
        return [(name, severity) for name in corruptions_of(self.names) for severity in self.sorted_severities()]

    def sorted_severities(self) -> list[int]:
        """The severities, each once."""
        return sorted(set(self.severities))


class CorruptionMeasures(Section):
    """The reference of CE, and the corruptions that models were trained with.

    `reference`: `alexnet`, the published table, or a role of the edition. `trained_on`: by role, the corruptions that
    a model was trained with; mCE is given without them, too.
    """

    reference: str = PUBLISHED_REFERENCE
    trained_on: Annotated[dict[str, list[str]], Field(default_factory=dict)]

    @field_validator("trained_on")
    @classmethod
    def _all_known(cls, trained_on: dict[str, list[str]]) -> dict[str, list[str]]:
        return {role: check_names(names, corruptions_of) for role, names in trained_on.items()}
