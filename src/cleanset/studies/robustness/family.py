"""`Family`, everything that a study knows about one family of image changes; the params that all families share.

The params here are the keys that all families share, such as `further_models`; each family adds its own sections. A
further model is a model of a zoo, as in the edition's params.yaml, or `module:callable`, a custom model.

A new family is a folder with a `Family`, and a line in `families.FAMILIES`. This module and its imports know no family;
a family imports nothing that goes through all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, ValidationInfo, WrapValidator, model_validator
from pydantic.dataclasses import dataclass as checked_dataclass

from cleanset.classes import ClassTable, context_classes
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.measure.specs import ModuleModel, Spec, ZooModel, parse_specs
from cleanset.measure.table import Cell, cell
from cleanset.studies.robustness.images import Change, Sources, StudyFile
from cleanset.studies.robustness.results import Answers, FamilySection, FamilyStudy, StudiedImages
from cleanset.tables import FILE, NAME, Table
from cleanset.validation import EachOnce, Role, Section, shown
from cleanset.yaml_files import read_yaml


def _known_key(key: str, info: ValidationInfo) -> str:
    classes = context_classes(info)
    if key not in classes.indices:
        raise ValueError(f"expected {classes.expected_key}, such as {classes.example_key}")
    return key


Wnid = Annotated[str, AfterValidator(_known_key)]
"""A class key; the class table is the validation context."""


class TrainedModel(Model):
    """A further model: its source, and the facts that the training of its weights decided.

    `classes`: the wnids of its logits, in their order; null: all 1,000. It is measured on images of these alone.
    `size`: of the images that it was trained with, where that is not the published size; their central part is seen.
    `trained_on`: the corruptions that it was trained with, which mce_unseen leaves out.
    """

    classes: Annotated[list[Wnid], Field(min_length=2), EachOnce] | None = None
    size: Annotated[int, Field(ge=16, le=2048)] | None = None
    trained_on: Annotated[list[str], Field(default_factory=list)]

    @property
    def is_of_training(self) -> bool:
        """Whether the network differs from the published one."""
        return self.classes is not None or self.size is not None

    @model_validator(mode="after")
    def _with_weights(self) -> "TrainedModel":
        if self.is_of_training and (self.weights is None or self.source not in ("timm", "torchvision")):
            raise ValueError("classes and size go with weights of a network of timm or torchvision; expected weights")
        if self.weights is not None and self.sha256 is None:
            raise ValueError(
                f"weights without sha256: a change would go unseen; add the output of sha256sum {self.weights}"
            )
        return self


def _model_or_callable(entry: object, validate: Callable[[Any], Model]) -> Model | str:
    if not isinstance(entry, str):
        return validate(entry)
    try:
        (spec,) = parse_specs([entry], architecture=None, roles={}, edition=Path(), weights=Path())
    except CleansetError:
        spec = None
    if not isinstance(spec, ModuleModel):
        raise ValueError(f"{shown(entry)}; expected MODULE:CALLABLE, or a section with source and name")
    return entry


# a union would put the names of its parts into the keys that errors name
if TYPE_CHECKING:
    FurtherModel = TrainedModel | str
else:
    FurtherModel = Annotated[TrainedModel, WrapValidator(_model_or_callable)]


@dataclass(frozen=True, slots=True)
class ListedModel:
    """An entry of `further_models`, and the folders that its names are relative to."""

    role: str
    """The key of the entry: the name of the model."""
    entry: FurtherModel
    """The entry itself."""
    study: Path
    """The folder of the study, in which a module is looked for first."""
    edition: Path
    """The folder of the edition, which the paths of weights are relative to."""

    @property
    def spec(self) -> Spec:
        """The name of the model, as a command takes it."""
        if isinstance(self.entry, str):
            module, _, name = self.entry.partition(":")
            return ModuleModel(self.entry, module, name, self.study)
        return ZooModel(self.role, self.entry, self.edition)


def further_roles(params: Path) -> list[str]:
    """The roles in `further_models` of a study's params.yaml, which the stages that run models check."""
    content = read_yaml(params, "expected the params of a study: git checkout it")
    return list((content.get("further_models") if isinstance(content, dict) else None) or {})


AnySection = TypeVar("AnySection", bound=Section)


class MaskFolder(Section):
    """Masks of objects, one file an image named by its id: a folder inside `masks`, its format, and who made them."""

    folder: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    format: str = "png"
    origin: Literal["person", "generator", "model"]


class BootstrapParams(Section):
    """The bootstrap of 95 % intervals: images are drawn within classes, `draws` times."""

    draws: Annotated[int, Field(ge=1, le=1_000_000)] = 1000


class CommonParams(Section):
    """All of a study's params.yaml.

    `images`: every model gets the images of all sets (union), or of its own set only (own). `jpeg`: the quality at
    which a changed image is stored before a model sees it, as the images of ImageNet-C were; None leaves that out.
    `further_models`: models that are measured beside the edition's, whose folder `weights` are relative to; or
    `module:callable`, a custom model, whose module is looked for beside this file first. `measures` has a section for
    each family, too: a change there recomputes no image and no prediction.
    """

    images: Literal["union", "own"] = "union"
    jpeg: Annotated[int, Field(ge=1, le=100)] | None = 85
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    masks: Annotated[list[MaskFolder], Field(default_factory=list)]
    measures: Section = Section()
    bootstrap: BootstrapParams = BootstrapParams()
    further_models: Annotated[dict[Role, FurtherModel], Field(default_factory=dict)]

    def section(self, kind: type[AnySection]) -> AnySection:
        """The section of that class: a family's own one, or its one in `measures`."""
        # no two sections are of one class, so a family needs to know neither its key nor where the section lies
        sections = [*dict(self).values(), *dict(self.measures).values()]
        return next(section for section in sections if isinstance(section, kind))

    def classes_of(self, role: str, classes: ClassTable) -> frozenset[int] | None:
        """The class indices that a further model has; None for a model of all `classes`."""
        keys = self.keys_of(role)
        return None if keys is None else frozenset(classes.indices[key] for key in keys)

    def keys_of(self, role: str) -> Sequence[str] | None:
        """The keys of the classes that a further model has; None for a model of all classes."""
        entry = self.further_models.get(role)
        return entry.classes if isinstance(entry, TrainedModel) else None

    def models(self, roles: Iterable[str]) -> list[str]:
        """The measured models: the edition's, then the further ones."""
        return [*roles, *self.further_models]


ENDS = ("value", "low", "high")
"""The columns of a measure and of the ends of its interval."""


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
    """Values that the key may have beside models."""
    may_be_unmeasured: bool = False
    """Whether the model need not be measured here."""


@dataclass(frozen=True, slots=True)
class Changing:
    """The change that makes a family's images, and the settings that its pixels depend on.

    `is_official`: a whole published benchmark is read, and these are all its images.
    """

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
    """The notice beside a family's numbers, by family."""
    masks: pd.DataFrame
    """Rows of MASKS."""
    published_top1: Mapping[str, float]
    """The published top-1 accuracy in percent, by model that has one."""


def page_texts(family: str) -> dict[str, Any]:
    """The fields of a `Family` that are in a YAML file beside its template: titles, order and units of measures."""
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
    """The columns of answers that its measures need beside the predicted classes."""
    reserved_names: tuple[str, ...] = ()
    """Names that no model may have."""

    layout: str
    """The layout of published images in their folder."""
    benchmark: str | None = None
    """The benchmark with official numbers, if any."""
    notice_if_made: str
    """The notice beside its numbers where the changed images are made here."""
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

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: CommonParams) -> pd.DataFrame:
        """The rows that it is measured on, of STUDY_IMAGES and MASKS: of those that suit its images."""
        return images

    @abstractmethod
    def make_images(self, sources: Sources, images: pd.DataFrame, params: CommonParams) -> Changing:
        """The change that makes the images: rows of STUDY_IMAGES."""

    @abstractmethod
    def read_images(self, folder: Path, images: Sequence[StudyFile], params: CommonParams) -> Changing:
        """The change that reads the published images in a folder. Raises CleansetError as `find_published` does."""

    def remark(self, params: CommonParams) -> str:
        """A sentence that follows the notice, or empty."""
        return ""

    @abstractmethod
    def read(self, answers: pd.DataFrame, params: CommonParams) -> NDArray[Any]:
        """Values that its measures need of each answer, one or a row: from answers with the image's `class_index`."""

    @abstractmethod
    def study(self, images: StudiedImages, answers: Mapping[str, Answers], params: CommonParams) -> FamilyStudy:
        """The values read of all models' answers, ready to be measured."""

    def labels(self, params: CommonParams) -> dict[str, str]:
        """The values of `label_columns`."""
        return {}

    @abstractmethod
    def page_context(self, data: PagesData) -> dict[str, Any]:
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
        return Table(key=("file", "change", *self.steps), file=FILE, change=NAME, **self.steps, **columns)

    def scale(self, measure: str) -> tuple[int, int]:
        """The factor that a measure is shown with, 100 for shares, and its digits after the point."""
        return (1, 3) if measure.startswith(self.not_shares) else (100, 1)

    def cell(self, measure: str, value: float, low: float, high: float) -> Cell:
        """A measure with its interval as it is shown in tables."""
        factor, digits = self.scale(measure)
        return cell(value, (low, high), factor, digits)

    def jpeg(self, params: CommonParams) -> int | None:
        """The quality at which its changed images are stored and read again; None: not at all."""
        return params.jpeg if self.stores_jpeg else None

    def section_in(self, params: CommonParams) -> FamilySection:
        """Its section of the params."""
        return params.section(self.section)
