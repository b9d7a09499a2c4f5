"""The params that all families share: images, masks, the bootstrap, and the models beside the edition's.

A further model is a model of a zoo, as in the edition's params.yaml, or `module:callable`, a custom model. Each family
adds its own sections: see `families.StudyParams`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, WrapValidator, model_validator

from cleanset.classes import ClassTable, context_classes
from cleanset.edition.params import Engine, Model
from cleanset.errors import CleansetError
from cleanset.measure.specs import ModuleModel, Spec, ZooModel, parse_specs
from cleanset.plumbing.validation import EachOnce, Role, Section, shown
from cleanset.plumbing.yaml_files import read_yaml


def _known_key(key: str, info: ValidationInfo) -> str:
    classes = context_classes(info)
    if key not in classes.indices:
        raise ValueError(f"expected {classes.expected_key}, such as {classes.example_key}")
    return key


Wnid = Annotated[str, AfterValidator(_known_key)]
"""A class key; the class table is the validation context."""


class TrainedModel(Model):
    """A further model: its source, and the facts that the training of its weights decided."""

    classes: Annotated[list[Wnid], Field(min_length=2), EachOnce] | None = None
    """The classes of its logits, in their order: it is measured on images of these alone. null: all classes."""
    size: Annotated[int, Field(ge=16, le=2048)] | None = None
    """The side, in pixels, of the images that it was trained with, whose central part is seen. null: as published."""
    trained_on: Annotated[list[str], Field(default_factory=list)]
    """The corruptions that it was trained with, which mce_unseen leaves out."""

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


def _model_or_callable(entry: object, validate: Callable[[object], Model]) -> Model | str:
    if not isinstance(entry, str):
        return validate(entry)
    try:
        (spec,) = parse_specs([entry], architecture=None, roles={}, edition=Path(), weights=Path())
    except CleansetError:
        spec = None
    if not isinstance(spec, ModuleModel) or spec.text != entry:
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
    """Masks of objects, one file an image, named by its id."""

    folder: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """A folder inside `masks`."""
    format: str = "png"
    """The format of its files: png, coco, labelme or imagenet_s."""
    origin: Literal["person", "generator", "model"]
    """Who made them."""


class BootstrapParams(Section):
    """The bootstrap of 95 % intervals, which draws images within classes."""

    draws: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    """The number of resamples."""


class CommonParams(Section):
    """All of a study's params.yaml."""

    images: Literal["union", "own"] = "union"
    """Every model gets the images of all sets (union), or of its own set only (own)."""
    jpeg: Annotated[int, Field(ge=1, le=100)] | None = 85
    """The quality at which a changed image is stored before a model sees it, as the images of ImageNet-C were. null:
    it is not stored."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """The seed of all draws."""
    masks: Annotated[list[MaskFolder], Field(default_factory=list)]
    """The masks that scenarios need."""
    measures: Section = Section()
    """A section for each family: a change there recomputes no image and no prediction."""
    engine: Engine | None = None
    """What computes answers and digests: local or ray; null: as the edition's params say."""
    bootstrap: BootstrapParams = BootstrapParams()
    """The bootstrap of intervals."""
    further_models: Annotated[dict[Role, FurtherModel], Field(default_factory=dict)]
    """Models that are measured beside the edition's, whose folder `weights` are relative to; or `module:callable`, a
    custom model, whose module is looked for beside this file first."""

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
