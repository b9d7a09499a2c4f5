"""A family of image changes: everything that the study knows about one, behind one protocol.

A new family is a folder with an object that satisfies `Family`, and a line in `families.FAMILIES`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pandas as pd

from cleanset.sections import Section
from cleanset.studies.robustness.changed_images import Change, StudyFile

if TYPE_CHECKING:
    from cleanset.studies.robustness.families import Sources
    from cleanset.studies.robustness.measuring import Studied
    from cleanset.studies.robustness.pages import PagesData
    from cleanset.studies.robustness.results import MeasureDifference, MeasureLine, StudiedImages
    from cleanset.studies.robustness.settings import StudyParams


class FamilySection(Protocol):
    """The section of params.yaml that decides a family's changed images."""

    @property
    def names(self) -> list[str]:
        """Changes or groups of them."""
        ...

    @property
    def published(self) -> str | None:
        """A folder of published images, which are read instead of made; None: the images are made."""
        ...

    def changes(self) -> list[tuple[str, int]]:
        """Each change and its step, a severity or a frame; 0 for neither."""
        ...


class NamedModel(NamedTuple):
    """A model that a key of a family's section of `measures` names.

    `is_reference`: other models' measures are divided by its own. `also`: what the key may name beside models.
    `may_be_unmeasured`: the model need not be measured here.
    """

    key: str
    name: str
    is_reference: bool = False
    also: tuple[str, ...] = ()
    may_be_unmeasured: bool = False


@dataclass(frozen=True, slots=True)
class Changing:
    """The change that makes a family's images, and the settings that its pixels depend on."""

    change: Change
    settings: Mapping[str, Any]
    is_official: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """The layout of a family on the page of changed images: the number of images, in tiles or a row for each change."""

    images: int
    has_unchanged: bool
    is_tiled: bool = False
    caption: str = ""


class FamilyStudy(Protocol):
    """The answers of all models to a family, ready to be measured."""

    @property
    def images(self) -> "StudiedImages": ...

    def lines(self) -> "Iterator[MeasureLine]":
        """Every measure of every model on every selection."""
        ...

    def differences(self) -> "Iterator[MeasureDifference]":
        """The paired differences between every two models."""
        ...

    def tables(self, params: "StudyParams") -> dict[str, pd.DataFrame]:
        """Details by severity, frame or class, by the stem of their CSV file."""
        ...


class Family(Protocol):
    """One family of image changes. Nothing heavy is imported before a method needs it."""

    @property
    def name(self) -> str:
        """The key in params.yaml, and the folder of answers."""
        ...

    @property
    def singular(self) -> str: ...

    @property
    def section(self) -> type[Section]:
        """The pydantic model of its section, a FamilySection: what decides its changed images."""
        ...

    @property
    def measures_section(self) -> type[Section] | None:
        """The pydantic model of its section of `measures`: what decides only its measures; None: it has none."""
        ...

    @property
    def default_names(self) -> tuple[str, ...]:
        """The changes that `robustness evaluate` measures without a params file."""
        ...

    @property
    def steps(self) -> Mapping[str, Any]:
        """The column of a change's step, by its name; empty for changes without steps."""
        ...

    @property
    def changing_modules(self) -> tuple[str, ...]:
        """The modules that make or read the changed images; with what they import, they decide the pixels."""
        ...

    @property
    def reserved_names(self) -> tuple[str, ...]:
        """Names that no model may have."""
        ...

    @property
    def layout(self) -> str:
        """The layout of published images in their folder."""
        ...

    @property
    def benchmark(self) -> str | None:
        """The benchmark with official numbers, if there is one."""
        ...

    @property
    def notice_if_made(self) -> str:
        """The notice beside its numbers where the changed images are made here."""
        ...

    def remark(self, params: "StudyParams") -> str:
        """A sentence that follows the notice; empty for none."""
        ...

    def named_models(self, params: "StudyParams") -> list[NamedModel]:
        """The models that its section of `measures` names."""
        ...

    def problem(self, params: "StudyParams") -> str | None:
        """The problem with the params as a whole: key, found, expected; None if there is none."""
        ...

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: "StudyParams") -> pd.DataFrame:
        """The rows that it is measured on, of those of STUDY_IMAGES that suit its images, made or published."""
        ...

    def making(self, sources: "Sources", images: pd.DataFrame, params: "StudyParams") -> Changing:
        """The change that makes the images."""
        ...

    def published(self, folder: Path, images: Sequence[StudyFile], params: "StudyParams") -> Changing:
        """The change that reads the published images in a folder. Raises CleansetError as `find_published` does."""
        ...

    def study(self, studied: "Studied", images: pd.DataFrame) -> FamilyStudy:
        """The answers of all models to the images, read from their files."""
        ...

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of the CSV files of its details, by stem."""
        ...

    @property
    def optional_files(self) -> tuple[str, ...]:
        """The stems in `files` that a study may lack."""
        ...

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Columns that every CSV file of the family ends in."""
        ...

    def labels(self, params: "StudyParams") -> dict[str, str]:
        """The values of `label_columns`."""
        ...

    @property
    def with_intervals(self) -> tuple[str, ...]:
        """The measures whose intervals are metrics, too."""
        ...

    @property
    def summary(self) -> Mapping[str, str]:
        """The measures that `robustness evaluate` prints, with their titles."""
        ...

    @property
    def unit(self) -> str:
        """The unit of the summary."""
        ...

    @property
    def headlines(self) -> Mapping[str, str]:
        """The measures over all changes, with their titles on the pages."""
        ...

    @property
    def shown_differences(self) -> tuple[str, ...]:
        """The measures whose differences between models are on the pages; the CSV files have those of all."""
        ...

    @property
    def not_shares(self) -> tuple[str, ...]:
        """Prefixes of measures that are not shares, and so not shown in percent."""
        ...

    @property
    def page(self) -> str:
        """The file name of its page."""
        ...

    @property
    def sheet(self) -> Sheet: ...

    def sheet_changes(self, params: "StudyParams") -> Sequence[str]:
        """The changes on the page of changed images, a row or a tile each."""
        ...

    def page_context(self, data: "PagesData") -> dict[str, Any]:
        """The variables of its template, except those that all pages have."""
        ...
