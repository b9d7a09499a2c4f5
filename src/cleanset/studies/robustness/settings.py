"""A study's `params.yaml`, checked on reading."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError, create_model

from cleanset.errors import CleansetError
from cleanset.parsing import read_yaml
from cleanset.studies.robustness.corruptions.params import CorruptionMeasures, corruptions_of
from cleanset.studies.robustness.families import FAMILIES
from cleanset.studies.robustness.family import Family, ReferencedModel
from cleanset.studies.robustness.params import CommonParams, TrainedModel
from cleanset.validation import Section, first_problem, shown

_MEASURES = "The keys that decide only measures, by family."
"""The description of `measures` in the reference."""


def with_sections(families: Iterable[Family]) -> type[CommonParams]:
    """The params of a study of these families: the common keys, and for each a section and one in `measures`."""
    families = tuple(families)
    of_measures = {each.name: _field(each.measures_section) for each in families if each.measures_section is not None}
    measures: type[Section] = create_model("Measures", __base__=Section, __doc__=_MEASURES, **of_measures)
    fields = {family.name: _field(family.section) for family in families} | {"measures": _field(measures)}
    return create_model("StudyParams", __base__=CommonParams, __doc__=CommonParams.__doc__, **fields)


def _field(section: type[Section]) -> Any:
    """The type and default of a key whose value is a section."""
    return section, Field(default_factory=partial(section.model_validate, {}))


# built instead of written, so that a new family is one line in FAMILIES; type checkers see the common keys alone
if TYPE_CHECKING:
    StudyParams = CommonParams
else:
    StudyParams = with_sections(FAMILIES)


def read_study_params(
    path: Path, roles: Sequence[str], others: Sequence[str] = (), *, further: bool = True
) -> StudyParams:
    """Read and check a study's params.yaml. Raises CleansetError naming the key.

    `roles` are the models of the edition, `others` models that `measures.corruptions.trained_on` may name beside those
    that are measured. Without `further` those of `further_models` are not measured.
    """
    content = read_yaml(path, "expected the params of a study: git checkout it")
    _refuse_moved(path, content)
    try:
        params = StudyParams.model_validate(content)
    except ValidationError as error:
        raise CleansetError(f"{path}: {first_problem(error)}") from None
    _check_further(path, params, roles, is_measured=further)
    # measures can be divided only by those of a model that is measured here
    measured = params.models(roles) if further else list(roles)
    for family in FAMILIES:
        for each in family.named_models(params):
            known = [*each.also, *measured, *(others if each.may_be_unmeasured else ())]
            _check_named(f"{path}: measures.{family.name}.{each.key}", each, known, params)
    for family in FAMILIES:
        if (problem := family.problem(params)) is not None:
            raise CleansetError(f"{path}: {problem}")
    return _with_trained_on(path, params)


def _with_trained_on(path: Path, params: StudyParams) -> StudyParams:
    """The params, with the `trained_on` of further models beside that of the measures."""
    section = params.section(CorruptionMeasures)
    trained_on = dict(section.trained_on)
    for role, entry in params.further_models.items():
        if isinstance(entry, TrainedModel) and entry.trained_on:
            try:
                corruptions_of(entry.trained_on)
            except CleansetError as error:
                raise CleansetError(f"{path}: further_models.{role}.trained_on: {error}") from None
            trained_on[role] = list(dict.fromkeys([*trained_on.get(role, []), *entry.trained_on]))
    name = next(family.name for family in FAMILIES if family.measures_section is CorruptionMeasures)
    measures = params.measures.model_copy(update={name: section.model_copy(update={"trained_on": trained_on})})
    return params.model_copy(update={"measures": measures})


def _check_further(path: Path, params: StudyParams, roles: Sequence[str], *, is_measured: bool) -> None:
    """Raise CleansetError for further models that a study cannot have; `is_measured`: beside the roles."""
    reserved = {name for family in FAMILIES for name in family.reserved_names}
    for role in params.further_models:
        if role in reserved:
            raise CleansetError(f"{path}: further_models: {role} names the published table; expected another role")
        if is_measured and role in roles:
            raise CleansetError(f"{path}: further_models.{role}: the edition has this role; expected another one")
        if is_measured and params.images == "own":
            raise CleansetError(f"{path}: further_models: {role} has no set of its own; expected images: union")


def _refuse_moved(path: Path, content: object) -> None:
    """Raise CleansetError for sections and keys that have another place now, naming it."""
    sections = content if isinstance(content, dict) else {}
    if "attack" in sections:
        raise CleansetError(
            f"{path}: attack: this section has become a file of its own; expected its keys in "
            "studies/attacks/params.yaml: move them there"
        )
    moved = [
        f"{family.name}.{key}"
        for family in FAMILIES
        if family.measures_section is not None and isinstance(sections.get(family.name), dict)
        for key in family.measures_section.model_fields
        if key in sections[family.name] and key not in family.section.model_fields
    ]
    if moved:
        raise CleansetError(f"{path}: {'; '.join(f'{key}: moved to measures.{key}' for key in moved)}")


def _check_named(where: str, model: ReferencedModel, known: Sequence[str], params: StudyParams) -> None:
    """Raise CleansetError for a model that a section names and that it cannot be measured against."""
    if model.name not in known:
        raise CleansetError(f"{where}: unknown model {shown(model.name)}; expected one of {', '.join(known)}")
    if model.is_reference and params.classes_of(model.name) is not None:
        raise CleansetError(f"{where}: {model.name} has some classes only; expected a model of all 1,000")
    if params.images == "own" and model.is_reference and model.name not in model.also:
        without = " or ".join(model.also) or "no reference"
        raise CleansetError(
            f"{where}: {model.name} sees other images than the models that it is the reference of, with images: own; "
            f"expected {without}, or images: union"
        )
