"""The plans of a study of robustness and of `robustness evaluate`: changed images, and the answers to them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from cleanset.classes import ClassTable
from cleanset.edition.params import Params
from cleanset.errors import CleansetError
from cleanset.evaluation.models import check_model, lacks_weights
from cleanset.planning.costs import IMAGENET_IMAGE_BYTES, Costs, total_size
from cleanset.planning.scored import scoring_costs
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import Count, Passes, Plan, Work
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import LoadedModel
from cleanset.studies.robustness.answering import StudyModels, asked
from cleanset.studies.robustness.families import (
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    families_in,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import ChangeName, Study

ANSWER_BYTES = 80
"""Bytes of an answer in a table, about."""
TABLES = ("digests", "measure", "pages")
"""The stages without a network that follow the answers."""


def expected_images(params: Params, classes: ClassTable) -> int:
    """The images of all finished sets, at most, as an edition's params allow them."""
    per_class = params.export.images_per_class
    if not isinstance(per_class, int):
        return params.dataset.expect_images or 0
    return per_class * len(params.dataset.class_list(classes)) * len(params.models)


def images_not_here(study: Study, params: Params, classes: ClassTable) -> str:
    """The note of a plan whose images are not known yet."""
    count = expected_images(params, classes)
    return (
        f"The images are not here (stage images of {study.folder.name}): counted as {count:,}, the most that the "
        "edition's params allow."
    )


def answers_work(work: Work, clean: int, changes: int, size: int) -> Work:
    """The answers of a model to a family: `clean` images of `size` bytes in all with `changes` each."""
    images = clean * changes
    return replace(
        work,
        images=images,
        changes=changes,
        of_image=Passes(forward=1),
        # with the model's own preprocessing
        besides=Passes(forward=clean),
        bytes_read=size,
        bytes_written=images * ANSWER_BYTES,
    )


def plan(study: Study) -> Plan:
    """The plan of a study of robustness; nothing is written or downloaded.

    Raises CleansetError for params, images or masks that no stage would take.
    """
    opened = OpenedStudy.read(study)
    counted = _Counted(opened=opened, states=stage_states(study.folder))
    has_images = study.images.is_file()
    notes = [] if has_images else [images_not_here(study, opened.edition, opened.classes)]
    changes = counted.changes(FAMILIES) if has_images else {}
    works = [
        counted.work(family, changes.get(family.name), role)
        for family in FAMILIES
        for role in opened.params.models(opened.roles)
    ]
    tables = [without_network(each, counted.states) for each in TABLES]
    return Plan(name=str(study.folder), works=[without_network("images", counted.states), *works, *tables], notes=notes)


def counting(opened: OpenedStudy) -> Count:
    """Counts the answers of a command's models to changed images; what is finished in its folder is taken off.

    Nothing is written or downloaded.
    """
    counted = _Counted(opened=opened, states=StageStates(changed=None))
    families = families_in(opened.params)
    changes = counted.changes(families)

    def count() -> Plan:
        works = [counted.work(family, changes[family.name], name) for family in families for name in opened.stems]
        return Plan(name=opened.images.name, works=works)

    return count


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """A study with the state of its stages, or a command, whose models are opened as far as they have begun."""

    opened: OpenedStudy
    states: StageStates

    @cached_property
    def models(self) -> StudyModels:
        return StudyModels(self.opened, settings_for(self.opened.score))

    def changes(self, families: Sequence[Family]) -> dict[str, ChangePlan]:
        """The changed images by family. Raises CleansetError for images or masks that cannot be used."""
        return {family.name: self.opened.plan(family) for family in families}

    def work(self, family: Family, change: ChangePlan | None, name: str) -> Work:
        """The answers of a model to a family; `change`: None if the study has no images yet."""
        opened = self.opened
        work = Work(name=family.name, model=name)
        if opened.is_study:
            stage = f"{family.name}@{name}" if name in opened.roles else f"further@{name}"
            work = replace(work, stage=stage, state=self.states.state(stage))
        if change is not None:
            work = replace(work, measure=partial(self._measure, change.for_model(name), name))
        if work.state == "finished":
            return work
        steps = 1 + len(family.section_in(opened.params).changes())
        if change is None:
            clean = expected_images(opened.edition, opened.classes)
            return answers_work(work, clean, steps, clean * IMAGENET_IMAGE_BYTES)
        own = change.for_model(name)
        size = total_size([own.files[file].path for file in own.images["file"]])
        work = answers_work(work, len(own.images), steps, size)
        stem = opened.stems[name]
        is_command = not opened.is_study
        is_kept = is_command and opened.answers.predictions(family.name, stem).is_file()
        has_begun = is_kept or opened.answers.partial(family.name, stem).is_dir()
        if not has_begun or (is_command and lacks_weights(opened.spec_of(name))):
            return work
        try:
            model = self.models.load(name)
        except CleansetError as error:
            return replace(work, remark=str(error))
        if is_kept and model.is_finished(own):
            return replace(work, state="finished")
        return replace(work, part=model.finished_part(own))

    def _measure(self, change: ChangePlan, name: str) -> Costs:
        """The costs of making all changes of an image, and of answering them.

        The costs are of an image left, which a changed one is.
        """
        opened = self.opened

        def load() -> LoadedModel:
            check_model(opened.spec_of(name))
            return asked(self.models.load(name), change).model

        by_image = defaultdict[str, list[ChangeName]](list)
        for each in change.names():
            by_image[each.file].append(each)
        costs = scoring_costs(load, change.changed_images(), self.models.settings, [*by_image.values()])
        return replace(costs, image=costs.image / (1 + len(change.changes)))
