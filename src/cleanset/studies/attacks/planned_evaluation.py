"""The plan of `attacks evaluate`: what each attack asks of any models on a set, and what that takes here."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.json_files import JsonMapping
from cleanset.measure.command import Wanted
from cleanset.measure.run import NamedModel, lacks_weights, load
from cleanset.measure.specs import CommandModel, Spec, ZooModel, file_stems, is_same_model
from cleanset.planning.clock import machine_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.work import Cost, Passes, Plan, PlannedWork, Work, added, of_program, random_weights, with_start
from cleanset.progress import tracked
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.models import untrained
from cleanset.studies.attacks.evaluated_models import EVALUATING, EvaluatedModel, facts_of_models
from cleanset.studies.attacks.evaluation import Opened
from cleanset.studies.attacks.pricing import WARNINGS, Pricer, ProbedModel, finished_images, ratio_of_probe
from cleanset.studies.attacks.speeds import ModelSpeed, speed_of_target, speed_of_untrained
from cleanset.studies.attacks.study import AttackRequest
from cleanset.studies.attacks.targets import AttackedModel
from cleanset.studies.robustness.image_sets import open_images

JUDGED_ANEW = "judged anew"
"""The name of the row of the verdicts that a fresh process gives on all files of a model's attacks."""
CODE = (
    "import sys, cleanset.cli, cleanset.measure.run; "
    "from cleanset.studies.attacks import planned_evaluation; planned_evaluation.start(sys.argv[1])"
)
"""Begins as the command does."""


def plan(edition: Edition, wanted: Wanted, request: AttackRequest, transfer_from: Sequence[str] = ()) -> Plan:
    """The plan of attacking models on a set; finished results in the folder of the request are taken off.

    Nothing is written or downloaded. Raises CleansetError as `attacks evaluate` does before it loads a model.
    """
    opened = Opened.read(edition, wanted, request, transfer_from)
    settings = settings_for(opened.score)
    planner = _Planner(opened=opened, request=request, settings=settings)
    begun = json.dumps([str(edition.folder), str(wanted.name), wanted.models, wanted.architecture])
    works = with_start(planner.works(), lambda: seconds_of_code(CODE, begun, is_separate=planner.device.is_separate))
    return Plan(name=opened.images.name, machine=machine_of(settings.devices), works=works, notes=planner.notes)


def start(asked: str) -> None:
    """Read the images, and start the server of processes; nothing is written."""
    folder, name, models, architecture = json.loads(asked)
    worker_processes(EVALUATING)
    edition = Edition(Path(folder))
    _, _, roles = Wanted(name, models, architecture).models_to_run(edition)
    open_images(name, edition, roles)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A model that is here, and was loaded."""

    evaluated: EvaluatedModel
    named: NamedModel
    target: AttackedModel


@dataclass
class _Planner:
    """Plans the attacks model by model."""

    opened: Opened
    request: AttackRequest
    settings: Settings
    notes: list[str] = field(default_factory=list)
    ratio_of_probe: float | None = None
    """The seconds of the search for signs by those of its passes; None: not measured yet."""
    speeds_of_others: dict[str, ModelSpeed] = field(default_factory=dict)
    """The models that images are made on, as far as they were measured, by name."""

    @property
    def device(self) -> Device:
        return self.settings.devices[0]

    def works(self) -> list[PlannedWork]:
        """A row for each model and attack, the signs, and the verdicts of a fresh process."""
        specs = self.opened.specs
        stems = file_stems([spec.text for spec in specs])
        found = list[PlannedWork]()
        for spec, stem in tracked([*zip(specs, stems, strict=True)], len(specs), "measuring"):
            found += self._of_model(spec, stem)
        return found

    @property
    def _names(self) -> list[str]:
        return [*self.request.params.attacks, *([WARNINGS] if self.request.warnings else [])]

    def _of_model(self, spec: Spec, stem: str) -> list[PlannedWork]:
        images = len(self.opened.images.images)
        pricer = self._pricer(spec)
        works = [pricer.work(name, spec.text, images) for name in self._names]
        if isinstance(spec, CommandModel):
            return [PlannedWork(work=work, remark=of_program(spec.text)) for work in works]
        try:
            speed, is_open = self._speed(spec, stem)
            if any(self._asks_others(name) for name in self._names):
                pricer.speeds += [self._speed_of_other(each) for each in self._others(spec)]
        except CleansetError as error:
            return [PlannedWork(work=work, remark=str(error)) for work in works]
        found = [self._priced(work, pricer, speed, is_open) for work in works]
        anew = self._judged_anew(spec.text, [each.work for each in found], speed)
        return with_start([*found, *anew], lambda: speed.opening)

    def _others(self, spec: Spec) -> list[Spec]:
        return [each for each in self.opened.others if not is_same_model(each, spec)]

    def _asks_others(self, name: str) -> bool:
        return name == WARNINGS or self.request.params.attack(name).reads_other_models

    def _pricer(self, spec: Spec) -> Pricer:
        return Pricer(
            params=self.request.params,
            device=self.device,
            classes=len(self.opened.images.classes),
            sources=len(self._others(spec)),
            notes=self.notes,
        )

    def _speed(self, spec: Spec, stem: str) -> tuple[ModelSpeed, _Open | None]:
        """The speed of a model, and the model if its weights are here. Raises CleansetError if it cannot be opened."""
        if lacks_weights(spec):
            return self._speed_of_untrained(spec), None
        evaluated = EvaluatedModel(
            spec=spec,
            stem=stem,
            others=self.opened.others,
            images=self.opened.images.images,
            files=self.opened.images.files,
            settings=self.settings,
            request=self.request,
            classes=self.opened.images.classes,
        )
        with timed(self.device) as opening:
            named = load(spec, self.settings, self.opened.images.classes)
            target = evaluated.target(named, self.device)
        speed = speed_of_target(target, self.device, opening.seconds)
        return speed, _Open(evaluated=evaluated, named=named, target=target)

    def _speed_of_untrained(self, spec: ZooModel) -> ModelSpeed:
        note = random_weights(spec.text)
        if note not in self.notes:
            self.notes.append(note)
        precision = self.request.params.search_precision
        return speed_of_untrained(untrained(spec.model), self.device, precision, self.settings.batch_size)

    def _speed_of_other(self, spec: Spec) -> ModelSpeed:
        """The speed of a model that images are made on; each is measured once."""
        if spec.text not in self.speeds_of_others:
            self.speeds_of_others[spec.text] = self._measured_other(spec)
        return self.speeds_of_others[spec.text]

    def _measured_other(self, spec: Spec) -> ModelSpeed:
        if lacks_weights(spec):
            return self._speed_of_untrained(spec)
        with timed(self.device) as opening:
            loaded = load(spec, self.settings, self.opened.images.classes).loaded
        precision = self.request.params.search_precision
        found = speed_of_untrained(loaded, self.device, precision, self.settings.batch_size)
        return replace(found, opening=opening.seconds)

    def _priced(self, work: Work, pricer: Pricer, speed: ModelSpeed, is_open: _Open | None) -> PlannedWork:
        if work.name == WARNINGS:
            found = pricer.priced_warnings(work, speed, partial(self._ratio_of_probe, is_open))
            return added(found, Cost(start=sum(each.opening for each in pricer.speeds)))
        if is_open is None:
            return pricer.priced(work, speed, None)
        search = is_open.evaluated.search(work.name, is_open.named, is_open.target, self._facts_of_others)
        attacking = search.attacking
        if attacking.is_finished():
            return PlannedWork(work=replace(work, state="finished"))
        images = attacking.first_images()
        work = replace(work, finished=finished_images(attacking, images))
        return pricer.priced(work, speed, search, images["file"].tolist())

    @cached_property
    def _facts(self) -> JsonMapping:
        return facts_of_models(self.opened.others, self.settings, self.opened.images.classes)

    def _facts_of_others(self) -> JsonMapping:
        """What identifies the models that images are made on; empty where one is not here: then nothing is finished."""
        return {} if any(map(lacks_weights, self.opened.others)) else self._facts

    def _ratio_of_probe(self, is_open: _Open | None, images: int, seconds: float) -> float | None:
        if is_open is None or any(map(lacks_weights, self.opened.others)):
            return self.ratio_of_probe

        def opened() -> ProbedModel:
            return is_open.target, is_open.evaluated.sources(is_open.target)

        if self.ratio_of_probe is None:
            self.ratio_of_probe = ratio_of_probe(opened, self.request.params, images, seconds)
        return self.ratio_of_probe

    def _judged_anew(self, model: str, works: Sequence[Work], speed: ModelSpeed) -> list[PlannedWork]:
        """The verdicts on the files of all attacks, and on the images themselves, by the model loaded anew."""
        counts = [work.images for work in works if work.state == "needed"]
        if not counts:
            return []
        images = sum(counts) + max(counts)
        passes = Passes(forward=images)
        work = Work(name=JUDGED_ANEW, model=model, images=images, passes=passes)
        return [PlannedWork(work=work, cost=Cost(start=speed.opening) + speed.judged.cost(passes))]
