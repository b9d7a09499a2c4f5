"""A study's further models: an entry of `further_models`, and the same as a name on the command line would be.

An entry is a model of a zoo, as in the edition's params.yaml, or `module:callable`, a model of one's own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, WrapValidator, field_validator, model_validator

from cleanset.dataset.ilsvrc import class_indices
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.evaluation.specs import ModuleModel, Spec, ZooModel, parse_specs
from cleanset.validation import shown
from cleanset.yaml_files import read_yaml


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
                raise ValueError(f"unknown wnid {shown(wnid)}; expected those of ILSVRC2012")
        if len(set(wnids or [])) != len(wnids or []):
            raise ValueError("a wnid comes twice; expected each once")
        return wnids

    @property
    def is_of_training(self) -> bool:
        """Whether the network differs from the published one."""
        return self.classes is not None or self.size is not None

    @model_validator(mode="after")
    def _with_weights(self) -> "TrainedModel":
        if self.is_of_training and (self.weights is None or self.source not in ("timm", "torchvision")):
            raise ValueError("classes and size go with weights of a network of timm or torchvision; expected weights")
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
