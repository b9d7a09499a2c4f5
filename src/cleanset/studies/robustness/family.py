"""The base of families: a `Family`, everything that a study knows about one family of image changes.

A new family is a folder with a `Family`, and a line in `families.FAMILIES`. This module and its imports know no family;
a family imports nothing that goes through all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic.dataclasses import dataclass as checked_dataclass

from cleanset.classes import ClassTable
from cleanset.evaluation.measures import Measure
from cleanset.evaluation.sets import ImageFile
from cleanset.evaluation.table import Cell, measure_cell
from cleanset.plumbing.validation import Section
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.studies.robustness.answer_arrays import AnswerArray, Answers
from cleanset.studies.robustness.images import Change, Sources
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.results import FamilyStudy, StudiedImages
from cleanset.studies.robustness.sections import FamilySection
from cleanset.tables import CHANGE, FILE, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedModel:
    """A model that a key of a family's section of `measures` names."""

    key: str
    """The key, in messages."""
    name: str
    """The model."""
    is_reference: bool = False
    """Whether other models' measures are divided by its own."""
    also: tuple[str, ...] = ()
    """Values that the key may have besides models."""
    may_be_unmeasured: bool = False
    """Whether the model need not be measured here."""


@dataclass(frozen=True, slots=True)
class Changing:
    """How a family's changed images are made or read."""

    change: Change
    """The change."""
    settings: Mapping[str, object]
    """Everything that its pixels depend on, as JSON takes it."""
    is_official: bool = False
    """Whether a whole published benchmark is read, and these are all its images."""


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """The layout of a family on the page of changed images."""

    images: int
    """The number of images."""
    has_unchanged: bool
    """Whether the unchanged image is shown, too."""
    is_tiled: bool
    """Whether the changes are tiles; else each has a row."""
    caption: str = ""
    """The text below the images."""


@dataclass(frozen=True, slots=True)
class SheetImage:
    """An image on the sheets."""

    image_id: str
    """Its id."""
    name: str
    """The name of its class."""
    files: Mapping[tuple[str, int], str]
    """Its files, relative to the page, by change and step."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PagesData:
    """All that the pages of a study show."""

    roles: Sequence[str]
    """The measured models: the edition's, then the further ones."""
    classes: ClassTable
    """The class table of the images."""
    params: CommonParams
    """The study's params."""
    tables: Mapping[str, pd.DataFrame]
    """The CSV files of stage measure, by stem."""
    sheets: Mapping[str, Sequence[SheetImage]]
    """The images that show a family's changes, by family."""
    notices: Mapping[str, str]
    """The notice next to a family's numbers, by family."""
    masks: pd.DataFrame
    """Rows of MASKS."""
    published_top1: Mapping[str, float]
    """The published top-1 accuracy in percent, by model that has one."""


def page_texts(family: str) -> dict[str, Any]:
    """The fields of a `Family` that are in a YAML file next to its template: titles, order and units of measures."""
    content: Any = read_yaml(_templates(family) / f"{family}.yaml", "install cleanset again")
    return {**content}


def _templates(family: str) -> Path:
    return Path(__file__).parent / family / "templates"


@checked_dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Family(ABC):
    """One family of image changes. Nothing heavy is imported before a method needs it."""

    name: str
    """The key in params.yaml, the folder of answers, and the name of the template of its page."""
    section: type[FamilySection]
    """The pydantic model of its section, which decides its changed images."""
    measures_section: type[Section] | None = None
    """The pydantic model of its section of `measures`, which decides only its measures; or None."""
    default_names: tuple[str, ...] = ()
    """The changes that `robustness evaluate` measures without a params file."""
    steps: Mapping[str, Any] = field(default_factory=dict)
    """The column of a change's step, by its name; empty for changes without steps."""
    answer_columns: tuple[str, ...] = ()
    """The columns of answers that its measures need next to the predicted classes."""
    reserved_names: tuple[str, ...] = ()
    """Names that no model may have."""

    layout: str
    """The layout of published images in their folder."""
    benchmark: str | None = None
    """The benchmark with official numbers, if any."""
    notice_if_made: str
    """The notice next to its numbers where the changed images are made here; {benchmark} stands for `benchmark_of`."""
    stores_jpeg: bool = True
    """Whether changed images are stored as JPEG of the quality in the params, like the benchmark's."""

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the CSV files of its details, by stem."""
    optional_files: tuple[str, ...] = ()
    """The stems in `files` that a study may lack."""
    label_columns: tuple[str, ...] = ()
    """Columns that every CSV file of the family ends in."""
    with_intervals: tuple[str, ...] = ()
    """The measures whose intervals are metrics, too."""
    summary: Mapping[str, str]
    """The measures that `robustness evaluate` prints, with their titles."""
    unit: str
    """The unit of the summary."""

    page: str
    """The file name of its page."""
    headlines: Mapping[str, str]
    """The measures over all changes, with their titles on the pages."""
    shown_differences: tuple[str, ...] = ()
    """The measures whose differences between models are on the pages; the CSV files have all."""
    not_shares: tuple[str, ...] = ()
    """Prefixes of measures that are not shares, and so not shown in percent."""
    sheet: SheetLayout

    def named_models(self, params: CommonParams) -> Sequence[ReferencedModel]:
        """The models that its section of `measures` names."""
        return ()

    def problem(self, params: CommonParams) -> str | None:
        """The problem with the params as a whole: key, found, expected; or None."""
        return None

    def benchmark_of(self, params: CommonParams) -> str | None:
        """The benchmark that its changes are of, in notices."""
        return self.benchmark

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: CommonParams) -> pd.DataFrame:
        """The rows of STUDY_IMAGES and MASKS that it is measured on: those that suit its images."""
        return images

    @abstractmethod
    def make_images(self, sources: Sources, images: pd.DataFrame, params: CommonParams) -> Changing:
        """The change that makes the images: rows of STUDY_IMAGES."""

    @abstractmethod
    def read_images(self, folder: Path, images: Sequence[ImageFile], params: CommonParams) -> Changing:
        """The change that reads the published images in a folder. Raises CleansetError as `find_published` does."""

    def remark(self, params: CommonParams) -> str:
        """A sentence that follows the notice, or empty."""
        return ""

    @abstractmethod
    def read(self, answers: pd.DataFrame, params: CommonParams) -> AnswerArray:
        """Values that its measures need of each answer, one or a row: from answers with the image's `class_index`."""

    @abstractmethod
    def study(self, images: StudiedImages, answers: Mapping[str, Answers], params: CommonParams) -> FamilyStudy:
        """The values read of all models' answers, ready to be measured."""

    def labels(self, params: CommonParams) -> dict[str, str]:
        """The values of `label_columns`."""
        return {}

    @abstractmethod
    def page_context(self, data: PagesData) -> dict[str, object]:
        """The variables of its template, except those that all pages have."""

    @property
    def template(self) -> Path:
        """The Jinja2 template of its page."""
        return _templates(self.name) / f"{self.name}.html"

    @property
    def differences(self) -> str:
        """The stem of the CSV file with the differences between models, such as corruption_differences."""
        return f"{self.name.removesuffix('s')}_differences"

    def table(self, **columns: Any) -> Table:
        """A table by image, change, and severity or frame."""
        return Table(key=("file", "change", *self.steps), file=FILE, change=CHANGE, **self.steps, **columns)

    def scale(self, measure: str) -> tuple[int, int]:
        """The factor that a measure is shown with, 100 for shares, and its digits after the point."""
        return (1, 3) if measure.startswith(self.not_shares) else (100, 1)

    def cell(self, found: Measure) -> Cell:
        """A measure with its interval, as shown in tables."""
        return measure_cell(found, *self.scale(found.measure))

    def jpeg(self, params: CommonParams) -> int | None:
        """The quality at which its changed images are stored and read again; None: not at all."""
        return params.jpeg if self.stores_jpeg else None

    def section_in(self, params: CommonParams) -> FamilySection:
        """Its section of the params."""
        return params.section(self.section)
