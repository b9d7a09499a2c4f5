"""The params that all families share: images, masks, the bootstrap, and the models next to the edition's.

A further model is a model of a zoo, as in the edition's params.yaml, or `module:callable`, a custom model. Each family
adds its own sections: see `families.StudyParams`.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import Field, WrapValidator

from cleanset.classes import ClassTable
from cleanset.edition.params import Engine, Model
from cleanset.errors import CleansetError
from cleanset.evaluation.specs import ModuleModel, TrainedModel, parse_specs
from cleanset.plumbing.validation import Role, Section, shown
from cleanset.plumbing.yaml_files import read_study_yaml


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


def further_roles(params: Path) -> list[str]:
    """The roles in `further_models` of a study's params.yaml, which the stages that run models check."""
    content = read_study_yaml(params, "a study of robustness")
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
    """Models that are measured next to the edition's, whose folder `weights` are relative to; or `module:callable`, a
    custom model, whose module is looked for next to this file first."""

    def section(self, kind: type[AnySection]) -> AnySection:
        """The section of that class: a family's own one, or its one in `measures`."""
        # no two sections are of one class, so a family needs to know neither its key nor where the section is
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
