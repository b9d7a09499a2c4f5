"""The plan of a study of attacks: what each stage asks of each model, and what that takes here.

What an attack on a model costs is computed in `pricing`, from speeds that `speeds` measures.
"""

from dataclasses import dataclass, field, replace
from functools import partial

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.planning.clock import machine_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import Cost, Plan, PlannedWork, Work, added, random_weights
from cleanset.progress import tracked
from cleanset.scoring.devices import Device, choose_devices
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import is_at_hand, untrained
from cleanset.studies.attacks.attack_stage import open_attack
from cleanset.studies.attacks.pricing import WARNINGS, Pricer, ProbedModel, finished_images, ratio_of_probe
from cleanset.studies.attacks.speeds import (
    ModelSpeed,
    speed_of_target,
    speed_of_untrained,
)
from cleanset.studies.attacks.study import AllParams, AttackStudy
from cleanset.studies.attacks.targets import open_target, other_models
from cleanset.studies.robustness.planning import expected_images, images_not_here

TABLES = {"attack_results": "cleanset.studies.attacks.page", "pages": "cleanset.studies.attacks.page"}
"""The stages without a network, and the module that each imports."""


def plan(study: AttackStudy) -> Plan:
    """The plan of a study of attacks; nothing is written or downloaded. Raises CleansetError for params or models that
    no stage would take.
    """
    params = AllParams.read(study)
    states = stage_states(study.folder)
    devices = choose_devices(params.edition.score.device)
    planner = _Planner(study=study, params=params, device=devices[0], states=states)
    works = planner.works()
    return Plan(name=str(study.folder), machine=machine_of(devices), works=works, notes=planner.notes)


@dataclass
class _Planner:
    """Plans a study's attacks, model by model."""

    study: AttackStudy
    params: AllParams
    device: Device
    states: StageStates
    notes: list[str] = field(default_factory=list)
    speeds: list[ModelSpeed] = field(default_factory=list)
    """Models of the edition that were measured."""
    ratio_of_probe: float | None = None
    """The seconds of the search for signs by those of its passes; None: not measured yet."""
    start: float | None = None
    """Seconds until an attack begins, but for its model; None: not measured yet."""

    def pricer(self, model: str) -> Pricer:
        """Prices the attacks on a model, whose sources are all other models of the edition."""
        others = [role for role, each in self.params.edition.models.items() if role != model and not each.is_list]
        return Pricer(
            params=self.params.attacks,
            device=self.device,
            classes=len(self.params.classes),
            sources=len(others),
            notes=self.notes,
            speeds=self.speeds,
        )

    def works(self) -> list[PlannedWork]:
        """All stages, an attack on all models after the other."""
        attacks = self.params.attacks
        models = attacks.models(self._roles, self.params.robustness.further_models)
        found = list[PlannedWork]()
        if not self._has_images:
            self.notes.append(images_not_here(self.study.robustness, self.params.edition, self.params.classes))
        for model in tracked(models, len(models), "measuring"):
            names = [name for name in attacks.names if not attacks.is_left_out(name, model, self._roles)]
            found += self._of_model(model, [*names, WARNINGS])
        order = [*attacks.names, WARNINGS]
        found.sort(key=lambda each: order.index(each.work.name))
        return [*found, *(without_network(stage, module, self.states) for stage, module in TABLES.items())]

    @property
    def _roles(self) -> list[str]:
        return list(self.params.edition.models)

    @property
    def _has_images(self) -> bool:
        return self.study.robustness.images.is_file()

    def _of_model(self, model: str, names: list[str]) -> list[PlannedWork]:
        states = {name: self.states.state(self._stage(name, model)) for name in names}
        finished = [name for name in names if states[name] == "finished"]
        found = [PlannedWork(work=Work(name=name, model=model, state="finished")) for name in finished]
        needed = [name for name in names if name not in finished]
        if not needed:
            return found
        try:
            speed, images = self._opened(model)
        except CleansetError as error:
            images = expected_images(self.params.edition, self.params.classes)
            return found + [PlannedWork(work=self._work(name, model, images), remark=f"{error}") for name in needed]
        if model in self._roles:
            self.speeds.append(speed)
        return found + [self._priced(self._work(name, model, images), speed) for name in needed]

    def _work(self, name: str, model: str, images: int) -> Work:
        return self.pricer(model).work(name, model, images, self._stage(name, model))

    def _stage(self, name: str, model: str) -> str:
        """The stage of dvc.yaml."""
        kind = "attack" if model in self._roles else "wrapped" if model in self.params.attacks.wrapped else "further"
        if name == WARNINGS:
            return f"{kind}_warnings@{model}"
        if self.params.attacks.attack(name).reads_predictions:
            return f"{name}@{model}"
        return f"{'attacks' if kind == 'attack' else f'{kind}_attacks'}@{name}-{model}"

    def _opened(self, model: str) -> tuple[ModelSpeed, int]:
        """The speed of a model, and the number of its images, at most as many as the params allow where none are here.

        Raises CleansetError where no network of that kind can be built.
        """
        entry = self._entry(model)
        is_here = entry is None or is_at_hand(entry, self.study.edition.folder)
        if self._has_images and is_here:
            with timed(self.device) as elapsed:
                target = open_target(self.study, self.params, model, is_measured=True)
            return speed_of_target(target, self.device, elapsed.seconds), len(target.images)
        if entry is None or entry.source == "module":
            raise CleansetError(f"{model}: the study has no images yet; expected the output of stage images")
        settings = settings_for(self.params.edition.score)
        if not is_here:
            self.pricer(model).note(random_weights(model))
        precision = self.params.attacks.search_precision
        speed = speed_of_untrained(untrained(entry), self.device, precision, settings.batch_size)
        return speed, expected_images(self.params.edition, self.params.classes)

    def _entry(self, model: str) -> Model | None:
        """The entry of a model of a zoo; None for another."""
        wrapped = self.params.attacks.wrapped
        role = wrapped[model].model if model in wrapped else model
        entry = self.params.robustness.further_models.get(role)
        if entry is None:
            return self.params.edition.network(role)
        return None if isinstance(entry, str) else entry

    def _priced(self, work: Work, speed: ModelSpeed) -> PlannedWork:
        """A stage with its cost; of one that was interrupted the images that are left."""
        cost = Cost(start=self._start(work.model, speed) + speed.opening)
        pricer = self.pricer(work.model)
        if work.name == WARNINGS:
            found = pricer.priced_warnings(work, speed, partial(self._ratio_of_probe, work.model, speed))
            cost += Cost(start=pricer.sources * speed.opening)
        # known mistakes are read, perhaps before they are there: nothing is searched
        elif speed.is_here and not self.params.attacks.attack(work.name).reads_predictions:
            opened = open_attack(self.study, self.params.attacks, work.model, work.name, None)
            work = replace(work, finished=finished_images(opened.search.attacking, opened.images))
            found = pricer.priced(work, speed, opened.search, opened.images["file"].tolist())
        else:
            found = pricer.priced(work, speed, None)
        return added(found, cost)

    def _ratio_of_probe(self, model: str, speed: ModelSpeed, images: int, seconds: float) -> float | None:
        def opened() -> ProbedModel:
            target = open_target(self.study, self.params, model)
            return target, target.sources(other_models(self.study, self.params, model))

        if speed.is_here and self.ratio_of_probe is None:
            self.ratio_of_probe = ratio_of_probe(opened, self.params.attacks, images, seconds)
        return self.ratio_of_probe

    def _start(self, model: str, speed: ModelSpeed) -> float:
        """Seconds until an attack begins, but for the model: those of an attack that changes nothing, once measured."""
        if self.start is None:
            code = "import sys; from cleanset.studies.attacks import speeds; speeds.start(*sys.argv[1:])"
            asked = [str(self.study.folder), *([model] if speed.is_here else [])]
            seconds = seconds_of_code(code, *asked, is_separate=self.device.is_separate)
            self.start = max(0.0, seconds - speed.opening)
        return self.start
