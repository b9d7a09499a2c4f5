"""A study's further models: an entry of `further_models`, and the same as a name on the command line would be.

An entry is a model of a zoo, as in the edition's params.yaml, or `module:callable`, a model of one's own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WrapValidator

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.evaluation.specs import ModuleModel, Spec, ZooModel, parse_specs
from cleanset.validation import shown
from cleanset.yaml_files import read_yaml


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
    FurtherModel = Annotated[Model, WrapValidator(_model_or_callable)]


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
