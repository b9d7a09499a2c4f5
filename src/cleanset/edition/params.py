"""The schema of an edition's `params.yaml`, with the limits and the default of every key, and reading it."""

import datetime
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Literal, Self, TypeGuard

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator

from cleanset.classes import ClassTable, imagenet, parse_ranges
from cleanset.dataset.label_sources import known_sources
from cleanset.edition.about import About
from cleanset.errors import CleansetError, InputError, cut
from cleanset.plumbing.validation import (
    DeviceText,
    EachOnce,
    NonEmpty,
    Role,
    Section,
    Sha256,
    check_not_newer,
    checked,
    first_problem,
    is_callable_name,
    join_names,
    missing_keys,
    one_of,
    shown,
)
from cleanset.plumbing.yaml_files import data_beside, read_yaml
from cleanset.selection.rule import OWN_LABELS, ImagesPerClass, Label, Order, Pool, Rule
from cleanset.vocabulary import BASES, EXCLUSION_REASONS, REASON_FORM, TIERS

Engine = Literal["local", "ray"]
"""What computes: the devices of this machine, or those of a Ray cluster."""

Precision = Literal["float64", "float32", "tf32", "bfloat16"]


class Dataset(Section):
    """The source of images and labels; paths are relative to the edition's folder."""

    reader: Literal["ilsvrc", "folder"] = "ilsvrc"
    """ilsvrc: ImageNet's validation images, with devkit and reassessed labels; folder: your own images."""

    images: str
    """ImageNet's tar or a folder of any layout; for your own images a folder for each class, or any with `labels`."""

    labels: str | None = None
    """Reader folder: a CSV of file, class and perhaps group."""

    names: str | None = None
    """Reader folder: a CSV of class and name; without it a class is called by its key."""

    classes_are_folders: bool = False
    """Reader folder: whether the folders are classes even where their names mean splits, such as train and test."""

    devkit: str | None = None
    """Reader ilsvrc: the devkit, an archive or a folder; without it, labels come from folders, names or Kaggle."""

    reassessed: str = "timm"
    """Reader ilsvrc: the reassessed labels, as `real.json`; timm: those that timm brings."""

    expect_images: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """The number of images; null: any."""

    label: Label = "real"
    """real: the one reassessed label of an image; both: only where it equals the original one; the name of a study of
    labels: only where it is also the only class that the study names."""

    classes: Literal["all"] | list[str] = "all"
    """The keys of the classes that get a set."""

    @field_validator("label")
    @classmethod
    def _known_label(cls, label: str) -> str:
        known = (*OWN_LABELS, *known_sources())
        if label not in known:
            raise ValueError(f"{shown(label)}; expected one of {', '.join(known)}")
        return label

    @field_validator("classes", mode="before")
    @classmethod
    def _known(cls, classes: object, info: ValidationInfo) -> object:
        # the keys of other classes are known once stage preprocess has read them: see class_list
        own = info.data.get("reader") == "folder"
        wanted = f"expected all, or a list of distinct {'classes' if own else 'wnids of ILSVRC2012'}"
        if isinstance(classes, list):
            for position, key in enumerate(classes):
                is_known = isinstance(key, str) and (own or key in imagenet().indices)
                if not is_known or key in classes[:position]:
                    raise ValueError(f"{shown(key)} is unknown or doubled; {wanted}")
        if classes != "all" and not (isinstance(classes, list) and classes):
            raise ValueError(wanted)
        return classes

    @model_validator(mode="after")
    def _of_one_reader(self) -> Self:
        if self.is_own and self.label_is_study:
            raise ValueError(f"label {self.label} with reader folder; expected real: the study is of ImageNet's images")
        others = ("devkit",) if self.is_own else ("labels", "names")
        if self.classes_are_folders and not self.is_own:
            raise ValueError("classes_are_folders with reader ilsvrc, which does not read it; expected no such key")
        for key in others:
            if getattr(self, key) is not None:
                raise ValueError(
                    f"{key} with reader {self.reader}, which does not read it; expected other keys: remove it"
                )
        return self

    @property
    def label_is_study(self) -> bool:
        """Whether `label` is the name of a study, whose file has to be there."""
        return self.label not in OWN_LABELS

    @property
    def is_own(self) -> bool:
        """Whether the images are your own, not ImageNet's."""
        return self.reader == "folder"

    def class_list(self, table: ClassTable) -> list[int]:
        """Class indices of the classes that get a set, sorted. Raises CleansetError for a class that is not there."""
        if self.classes == "all":
            return list(range(len(table)))
        for key in self.classes:
            if key not in table.indices:
                raise CleansetError(f"params.yaml: dataset.classes: no class {shown(key)} among the images: correct it")
        return sorted(table.indices[key] for key in self.classes)


SOURCES_WITH: Mapping[str, tuple[str, ...]] = {
    "threat_model": ("robustbench",),
    "weights": ("timm", "torchvision", "robustbench"),
    "file": ("lists", "scores"),
    "beyond": ("lists",),
    "beyond_sha256": ("lists",),
    "module_sha256": ("module",),
    "files": ("module",),
}
"""The sources of models that have a key, which all others have not."""


class Model(Section):
    """One member of the ensemble: a network with its weights, or a source of scores without a network.

    Paths are relative to the edition's folder.
    """

    source: Literal["timm", "torchvision", "robustbench", "module", "lists", "scores", "random"]
    """A network is from a zoo, or returned by a callable (module). Without a network, scores come from a published list
    of images (lists), a table of scores (scores), or a random order (random)."""

    name: str
    """The model's name in its source; MODULE:CALLABLE of source module, the seed of source random."""

    threat_model: Literal["Linf", "L2", "corruptions"] | None = None
    """Source robustbench: the leaderboard of the model."""

    weights: str | None = None
    """A local file of weights in place of those that timm, torchvision or robustbench has; `sha256` has to pin it."""

    file: str | None = None
    """Source lists: lists in the form of imagenet/published/top5.csv; source scores: the table."""

    beyond: str | None = None
    """Source lists: the images that people took from beyond the lists."""

    sha256: Sha256 | None = None
    """The digest of the file of weights, or of `file`; for source module, the digest of all parameters and buffers."""

    beyond_sha256: Sha256 | None = None
    """The digest of `beyond`."""

    module_sha256: Sha256 | None = None
    """Source module: the digest of its code, with all that it imports in the edition's folder."""

    files: dict[str, Sha256] | None = None
    """Source module: the digests of other files in the edition's folder that it opens while it is loaded."""

    @property
    def is_list(self) -> bool:
        """Whether the model is a published list, or another table or order, which has no network."""
        return self.source in ("lists", "scores", "random")

    @property
    def is_random(self) -> bool:
        """Whether the images are in a random order instead of a model's."""
        return self.source == "random"

    @property
    def module(self) -> str | None:
        """The module of a custom model; None of another source."""
        return self.name.partition(":")[0] if self.source == "module" else None

    @property
    def kind(self) -> str:
        """The kind of the model, for people."""
        kinds = {"lists": "a published list", "scores": "a table of scores", "random": "a random order"}
        return kinds.get(self.source, "a network")

    @property
    def address(self) -> tuple[object, ...]:
        """Where the model is found: other models have other addresses."""
        return self.source, self.name, self.threat_model, self.file

    @property
    def is_pinned(self) -> bool:
        """Whether the file with the weights, or every file of the list, has its SHA-256 in params.yaml."""
        has_digest = self.sha256 is not None or self.source in ("module", "random")
        return has_digest and (self.beyond is None or self.beyond_sha256 is not None)

    @model_validator(mode="after")
    def _of_a_list_or_a_network(self) -> Self:
        for key, sources in SOURCES_WITH.items():
            if getattr(self, key) is not None and self.source not in sources:
                raise ValueError(f"{key} with source {self.source}, but only {join_names(sources)} has it: remove it")
        if self.source in SOURCES_WITH["file"] and not self.file:
            raise ValueError(f"file is needed for source {self.source}, relative to the edition")
        if self.source in SOURCES_WITH["threat_model"] and self.threat_model is None:
            raise ValueError(f"threat_model is needed for source {self.source}")
        if self.source == "module" and not is_callable_name(self.name):
            raise ValueError(f"name {shown(self.name)}; expected MODULE:CALLABLE")
        if self.beyond_sha256 is not None and self.beyond is None:
            raise ValueError("beyond_sha256 without beyond; expected both or neither")
        return self


BATCH_SIZE = 256
"""Images that a model gets at a time, unless somebody says otherwise; few enough for a GPU of 8 GB."""


class Score(Section):
    """Settings for running the models. In float64, no other key here changes the scores."""

    device: DeviceText = "auto"
    """auto: every CUDA device, otherwise the CPU."""

    precision: Precision = "float64"
    """The floating-point precision of the networks."""

    batch_size: Annotated[int, Field(ge=1, le=65_536)] = BATCH_SIZE
    """Images in a batch."""


_FIRST_TIERS = checked(
    lambda tiers: tiers and tuple(tiers) == TIERS[: len(tiers)],
    " or ".join(f"[{', '.join(TIERS[:count])}]" for count in range(1, len(TIERS) + 1)),
)


class Select(Section):
    """The choice of a model's candidates; in a set without a model, all images with one label are candidates."""

    candidates: Annotated[int, Field(ge=1, le=100_000)] = 5
    """Images of the pool that make up tier top5, per class."""

    pool: Pool = "ensemble"
    """ensemble: the images that all models classify correctly; model: those that this model does."""

    order: Order = "log_odds"
    """log_odds, or float32: by the confidence in float32, where the confidences of many images are equal."""

    tiers: Annotated[list[str], _FIRST_TIERS] = Field(default_factory=lambda: list(TIERS))
    """The tiers from which a class may be filled, in their order: the first, the first two, or all three."""


class Gold(Section):
    """Images with a known verdict that are mixed in unseen."""

    folder: str
    """The folder that `cleanset review gold` makes, relative to the edition."""

    share: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """Their share of the images shown."""


KEYS_OF_REASONS = "ceruxyz"
"""The keys that further reasons may have: letters that no usual reason, no step of a crop and no magnifier has."""


class FurtherReason(Section):
    """A reason of this edition to reject an image, or to crop it."""

    key: Annotated[str, one_of(*KEYS_OF_REASONS)]
    """The key on the review page."""

    rule: Annotated[str, Field(min_length=1, max_length=1000)]
    """When it applies, in the guidelines."""


_NEW_REASONS = checked(
    lambda names: not set(names) & set(EXCLUSION_REASONS) and all(re.fullmatch(REASON_FORM, name) for name in names),
    "new names of small letters, digits and _, such as lens_flare",
)
_OWN_KEYS = checked(
    lambda reasons: len({each.key for each in reasons.values()}) == len(reasons), "a key of its own for each reason"
)
_DISTINCT_FILES = checked(
    lambda names: all(name.strip() for name in names) and len(set(names)) == len(names),
    "names of CSV files, each once",
)
_DISTINCT_CALLABLES = checked(
    lambda names: all(map(is_callable_name, names)) and len(set(names)) == len(names), "names as MODULE:NAME, each once"
)
_DISTINCT_BASES = checked(
    lambda bases: "explicit" in bases and set(bases) <= set(BASES) and len(set(bases)) == len(bases),
    f"explicit and any others of {', '.join(BASES)}, each once",
)


class ReviewPolicy(Section):
    """The policy that makes one verdict of several reviewers' and decides about unreviewed images."""

    policy: Literal["single", "majority", "unanimous"] = "single"
    """The agreement that a verdict needs: one reviewer, most of them, or all."""

    min_reviewers: Annotated[int, Field(ge=1, le=1000)] = 1
    """Reviewers that an image needs; 1 with policy single."""

    min_crop_pixels: Annotated[int, Field(ge=1, le=65_535)] = 32
    """The shortest edge that a crop may have, in pixels."""

    box_tolerance: Annotated[float, Field(ge=0, le=0.5)] = 0.02
    """How far the edges of two reviewers' boxes may be apart for their verdicts to agree, as a share of the shorter
    side of the box that keeps less, which is then taken."""

    unreviewed: Literal["pending", "clean"] = "pending"
    """An image without a verdict stays open, or counts as clean."""

    wrong_after_crop: Literal["reject", "accept"] = "reject"
    """The fate of an image that the model misclassifies once it is cropped."""

    crops: Literal["last", "in_rank"] = "last"
    """Within a tier, cropped images come after the clean ones, or in their rank."""

    unknown_boxes: Literal["open", "count"] = "open"
    """A crop whose box is not known stays open until it is drawn, or is kept for counting only, and never exported."""

    accept: Annotated[list[str], _DISTINCT_BASES] = Field(default_factory=lambda: list(BASES))
    """The bases of the verdicts that count; an image with any other is asked again."""

    assign: dict[str, str] = Field(default_factory=dict)
    """By reviewer, the class indices that they are asked for, such as 0-499; if empty, everybody is asked for all."""

    overlap: Annotated[float, Field(ge=0, le=1)] = 0.05
    """The share of the classes that everyone is asked for where the work is split."""

    seconds_per_image: Annotated[float, Field(ge=0, le=60)] = 0.4
    """The shortest time that the review page shows an image before it can be taken as clean with others."""

    opinions: Annotated[list[str], _DISTINCT_FILES] = Field(default_factory=list)
    """CSV files with others' findings on images, relative to the edition's folder; the page shows them, and they decide
    nothing."""

    reasons: Annotated[dict[str, FurtherReason], _NEW_REASONS, _OWN_KEYS] = Field(default_factory=dict)
    """Further reasons to reject or crop an image, by name."""

    hints: Annotated[list[str], _DISTINCT_CALLABLES] = Field(default_factory=list)
    """Your own hints, as MODULE:NAME; their modules are in the edition's folder. They decide nothing."""

    gold: Gold | None = None
    """The images with a known verdict that are mixed in; they decide nothing."""

    @field_validator("assign")
    @classmethod
    def _ranges(cls, assign: dict[str, str]) -> dict[str, str]:
        for text in assign.values():
            parse_ranges(text)
        return assign

    @model_validator(mode="after")
    def _single_needs_one(self) -> Self:
        if self.policy == "single" and self.min_reviewers != 1:
            raise ValueError("policy single goes with min_reviewers 1; for more take majority or unanimous")
        return self


MAX_IMAGES_PER_CLASS = 1000
_EXPECTED_NUMBER = f"a number from 1 to {MAX_IMAGES_PER_CLASS:,}, or all"


def _is_number_or_all(value: object) -> TypeGuard[ImagesPerClass]:
    # a bool is an int, too
    return value == "all" or (type(value) is int and 1 <= value <= MAX_IMAGES_PER_CLASS)


def images_per_class_from_text(text: str) -> ImagesPerClass:
    """The number of images of a class that an option gives. Raises InputError for anything else."""
    found = text if text == "all" else int(text) if re.fullmatch("[0-9]{1,9}", text) else None
    if found is None or not _is_number_or_all(found):
        raise InputError(f"--images-per-class {shown(text)}: expected {_EXPECTED_NUMBER}")
    return found


class FurtherColumns(Section):
    """Further columns of the manifest, from a table with a line for each image."""

    file: NonEmpty
    """A CSV file with the column `image` and those of `names`, relative to the edition's folder."""

    names: Annotated[list[Role], EachOnce, Field(min_length=1)]
    """The columns to take, such as camera; the manifest has them as x_camera."""


class Export(Section):
    """The finished sets: their size, and what card and catalogues say about them."""

    images_per_class: Annotated[ImagesPerClass, checked(_is_number_or_all, _EXPECTED_NUMBER, BeforeValidator)] = 3
    """Images of a class in a full set, from 1 to 1000; all: every image of the class that qualifies."""

    strict: bool = False
    """Whether a class that cannot be filled is an error."""

    # no leading zeros: two texts must not name one version
    version: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){2}$")] = "0.0.0"
    """The version in card and Croissant, as MAJOR.MINOR.PATCH."""

    date: str = ""
    """The day of publication (ISO 8601); empty before it."""

    label_sources: list[str] = Field(default_factory=list)
    """Studies that manifest and card compare the labels with, by name: cleanset labels --list."""

    columns: FurtherColumns | None = None
    """Further columns of the manifest, such as camera, patient or site."""

    about: About | None = None
    """The facts about the set and its publishers."""

    @field_validator("label_sources")
    @classmethod
    def _known_sources(cls, names: list[str]) -> list[str]:
        known = known_sources()
        if any(name not in known for name in names) or len(set(names)) < len(names):
            raise ValueError(f"expected a list of distinct names among {', '.join(known)}")
        return names

    @field_validator("date")
    @classmethod
    def _iso_date(cls, date: str) -> str:
        known = not date
        with suppress(ValueError):
            known = known or datetime.date.fromisoformat(date).isoformat() == date
        if not known:
            raise ValueError(f'{shown(date)}; expected a day like "2026-01-31", or nothing')
        return date


class Count(Section):
    """The numbers that are counted next to the images."""

    accuracy: bool = True
    """Whether the models' accuracies are counted; not where score tables hold only part of their predictions."""

    published_top1: dict[Role, Annotated[float, Field(ge=0, le=100)]] = Field(default_factory=dict)
    """A model's published top-1 accuracy in percent, by role, to compare the measured one with."""


Protocol = Literal["as_written", "as_published"]

PROTOCOLS: dict[Protocol, dict[str, dict[str, object]]] = data_beside(__file__, "protocols.yaml")
"""By protocol, the keys as SCOOTER's text says (as_written), or as its published set was made (as_published)."""


class Params(Section):
    """The whole file."""

    root: str
    """The path from the edition's folder to the one that holds `src/`."""

    protocol: Protocol = "as_written"
    """The source of the keys in PROTOCOLS that the file leaves out."""

    dataset: Dataset
    models: Annotated[dict[Role, Model], Field(min_length=1)]
    """The ensemble by role."""

    engine: Engine = "local"
    """What runs scores, answers, digests, attacks and trainings. local: the devices of this machine; ray: a Ray
    cluster's."""

    score: Score = Score()
    select: Select = Select()
    review: ReviewPolicy = ReviewPolicy()
    export: Export = Export()
    count: Count = Count()

    @model_validator(mode="before")
    @classmethod
    def _by_protocol(cls, content: object) -> object:
        if not isinstance(content, dict):
            return content
        # before defaults are filled in, which would hide that a key is missing
        completed = dict(content)
        protocol = content.get("protocol", "as_written")
        for section, keys in next((keys for name, keys in PROTOCOLS.items() if name == protocol), {}).items():
            if isinstance(content.get(section, {}), dict):
                completed[section] = keys | content.get(section, {})
        return completed

    @model_validator(mode="after")
    def _published_of_known_models(self) -> Self:
        for role in self.count.published_top1:
            if role not in self.models:
                raise ValueError(
                    f"count.published_top1: no model {shown(role)}; expected one of {_listed(self.models)}"
                )
        return self

    @model_validator(mode="after")
    def _answerable_by_lists(self) -> Self:
        """Refuse settings that need predictions which a list, a table of scores or a random order does not have."""
        needs = {
            "review.wrong_after_crop": ("reject", "accept", "predictions of crops"),
            "select.pool": ("ensemble", "model", "the other images that its model classifies correctly"),
            "count.accuracy": (True, "false", "predictions of all images"),
        }
        keys_of = {
            "lists": needs,
            "scores": ["review.wrong_after_crop"],
            "random": ["review.wrong_after_crop", "count.accuracy"],
        }
        for role, model in self.models.items():
            for key in keys_of.get(model.source, ()):
                refused, expected, lacking = needs[key]
                if attrgetter(key)(self) == refused:
                    raise ValueError(
                        f"{key}: {str(refused).lower()}, but models.{role} is {model.kind}, which lacks {lacking}; "
                        f"expected {expected}"
                    )
        return self

    @model_validator(mode="after")
    def _about_these_images(self) -> Self:
        about = self.export.about
        is_own = self.dataset.is_own
        if about is not None and (about.images is None) == is_own:
            found, expected = ("missing", "source, licence and people") if is_own else ("given", "none for ImageNet")
            raise ValueError(f"export.about.images: {found}; expected {expected}")
        return self

    @model_validator(mode="after")
    def _distinct_models(self) -> Self:
        """Refuse one network, or one list, under two roles: it would count twice in the ensemble."""
        roles: dict[tuple[str, str], str] = {}
        for role, model in self.models.items():
            for key in ("name",) if model.is_list or model.source == "module" else ("weights", "sha256"):
                # one file has the lists of several models
                value = f"{model.name} in {model.file}" if key == "name" else getattr(model, key)
                if value is None:
                    continue
                if (key, value) in roles:
                    raise ValueError(
                        f"models.{role}.{key}: the same as models.{roles[key, value]}; expected another network for "
                        "each role: correct it, or remove one of the two"
                    )
                roles[key, value] = role
        return self

    def rule(self, role: str) -> Rule:
        """Which images are candidates of a model, from `select` and `dataset.label`."""
        return Rule(
            count=self.select.candidates,
            pool=self.select.pool,
            order=self.select.order,
            label=self.dataset.label,
            in_random_order=self.models[role].is_random,
        )

    def model(self, role: str) -> Model:
        """The model of a role. Raises CleansetError for a role that is not there."""
        if role not in self.models:
            raise CleansetError(f"params.yaml: no model {shown(role)}; expected one of {_listed(self.models)}")
        return self.models[role]

    def network(self, role: str) -> Model:
        """The model of a role, to be run. Raises CleansetError for an unknown role, and for a published list."""
        model = self.model(role)
        if model.is_list:
            raise CleansetError(has_no_network(role, model))
        return model


def has_no_network(role: str, model: Model) -> str:
    """The message for a published list, or other scores, where a network is needed."""
    where = f" in {model.file}" if model.file else ""
    return (
        f"{role}: {model.kind} ({model.name}{where}), which has no network to run; expected a model from timm, "
        "torchvision, robustbench or a module"
    )


def _listed(roles: Iterable[str]) -> str:
    return cut(", ".join(roles), 100)


EXPECTED_EDITION = "expected the folder of an edition, with params.yaml in UTF-8, as cleanset edition makes one"


def read_params(edition: Path) -> Params:
    """Read and check `params.yaml` of an edition. Raises CleansetError naming the first wrong key."""
    path = edition / "params.yaml"
    content = read_yaml(path, EXPECTED_EDITION)
    return checked_params(content, str(path))


def checked_params(content: object, where: str) -> Params:
    """The params in the content of a params.yaml.

    Raises CleansetError naming `where` and all missing keys, or the first wrong one.
    """
    check_not_newer(content, where)
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        missing = missing_keys(error)
        if not missing:
            raise CleansetError(f"{where}: {first_problem(error)}") from None
        keys, them = ("key", "it") if len(missing) == 1 else ("keys", "them")
        raise CleansetError(
            f"{where}: missing {keys} {join_names(missing)}: add {them}, as in imagenet/params.yaml"
        ) from None
