"""The names of all corruptions, by group and benchmark, and the params that choose among them.

ImageNet-C: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations"
(ICLR 2019), in the order of its tables. ImageNet-C-bar and ImageNet-3DCC: see corruptions.yaml.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from cleanset.plumbing.validation import NonEmpty, Section, is_callable_name, validate
from cleanset.plumbing.yaml_files import data_beside
from cleanset.studies.robustness.sections import FamilySection, check_names, expand_groups

PUBLISHED_NUMBERS: Any = data_beside(__file__, "published.yaml")

SEVERITIES: tuple[int, ...] = (1, 2, 3, 4, 5)

Benchmark = Literal["ImageNet-C", "ImageNet-C-bar", "ImageNet-3DCC"]


class CorruptionEntry(Section):
    """What is known of a corruption."""

    benchmark: Benchmark | None
    """The benchmark whose official numbers are of it."""

    group: str | None
    """The group that params may name in its place."""

    amounts: Annotated[list[float], Field(min_length=len(SEVERITIES), max_length=len(SEVERITIES))] | None
    """Its amounts at the severities; None if these are next to the computation."""

    effect: NonEmpty
    """What it does to an image, in words."""


CORRUPTION_ENTRIES: Mapping[str, CorruptionEntry] = MappingProxyType(
    {
        name: validate(CorruptionEntry, entry, f"corruptions.yaml: {name}")
        for name, entry in data_beside(__file__, "corruptions.yaml").items()
    }
)
"""Every corruption, in the order of tables."""


def _of_group(group: str) -> tuple[str, ...]:
    return tuple(name for name, entry in CORRUPTION_ENTRIES.items() if entry.group == group)


def _of_benchmark(benchmark: Benchmark) -> tuple[str, ...]:
    return tuple(name for name, entry in CORRUPTION_ENTRIES.items() if entry.benchmark == benchmark)


CORRUPTION_GROUPS: dict[str, tuple[str, ...]] = {
    group: _of_group(group) for group in ("noise", "blur", "weather", "digital")
}
"""The 15 test corruptions of ImageNet-C, over which mCE is the mean."""

CORRUPTIONS: tuple[str, ...] = tuple(name for group in CORRUPTION_GROUPS.values() for name in group)
"""The 15 test corruptions."""

IMAGENET_C: tuple[str, ...] = _of_benchmark("ImageNet-C")
"""The 15 test corruptions, then the 4 that ImageNet-C adds for tuning, outside mCE and the four groups."""

C_BAR = "c_bar"
"""The group of ImageNet-C-bar's corruptions."""

C_BAR_AMOUNTS: Mapping[str, Sequence[float]] = {
    name: CORRUPTION_ENTRIES[name].amounts or () for name in _of_group(C_BAR)
}
"""The 10 corruptions of ImageNet-C-bar, and their amounts at severities 1 to 5."""

GROUP_3DCC = "3dcc"
"""The group of ImageNet-3DCC's corruptions."""

CORRUPTIONS_3DCC: tuple[str, ...] = _of_group(GROUP_3DCC)
"""The 12 corruptions of ImageNet-3DCC, which are read from a folder: they need depths of the images."""

FURTHER_GROUPS: dict[str, tuple[str, ...]] = {C_BAR: tuple(C_BAR_AMOUNTS), GROUP_3DCC: CORRUPTIONS_3DCC}
"""The benchmarks other than ImageNet-C, each a group."""

BENCHMARKS: dict[str, tuple[str, ...]] = {
    "ImageNet-C": CORRUPTIONS,
    "ImageNet-C-bar": FURTHER_GROUPS[C_BAR],
    "ImageNet-3DCC": FURTHER_GROUPS[GROUP_3DCC],
}
"""The corruptions that official numbers of a benchmark are of."""

NAMED_GROUPS: dict[str, tuple[str, ...]] = {**CORRUPTION_GROUPS, **FURTHER_GROUPS}
"""The groups that params may name."""

NAMED_CORRUPTIONS: tuple[str, ...] = tuple(CORRUPTION_ENTRIES)
"""The corruptions that params may name, in the order of tables."""

MADE_CORRUPTIONS: tuple[str, ...] = tuple(name for name in NAMED_CORRUPTIONS if name not in CORRUPTIONS_3DCC)
"""The corruptions that can be made here."""

_Severity = Annotated[int, Field(ge=1, le=5)]
_SORTED = AfterValidator(lambda severities: sorted(set(severities)))
PUBLISHED_REFERENCE = "alexnet"
"""The table of AlexNet's errors that the authors of ImageNet-C published."""


def corruptions_of(names_or_groups: Iterable[str]) -> tuple[str, ...]:
    """The given corruptions, each group replaced by its members; in the order of NAMED_CORRUPTIONS, without duplicates.

    Then custom ones, MODULE:FUNCTION, in the given order. Raises CleansetError for any other name.
    """
    # a single name is a sequence of letters otherwise
    names = [names_or_groups] if isinstance(names_or_groups, str) else list(names_or_groups)
    custom = custom_corruptions(names)
    in_groups = {name for group in FURTHER_GROUPS.values() for name in group}
    listed = tuple(name for name in NAMED_CORRUPTIONS if name not in in_groups)
    others = [name for name in names if name not in custom]
    return (*expand_groups("corruption", others, NAMED_GROUPS, known=NAMED_CORRUPTIONS, listed=listed), *custom)


def custom_corruptions(names: Iterable[str]) -> list[str]:
    """The custom corruptions among names, each once: functions of a module of the user, as MODULE:FUNCTION."""
    return list(dict.fromkeys(name for name in names if is_callable_name(name)))


_KNOWN = AfterValidator(lambda names: check_names(names, corruptions_of))
_EXPANDED = AfterValidator(lambda names: list(corruptions_of(names)))
CorruptionNames = Annotated[list[str], _KNOWN]
"""Corruptions and groups of them, by name."""


class Corruptions(FamilySection):
    """The corruptions that are measured.

    `published` is a folder of images of ImageNet-C, ImageNet-C-bar or ImageNet-3DCC; those of the last cannot be made
    here.
    """

    names: Annotated[list[str], Field(default_factory=lambda: list(CORRUPTIONS)), _KNOWN, _EXPANDED]
    """The corruptions; a group stands for its members. `module:function` is a custom one, whose module is looked for
    next to this file first: a function of image, severity and generator."""
    severities: Annotated[list[_Severity], Field(min_length=1, default_factory=lambda: list(SEVERITIES)), _SORTED]
    """The severities, in any order; CE needs all five."""

    @model_validator(mode="after")
    def _can_be_made(self) -> "Corruptions":
        read = [name for name in self.names if name in CORRUPTIONS_3DCC]
        if read and self.published is None:
            raise ValueError(
                f"published: null, and {read[0]} is of ImageNet-3DCC, whose corruptions are not made here; "
                "expected a folder of its images, or other names"
            )
        return self

    def places(self, name: str, severity: int) -> tuple[str, ...]:
        """The folders that a corruption at a severity may have inside `published`, the most usual one first.

        The program of ImageNet-C-bar names them by amounts; the archive that its authors offer has severities.
        """
        amounts = C_BAR_AMOUNTS.get(name)
        by_severity = f"{name}/{severity}"
        return (by_severity,) if amounts is None else (f"{name}/{amounts[severity - 1]:.2f}", by_severity)

    def changes(self) -> list[tuple[str, int]]:
        """Each corruption at each severity, in the order of the benchmark."""
        return [(name, severity) for name in self.names for severity in self.severities]


class CorruptionMeasures(Section):
    """The reference of CE, the corruptions that models were trained with, and the line of effective robustness."""

    reference: str = PUBLISHED_REFERENCE
    """`alexnet`, the published table, or a model that is measured."""
    trained_on: Annotated[dict[str, CorruptionNames], Field(default_factory=dict)]
    """By model, the corruptions that it was trained with; mCE is given without them, too."""
    line: Annotated[list[str], Field(default_factory=list)]
    """Models without robustness measures, at least two, that effective robustness is relative to. Empty: it is not
    measured."""

    @field_validator("line")
    @classmethod
    def _enough(cls, line: list[str]) -> list[str]:
        if len(set(line)) == 1 or len(set(line)) < len(line):
            raise ValueError(f"{', '.join(line)}; name at least two different models, or no model")
        return line
