"""The plans of a study of robustness and of `robustness evaluate`: changed images, and the answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from cleanset.classes import ClassTable
from cleanset.edition.params import Params
from cleanset.errors import CleansetError
from cleanset.evaluation.models import check_model, lacks_weights
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import IMAGE_BYTES, Count, Passes, Plan, Work
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.engine import settings_for
from cleanset.scoring.parts import FinishedPart
from cleanset.scoring.shards import finished_shards
from cleanset.studies.robustness import answering
from cleanset.studies.robustness.answering import AnsweringModel, StudyModels, plan_for
from cleanset.studies.robustness.evaluation import EvaluationRun
from cleanset.studies.robustness.families import (
    CHANGING,
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    StudyParams,
    change_plan,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import Study

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


def answers_work(work: Work, clean: int, changes: int) -> Work:
    """The answers of a model to the changed images of a family, of which `clean` images have `changes` each."""
    images = clean * changes
    return replace(
        work,
        images=images,
        changes=changes,
        of_image=Passes(forward=1),
        # with the model's own preprocessing
        besides=Passes(forward=clean),
        bytes_read=clean * IMAGE_BYTES,
        bytes_written=images * ANSWER_BYTES,
    )


def finished_part(model: AnsweringModel, params: StudyParams, change: ChangePlan) -> FinishedPart:
    """What an interrupted run with the same inputs has finished."""
    folder = model.answers.partial(change.name, model.stem or model.name)
    return finished_shards(folder, model.made_from(params, change).fingerprint)


def plan(study: Study) -> Plan:
    """The plan of a study of robustness; nothing is written or downloaded.

    Raises CleansetError for params, images or masks that no stage would take.
    """
    opened = OpenedStudy.read(study)
    counted = _CountedStudy(
        opened=opened,
        models=StudyModels(opened, settings_for(opened.score)),
        states=stage_states(study.folder),
    )
    notes = []
    changes = dict[str, ChangePlan]()
    if study.images.is_file():
        sources = opened.sources()
        changes = {family.name: change_plan(family, sources, opened.params) for family in FAMILIES}
    else:
        notes.append(images_not_here(study, opened.edition, opened.classes))
    works = [
        counted.work(family, changes.get(family.name), role)
        for family in FAMILIES
        for role in opened.params.models(opened.roles)
    ]
    tables = [without_network(each, counted.states) for each in TABLES]
    return Plan(name=str(study.folder), works=[without_network("images", counted.states), *works, *tables], notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountedStudy:
    """A study with its models, and the state of its stages."""

    opened: OpenedStudy
    models: StudyModels
    states: StageStates

    def work(self, family: Family, change: ChangePlan | None, role: str) -> Work:
        """The answers of a model to a family; `change`: None where the study has no images yet."""
        opened = self.opened
        stage = f"{family.name}@{role}" if role in opened.roles else f"further@{role}"
        start = partial(answering.run, opened.study, role, family.name)
        work = Work(name=family.name, model=role, stage=stage, state=self.states.state(stage), start=start)
        if work.state == "finished":
            return work
        changes = family.section_in(opened.params).changes()
        if change is None:
            expected = expected_images(opened.edition, opened.classes)
            return answers_work(work, expected, 1 + len(changes))
        own = plan_for(change, opened.params, role)
        work = answers_work(work, len(own.images), 1 + len(changes))
        if not opened.study.answers.partial(family.name, role).is_dir():
            return work
        try:
            return replace(work, part=finished_part(self.models.load(role), opened.params, own))
        except CleansetError as error:
            return replace(work, remark=str(error))


def counting(run: EvaluationRun) -> Count:
    """Counts the answers of models to changed images; what is finished in the folder of the command is taken off.

    Nothing is written or downloaded.
    """
    counted = _CountedRun(run=run)
    return lambda: Plan(name=run.opened.images.name, works=counted.works())


@dataclass(kw_only=True)
class _CountedRun:
    """The models of a command, as far as they had to be opened."""

    run: EvaluationRun
    models: dict[str, AnsweringModel] = field(default_factory=dict)

    def works(self) -> Sequence[Work]:
        """A row for each family and model."""
        opened = self.run.opened
        return [self._work(change, name, stem) for change in self.run.plans for name, stem in opened.models.items()]

    def _work(self, change: ChangePlan, name: str, stem: str) -> Work:
        work = Work(name=change.name, model=name, start=partial(self._start, change, name))
        work = answers_work(work, len(change.images), 1 + len(change.changes))
        answers = self.run.opened.answers
        has_begun = answers.partial(change.name, stem).is_dir() or answers.predictions(change.name, stem).is_file()
        if not has_begun or lacks_weights(self.run.opened.spec_of(name)):
            return work
        try:
            model = self._model(name)
        except CleansetError as error:
            return replace(work, remark=str(error))
        if self.run.is_finished(model, change):
            return replace(work, state="finished")
        return replace(work, part=finished_part(model, self.run.opened.params, change))

    def _model(self, name: str) -> AnsweringModel:
        if name not in self.models:
            self.models[name] = self.run.load(name)
        return self.models[name]

    def _start(self, change: ChangePlan, name: str) -> None:
        """Answer as the command does."""
        check_model(self.run.opened.spec_of(name))
        worker_processes(CHANGING)
        replace(self.run, plans=[change]).predict([self._model(name)])
