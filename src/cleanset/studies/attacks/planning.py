"""The plans of a study of attacks and of `attacks evaluate`: what each attack asks of each model, by its parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from cleanset.errors import CleansetError
from cleanset.evaluation.models import NamedModel, check_model, lacks_weights
from cleanset.evaluation.specs import Spec, is_same_model
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import IMAGE_BYTES, Count, Passes, Plan, Work
from cleanset.plumbing.json_files import JsonMapping
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.parts import FinishedPart
from cleanset.scoring.shards import finished_shards
from cleanset.studies.attacks.attack_stage import open_attack, run_attack
from cleanset.studies.attacks.attacking import Attacking, Search
from cleanset.studies.attacks.evaluated_models import EvaluatedModel, facts_of_models, target_images
from cleanset.studies.attacks.passes import JUDGED, passes_of_probe
from cleanset.studies.attacks.request import AttackRequest
from cleanset.studies.attacks.study import AllParams, AttackParams, AttackStudy
from cleanset.studies.attacks.targets import AttackedModel
from cleanset.studies.robustness.planning import expected_images, images_not_here

WARNINGS = "warnings"
"""The name of the search for signs of gradient masking."""
JUDGED_ANEW = "judged anew"
"""The name of the verdicts that a fresh process gives on all files of a model's attacks."""
PNG_BYTES = 90_000
"""Bytes of a photograph of 224 x 224 pixels as a PNG, about."""
TABLES = ("attack_results", "pages")
"""The stages without a network."""
BUDGET_NOTE = "The budget of the params is not counted: an attack ends once it is spent."


def attack_work(params: AttackParams, name: str, model: str, *, images: int, sources: int, classes: int) -> Work:
    """The work of an attack on a model, or of the search for signs, none of it finished.

    `images`: the number of images of the model; `sources`: of other models that images may be made on; `classes`: of
    its classes.
    """
    if name == WARNINGS:
        of_image = passes_of_probe(params.probe, sources)
        limit: int | None = params.probe.images
    else:
        of_image = params.attack(name).passes(sources, classes)
        limit = params.images_of(name, model)
    count = images if limit is None else min(limit, images)
    passes = of_image.of_all(sources)
    return Work(
        name=name,
        model=model,
        images=count,
        of_image=passes + JUDGED,
        is_bound=passes.forward > 0,
        bytes_read=count * IMAGE_BYTES,
        bytes_written=0 if name == WARNINGS else count * PNG_BYTES,
    )


def notes_of(params: AttackParams) -> list[str]:
    """The note on a budget, if there is one."""
    budget = params.budget
    return [] if budget.queries is None and budget.seconds is None else [BUDGET_NOTE]


def finished_part(attacking: Attacking) -> FinishedPart:
    """What an interrupted run with the same inputs has finished."""
    return finished_shards(attacking.folder.partial, attacking.made_from(attacking.first_images()).fingerprint)


def plan(study: AttackStudy) -> Plan:
    """The plan of a study of attacks; nothing is written or downloaded.

    Raises CleansetError for params or models that no stage would take.
    """
    params = AllParams.read(study)
    counted = _CountedStudy(study=study, params=params, states=stage_states(study.folder))
    notes = notes_of(params.attacks)
    if not counted.has_images:
        notes.append(images_not_here(study.robustness, params.edition, params.classes))
    tables = [without_network(each, counted.states) for each in TABLES]
    return Plan(name=str(study.folder), works=[*counted.works(), *tables], notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountedStudy:
    """A study with its params, and the state of its stages."""

    study: AttackStudy
    params: AllParams
    states: StageStates

    @property
    def has_images(self) -> bool:
        """Whether stage images of the study of robustness has run."""
        return self.study.robustness.images.is_file()

    def works(self) -> list[Work]:
        """A row for each attack and model, then the search for signs on each model."""
        attacks = self.params.attacks
        roles = list(self.params.edition.models)
        further = self.params.robustness.further_models
        runs = attacks.runs(roles, further)
        probed = [(WARNINGS, model) for model in attacks.models(roles, further)]
        return [self._work(name, model) for name, model in [*runs, *probed]]

    def _work(self, name: str, model: str) -> Work:
        params = self.params
        stage = self._stage(name, model)
        if self.states.state(stage) == "finished":
            return Work(name=name, model=model, stage=stage, state="finished")
        others = [role for role, each in params.edition.models.items() if role != model and not each.is_list]
        try:
            work = attack_work(
                params.attacks,
                name,
                model,
                images=self._images(model),
                sources=len(others),
                classes=len(params.classes),
            )
        except CleansetError as error:
            return Work(name=name, model=model, stage=stage, remark=str(error))
        work = replace(work, stage=stage)
        # known mistakes are read, and signs are looked for at once: neither has parts
        if name == WARNINGS or params.attacks.attack(name).reads_predictions:
            return work
        work = replace(work, start=partial(run_attack, self.study, model, name))
        if not self.study.results(name, model).partial.is_dir():
            return work
        try:
            evaluated = open_attack(self.study, params, model, name)
            attacking = evaluated.opened_search(name, evaluated.settings.devices[0]).attacking
        except CleansetError as error:
            return replace(work, remark=str(error))
        return replace(work, part=finished_part(attacking))

    def _images(self, model: str) -> int:
        """The images of a model, at most as many as the params allow where none are here."""
        if not self.has_images:
            return expected_images(self.params.edition, self.params.classes)
        return len(target_images(self.params, model).items)

    def _stage(self, name: str, model: str) -> str:
        """The stage of dvc.yaml."""
        roles = self.params.edition.models
        kind = "attack" if model in roles else "wrapped" if model in self.params.attacks.wrapped else "further"
        if name == WARNINGS:
            return f"{kind}_warnings@{model}"
        if self.params.attacks.attack(name).reads_predictions:
            return f"{name}@{model}"
        return f"{'attacks' if kind == 'attack' else f'{kind}_attacks'}@{name}-{model}"


def counting(request: AttackRequest) -> Count:
    """Counts the attacks on models; what is finished in the folder of the request is taken off.

    Nothing is written or downloaded.
    """
    counted = _CountedRequest(request=request, settings=settings_for(request.score))
    notes = notes_of(request.params)
    return lambda: Plan(name=request.images.name, works=counted.works(), notes=notes)


@dataclass(kw_only=True)
class _CountedRequest:
    """A request, and its models as far as they had to be opened."""

    request: AttackRequest
    settings: Settings
    models: dict[str, tuple[NamedModel, AttackedModel]] = field(default_factory=dict)

    def works(self) -> list[Work]:
        """A row for each model and attack, the search for signs, and the verdicts of a fresh process."""
        found = list[Work]()
        for stem, spec in self.request.by_stem().items():
            evaluated = EvaluatedModel(spec=spec, stem=stem, request=self.request, settings=self.settings)
            works = [self._work(evaluated, name) for name in self.request.params.attacks]
            if self.request.warnings:
                works.append(self._counted(spec, WARNINGS))
            found += [*works, *_judged_anew(spec.text, works)]
        return found

    def _counted(self, spec: Spec, name: str) -> Work:
        others = [each for each in self.request.others if not is_same_model(each, spec)]
        images = self.request.images
        return attack_work(
            self.request.params,
            name,
            spec.text,
            images=len(images.items),
            sources=len(others),
            classes=len(images.classes),
        )

    def _work(self, evaluated: EvaluatedModel, name: str) -> Work:
        work = replace(self._counted(evaluated.spec, name), start=partial(self._start, evaluated, name))
        folder = evaluated.results(name)
        has_begun = folder.record.is_file() or folder.partial.is_dir()
        if not has_begun or any(map(lacks_weights, (evaluated.spec, *self._asked_others(name)))):
            return work
        try:
            attacking = self._search(evaluated, name).attacking
        except CleansetError as error:
            return replace(work, remark=str(error))
        if attacking.is_finished():
            return replace(work, state="finished")
        return replace(work, part=finished_part(attacking))

    def _asked_others(self, name: str) -> Sequence[Spec]:
        """The models that an attack makes images on."""
        return self.request.others if self.request.params.attack(name).reads_other_models else ()

    def _search(self, evaluated: EvaluatedModel, name: str) -> Search:
        if evaluated.stem not in self.models:
            named = evaluated.open()
            self.models[evaluated.stem] = named, evaluated.target(named, self.settings.devices[0])
        named, target = self.models[evaluated.stem]
        return evaluated.search(name, named, target, lambda: self._facts_of_others)

    @cached_property
    def _facts_of_others(self) -> JsonMapping:
        return facts_of_models(self.request.others, self.settings, self.request.images.classes)

    def _start(self, evaluated: EvaluatedModel, name: str) -> None:
        """Attack as the command does."""
        for spec in (evaluated.spec, *self._asked_others(name)):
            check_model(spec)
        search = self._search(evaluated, name)
        search.attacking.run_unfinished(search, evaluated.other_searches(name))


def _judged_anew(model: str, works: Sequence[Work]) -> list[Work]:
    """The verdicts on the files of all attacks, and on the images themselves, by the model loaded anew."""
    counts = [work.images for work in works if work.state == "needed"]
    if not counts:
        return []
    images = sum(counts) + max(counts)
    return [Work(name=JUDGED_ANEW, model=model, images=images, of_image=Passes(forward=1))]
