"""A family of image changes: everything that the study knows about one, in one plain object.

A new family is a folder with a `Family`, and a line in `families.FAMILIES`. This module and what it imports know no
family; a family imports nothing that goes through all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd

from cleanset.studies.robustness.changed_images import Change, StudyFile
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.results import FamilyStudy, SeenAnswers, StudiedImages
from cleanset.tables import FILE, NAME, Table
from cleanset.validation import Section


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


class ReferencedModel(NamedTuple):
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
class SheetLayout:
    """The layout of a family on the page of changed images: the number of images, in tiles or a row for each change."""

    images: int
    has_unchanged: bool
    is_tiled: bool = False
    caption: str = ""


@dataclass(frozen=True, slots=True)
class SheetImage:
    """An image on the sheets: its number, its class by name, and its files by change and step."""

    image_id: str
    name: str
    files: Mapping[tuple[str, int], str]


@dataclass(frozen=True, slots=True, eq=False)
class PagesData:
    """All that the pages show: the CSV files of stage measure as tables by name, params, and images.

    `sheets` and `notices`: by family. `origins` and `left_out`: how many masks each origin has, and images each reason.
    `published_top1`: of the models that have one, in percent.
    """

    roles: Sequence[str]
    params: CommonParams
    tables: Mapping[str, pd.DataFrame]
    sheets: Mapping[str, Sequence[SheetImage]]
    notices: Mapping[str, str]
    origins: Mapping[str, int]
    left_out: Mapping[str, int]
    published_top1: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Family:
    """One family of image changes. Nothing heavy is imported before a function needs it."""

    name: str
    """The key in params.yaml, and the folder of answers."""
    singular: str
    section: type[Section]
    """The pydantic model of its section, a FamilySection: what decides its changed images."""
    measures_section: type[Section] | None = None
    """The pydantic model of its section of `measures`: what decides only its measures; None: it has none."""
    default_names: tuple[str, ...] = ()
    """The changes that `robustness evaluate` measures without a params file."""
    steps: Mapping[str, Any] = field(default_factory=dict)
    """The column of a change's step, by its name; empty for changes without steps."""
    answer_columns: tuple[str, ...] = ()
    """The columns of answers that its measures need beside the predicted classes."""
    reserved_names: tuple[str, ...] = ()
    """Names that no model may have."""
    named_models: Callable[[CommonParams], Sequence[ReferencedModel]] = lambda params: ()
    """The models that its section of `measures` names."""
    problem: Callable[[CommonParams], str | None] = lambda params: None
    """The problem with the params as a whole: key, found, expected; None if there is none."""

    measured_images: Callable[[pd.DataFrame, pd.DataFrame, CommonParams], pd.DataFrame] = lambda images, *_: images
    """The rows that it is measured on, of STUDY_IMAGES, MASKS and params: of those that suit its images."""
    make_images: Callable[[Sources, pd.DataFrame, CommonParams], Changing]
    """The change that makes the images: rows of STUDY_IMAGES."""
    read_images: Callable[[Path, Sequence[StudyFile], CommonParams], Changing]
    """The change that reads the published images in a folder. Raises CleansetError as `find_published` does."""
    layout: str
    """The layout of published images in their folder."""
    benchmark: str | None = None
    """The benchmark with official numbers, if there is one."""
    notice_if_made: str
    """The notice beside its numbers where the changed images are made here."""
    remark: Callable[[CommonParams], str] = lambda params: ""
    """A sentence that follows the notice; empty for none."""

    study: Callable[[CommonParams, SeenAnswers, StudiedImages], FamilyStudy]
    """The answers of all models to the images, read from their files."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the CSV files of its details, by stem."""
    optional_files: tuple[str, ...] = ()
    """The stems in `files` that a study may lack."""
    label_columns: tuple[str, ...] = ()
    """Columns that every CSV file of the family ends in."""
    labels: Callable[[CommonParams], dict[str, str]] = lambda params: {}
    """The values of `label_columns`."""
    with_intervals: tuple[str, ...] = ()
    """The measures whose intervals are metrics, too."""
    summary: Mapping[str, str]
    """The measures that `robustness evaluate` prints, with their titles."""
    unit: str
    """The unit of the summary."""

    page: str
    """The file name of its page."""
    template: Path
    """The Jinja2 template of its page."""
    page_context: Callable[[PagesData], dict[str, Any]]
    """The variables of its template, except those that all pages have."""
    headlines: Mapping[str, str]
    """The measures over all changes, with their titles on the pages."""
    shown_differences: tuple[str, ...] = ()
    """The measures whose differences between models are on the pages; the CSV files have those of all."""
    not_shares: tuple[str, ...] = ()
    """Prefixes of measures that are not shares, and so not shown in percent."""
    sheet: SheetLayout

    def table(self, **columns: Any) -> Table:
        """A table by image, change, and severity or frame."""
        return Table(key=("file", "change", *self.steps), file=FILE, change=NAME, **self.steps, **columns)

    def scale(self, measure: str) -> tuple[int, int]:
        """The factor that a measure is shown with, 100 for shares, and its digits after the point."""
        return (1, 3) if measure.startswith(self.not_shares) else (100, 1)

    def section_in(self, params: CommonParams) -> FamilySection:
        """Its section of the params."""
        # by name, since the params of a study are built from the families (settings.with_sections)
        section: FamilySection = getattr(params, self.name)
        return section
