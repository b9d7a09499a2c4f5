"""The list of the families of image changes; the changed images of a study, and its params.

No model, no torch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from pydantic import Field, create_model

from cleanset.classes import ClassTable
from cleanset.dataset.folder import GROUP, groups_of
from cleanset.edition.params import Params, read_params
from cleanset.errors import CleansetError
from cleanset.evaluation.request import Request
from cleanset.evaluation.sets import EvaluationSet, ImageFile
from cleanset.evaluation.specs import Spec, spec_of_entry
from cleanset.plumbing.validation import Section, check_known, join_names, shown, validate
from cleanset.plumbing.yaml_files import read_study_yaml
from cleanset.studies.robustness.corruptions.family import CORRUPTION_FAMILY
from cleanset.studies.robustness.corruptions.params import CorruptionMeasures, corruptions_of
from cleanset.studies.robustness.family import Changing, Family, ReferencedModel
from cleanset.studies.robustness.images import (
    MASKS,
    STUDY_IMAGES,
    AnswerFiles,
    ChangedImages,
    ChangeName,
    Sources,
    Study,
    files_of,
    images_for,
    images_sha256,
)
from cleanset.studies.robustness.opened_images import set_of_rows
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.perturbations.family import PERTURBATION_FAMILY
from cleanset.studies.robustness.results import SELECTIONS
from cleanset.studies.robustness.scenarios.family import SCENARIO_FAMILY
from cleanset.studies.robustness.scenarios.mask_files import masks_found
from cleanset.studies.robustness.sections import UNCHANGED
from cleanset.studies.robustness.watermarks.family import WATERMARK_FAMILY
from cleanset.tables import read_table

FAMILIES: tuple[Family, ...] = (CORRUPTION_FAMILY, PERTURBATION_FAMILY, SCENARIO_FAMILY, WATERMARK_FAMILY)
"""All families; each is a stage, a folder of answers, a section of the params and a page."""


def families_in(params: CommonParams) -> list[Family]:
    """The families with at least one change in the params."""
    return [family for family in FAMILIES if family.section_in(params).names]


CHANGING = [f"{__package__}.{family.name}.changes" for family in FAMILIES]
"""Modules that the processes which change images import."""


def family_named(name: str) -> Family:
    """The family of that name. Raises CleansetError for an unknown one."""
    check_known("family", name, [family.name for family in FAMILIES])
    return next(family for family in FAMILIES if family.name == name)


def measured_images(family: Family, images: pd.DataFrame, masks: pd.DataFrame, params: CommonParams) -> pd.DataFrame:
    """The rows of STUDY_IMAGES that a family is measured on.

    Published images show whole images: those that are cropped in a set are left out. Raises CleansetError if no image
    is left.
    """
    # benchmarks were made from whole images: a crop has no counterpart in them
    if family.section_in(params).published is not None:
        whole = images[images["crop"].isna()].reset_index(drop=True)
        if whole.empty:
            raise CleansetError(
                f"{family.name}.published: all {len(images):,} images are cropped, and published images are whole; "
                "expected published: null"
            )
        images = whole
    return family.measured_images(images, masks, params)


WITHOUT_REFERENCE = "Measured without a reference: no published numbers are of these images."


def notice(
    family: Family, params: CommonParams, images: pd.DataFrame, classes: ClassTable, *, is_official: bool = False
) -> str:
    """The notice next to a family's numbers; `images` are all rows of STUDY_IMAGES, `classes` their class table.

    `is_official`: all of a published benchmark was read, which a study of finished sets never does. No benchmark has
    published digests: exchanged or resized images show in the card's pixels_sha256 alone.
    """
    if not classes.is_imagenet:
        is_made = family.section_in(params).published is None
        return WITHOUT_REFERENCE if is_made else f"Published images, unverified. {WITHOUT_REFERENCE}"
    if family.section_in(params).published is None:
        found = family.notice_if_made.format(benchmark=family.benchmark_of(params))
    elif is_official:
        found = f"Published images, unverified: all of {family.benchmark_of(params)}."
    else:
        found = "Published images, unverified, read from a folder."
        if (benchmark := family.benchmark_of(params)) is not None:
            found = f"Published images, unverified, but not all of {benchmark}: no official numbers."
        if cropped := int(images["crop"].notna().sum()):
            found += f" Published images are whole: {cropped:,} that are cropped in the sets are left out."
    return f"{found} {remark}" if (remark := family.remark(params)) else found


def steps_by_change(changes: Iterable[tuple[str, int]]) -> dict[str, str]:
    """The steps of each change, with blanks between, from pairs of a name and a step."""
    steps: dict[str, list[int]] = {}
    for name, step in changes:
        steps.setdefault(name, []).append(step)
    return {name: " ".join(map(str, found)) for name, found in steps.items()}


_MEASURES = "The keys that decide only measures, by family."
"""The description of `measures` in the reference."""


def with_sections(families: Iterable[Family]) -> type[CommonParams]:
    """The params of a study of these families: the common keys, and for each a section and one in `measures`."""
    families = tuple(families)
    of_measures = {each.name: _field(each.measures_section) for each in families if each.measures_section is not None}
    measures: type[Section] = create_model("Measures", __base__=Section, __doc__=_MEASURES, **of_measures)
    sections = {family.name: (family.section, Field(default_factory=family.section.unmeasured)) for family in families}
    fields: dict[str, Any] = sections | {"measures": _field(measures)}
    return create_model("StudyParams", __base__=CommonParams, __doc__=CommonParams.__doc__, **fields)


def _field(section: type[Section]) -> Any:
    """The type and default of a key whose value is a section."""
    return section, Field(default_factory=partial(section.model_validate, {}))


# built instead of written, so that a new family is one line in FAMILIES; type checkers see the common keys alone
if TYPE_CHECKING:
    StudyParams = CommonParams
else:
    StudyParams = with_sections(FAMILIES)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChangePlan:
    """The changed images of a family."""

    family: Family
    """The family."""
    images: pd.DataFrame
    """Rows of STUDY_IMAGES that it is measured on."""
    classes: ClassTable
    """The class table of the images."""
    changes: Sequence[tuple[str, int]]
    """The changes of each image, by name and step."""
    changing: Changing
    """How a changed image is made or read."""
    files: Mapping[str, ImageFile]
    """The locations of these images, by file."""
    params: StudyParams
    """What decides the changes besides the family's section: seed, JPEG quality, which model sees which image."""
    is_published: bool = False
    """Whether the changed images are read instead of made."""

    @property
    def name(self) -> str:
        """The name of the family."""
        return self.family.name

    @property
    def jpeg(self) -> int | None:
        """The quality at which changed images are stored and read again; None: not at all."""
        return self.family.jpeg(self.params)

    @property
    def class_of(self) -> dict[str, int]:
        """The class index of each image, by file."""
        return dict(zip(self.images["file"], self.images["class_index"].tolist(), strict=True))

    def changed_images(self) -> ChangedImages:
        """The changed images."""
        return ChangedImages(
            files=self.files,
            change=self.changing.change,
            jpeg=self.jpeg,
            seed=self.params.seed,
            is_published=self.is_published,
        )

    def for_model(self, name: str) -> "ChangePlan":
        """The changed images that a model sees: only those of its own classes, and with `images: own` of its own
        set."""
        params = self.params
        seen = images_for(self.images, params.images, name, params.classes_of(name, self.classes))
        return replace(self, images=seen)

    def names(self) -> list[ChangeName]:
        """All changed images and the unchanged ones, sorted."""
        # every family has it, so that its measures need no other family's answers
        changes = [(UNCHANGED, 0), *self.changes]
        return sorted(ChangeName(file, name, step) for file in self.images["file"] for name, step in changes)

    def as_record(self) -> dict[str, object]:
        """Everything that the changed images depend on except seed, JPEG quality and libraries."""
        return {
            "images": len(self.images),
            "images_sha256": images_sha256(self.images),
            "changes": steps_by_change(self.changes),
            "settings": dict(self.changing.settings),
        }


def change_plan(family: Family, sources: Sources, params: StudyParams) -> ChangePlan:
    """The changed images of a family, of all images that it is measured on.

    Raises CleansetError for photographs and generated images that scenarios cannot use, and as `find_published` does.
    """
    section = family.section_in(params)
    images = measured_images(family, sources.images, sources.masks, params)
    files = sources.files_in(images)
    if section.published is None:
        changing = family.make_images(sources, images, params)
    else:
        changing = family.read_images(sources.study.folder / section.published, list(files.values()), params)
    return ChangePlan(
        family=family,
        images=images,
        classes=sources.classes,
        changes=section.changes(),
        changing=changing,
        files=files,
        params=params,
        is_published=section.published is not None,
    )


def read_study_params(
    path: Path,
    roles: Sequence[str],
    classes: ClassTable,
    *,
    others: Sequence[str] = (),
    further: bool = True,
    content: Mapping[str, object] | None = None,
) -> StudyParams:
    """Read and check a study's params.yaml, or its `content`, which messages name by `path`. Raises CleansetError.

    `roles` are the models of the edition, `classes` its class table, `others` models that
    `measures.corruptions.trained_on` may name next to the measured ones. Without `further`, `further_models` are not
    measured.
    """
    found = read_study_yaml(path, "a study of robustness") if content is None else content
    params = validate(StudyParams, found, path, context=classes)
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


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenedStudy(Request[StudyParams]):
    """What a study of robustness, or `robustness evaluate`, is asked: its changed images and where answers are kept."""

    @property
    def study(self) -> Study:
        """The paths of the study; for a command, those of masks, photographs and generated images."""
        return Study(self.folder)

    @property
    def answers(self) -> AnswerFiles:
        """Where answers are kept."""
        return self.study.answers if self.is_study else AnswerFiles(self.out)

    @classmethod
    def read(cls, study: Study) -> Self:
        """Read a study in an edition. Raises CleansetError as `read_study_params`."""
        classes = study.edition.read_classes()
        edition = read_params(study.edition.folder)
        params = read_study_params(study.params_yaml, list(edition.models), classes)
        entries = {**edition.models, **params.further_models}
        networks = {role: each for role, each in entries.items() if isinstance(each, str) or not each.is_list}
        return cls(
            folder=study.folder,
            out=study.folder / "data",
            is_study=True,
            classes=classes,
            open_images=partial(_images_of, study, classes, list(edition.models), params),
            params=params,
            stems={role: role for role in params.models(edition.models)},
            specs={
                role: spec_of_entry(role, each, study.edition.folder, study.folder) for role, each in networks.items()
            },
            score=edition.score,
            engine=params.engine or edition.engine,
            stored=list(edition.models),
        )

    @property
    def edition(self) -> Params:
        """The params of a study's edition."""
        return read_params(self.study.edition.folder)

    @property
    def roles(self) -> list[str]:
        """The models of a study's edition."""
        return list(self.edition.models)

    def spec_of(self, name: str) -> Spec:
        """A model by its name. Raises CleansetError for another name, and for a list, which has no network."""
        found = self.specs.get(name)
        return found or spec_of_entry(name, self.edition.network(name), self.study.edition.folder)

    @cached_property
    def sources(self) -> Sources:
        """The sources of the changed images, of a study as stage images found them."""
        found = self.images
        masks = (
            read_table(self.study.masks_table, MASKS, self.classes)
            if self.is_study
            else masks_found(found.rows, found.files, self.study.masks, self.params, classes=self.classes)
        )
        return Sources(
            images=found.rows,
            masks=masks,
            files=found.files,
            classes=self.classes,
            study=self.study,
            edition=found.edition,
        )

    def plan(self, family: Family) -> ChangePlan:
        """The changed images of a family. Raises CleansetError as `change_plan` does."""
        return change_plan(family, self.sources, self.params)


def _images_of(study: Study, classes: ClassTable, roles: Sequence[str], params: StudyParams) -> EvaluationSet:
    """The images of a study, as its stage images found them."""
    rows = read_table(study.images, STUDY_IMAGES, classes)
    groups = groups_of(study.images)
    rows[GROUP] = [groups.get(image_id, "") for image_id in rows["image_id"]]
    found = set_of_rows(
        f"finished sets of {join_names(roles)}", rows, files_of(study.edition, rows), study.edition, classes
    )
    return replace(
        found,
        owners=roles,
        selections=SELECTIONS if params.images == "union" else ("own",),
        selected_by=roles[0] if len(roles) == 1 else None,
    )


def _with_trained_on(path: Path, params: StudyParams) -> StudyParams:
    """The params, with the `trained_on` of further models next to that of the measures."""
    section = params.section(CorruptionMeasures)
    trained_on = dict(section.trained_on)
    for role, entry in params.further_models.items():
        if not isinstance(entry, str) and entry.trained_on:
            try:
                corruptions_of(entry.trained_on)
            except CleansetError as error:
                raise CleansetError(f"{path}: further_models.{role}.trained_on: {error}") from None
            trained_on[role] = list(dict.fromkeys([*trained_on.get(role, []), *entry.trained_on]))
    name = next(family.name for family in FAMILIES if family.measures_section is CorruptionMeasures)
    measures = params.measures.model_copy(update={name: section.model_copy(update={"trained_on": trained_on})})
    return params.model_copy(update={"measures": measures})


def _check_further(path: Path, params: StudyParams, roles: Sequence[str], *, is_measured: bool) -> None:
    """Raise CleansetError for further models that a study cannot have; `is_measured`: next to the roles."""
    reserved = {name for family in FAMILIES for name in family.reserved_names}
    for role in params.further_models:
        if role in reserved:
            raise CleansetError(f"{path}: further_models: {role} names the published table; choose another role")
        if is_measured and role in roles:
            raise CleansetError(f"{path}: further_models.{role}: the edition has this role; choose another one")
        if is_measured and params.images == "own":
            raise CleansetError(f"{path}: further_models: {role} has no set of its own; expected images: union")


def _check_named(where: str, model: ReferencedModel, known: Sequence[str], params: StudyParams) -> None:
    """Raise CleansetError for a model that a section names and that it cannot be measured against."""
    if model.name not in known:
        raise CleansetError(f"{where}: unknown model {shown(model.name)}; expected one of {', '.join(known)}")
    if model.is_reference and params.keys_of(model.name) is not None:
        raise CleansetError(f"{where}: {model.name} has some classes only; expected a model of all 1,000")
    if params.images == "own" and model.is_reference and model.name not in model.also:
        without = " or ".join(model.also) or "no reference"
        raise CleansetError(
            f"{where}: {model.name} sees other images than the models that it is the reference of, with images: own; "
            f"expected {without}, or images: union"
        )
