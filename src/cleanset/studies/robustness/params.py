"""A study's further models: an entry of `further_models`, and the same as a name on the command line would be.

An entry is a model of a zoo, as in the edition's params.yaml, or `module:callable`, a custom model.

The keys of a study's `params.yaml` that all families share; each family adds its own sections.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field, WrapValidator, field_validator, model_validator

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.measure.specs import ModuleModel, Spec, ZooModel, parse_specs
from cleanset.parsing import read_yaml
from cleanset.validation import Role, Section, shown
from cleanset.vocabulary import class_indices


class TrainedModel(Model):
    """A further model: where it comes from, and what the training of its weights has decided.

    `classes`: the wnids of its logits, in their order; null: all 1,000. It is measured on images of these alone.
    `size`: of the images that it was trained with, where that is not the published size; their central part is seen.
    `trained_on`: the corruptions that it was trained with, which mce_unseen leaves out.
    """

    classes: Annotated[list[str], Field(min_length=2)] | None = None
    size: Annotated[int, Field(ge=16, le=2048)] | None = None
    trained_on: Annotated[list[str], Field(default_factory=list)]

    @field_validator("classes")
    @classmethod
    def _known_wnids(cls, wnids: list[str] | None) -> list[str] | None:
        for wnid in wnids or []:
            if wnid not in class_indices():
                raise ValueError(f"unknown wnid {shown(wnid)}; expected a wnid of ILSVRC2012")
        if len(set(wnids or [])) != len(wnids or []):
            raise ValueError("a wnid appears twice; list every wnid once")
        return wnids

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
                f"weights without sha256: a change would go unseen; add what sha256sum {self.weights} prints"
            )
        return self


def _model_or_callable(entry: object, validate: Callable[[Any], Model]) -> Model | str:
    if not isinstance(entry, str):
        return validate(entry)
    try:
        (spec,) = parse_specs([entry], None, {}, Path(), Path())
    except CleansetError:
        spec = None
    if not isinstance(spec, ModuleModel):
        raise ValueError(f"{shown(entry)}; expected MODULE:CALLABLE, or a section with source and name")
    return entry


# a union would put the names of its parts into the keys that errors name
if TYPE_CHECKING:
    FurtherModel = Model | str
else:
    FurtherModel = Annotated[TrainedModel, WrapValidator(_model_or_callable)]


def further_spec(entry: Model | str, study: Path, edition: Path, role: str) -> Spec:
    """The model of an entry of `further_models`; a module is looked for in the folder of the study first.

    `edition`: the folder that the paths of weights are relative to.
    """
    if isinstance(entry, str):
        module, _, name = entry.partition(":")
        return ModuleModel(entry, module, name, study)
    return ZooModel(role, entry, edition)


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

    `images`: every model gets the images of all sets (union), or those of its own set only (own). `jpeg`: the quality
    at which a changed image is stored before a model sees it, as the benchmark's images were; None leaves that out.
    `further_models`: models that are measured beside those of the edition, whose folder `weights` are relative to; or
    `module:callable`, a custom model, whose module is looked for beside this file first.
    `measures` has a section for each family, too: a change there recomputes no image and no prediction.
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

    def classes_of(self, role: str) -> frozenset[int] | None:
        """The class indices that a further model has; None for a model of all 1,000."""
        entry = self.further_models.get(role)
        wnids = entry.classes if isinstance(entry, TrainedModel) else None
        return None if wnids is None else frozenset(class_indices()[wnid] for wnid in wnids)

    def models(self, roles: Iterable[str]) -> list[str]:
        """The models that are measured: those of the edition, then the further ones."""
        return [*roles, *self.further_models]
