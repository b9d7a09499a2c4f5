"""The plan of a study of attacks: what each attack asks of each model, and what that takes here.

An attack whose passes take a few seconds is tried on its first images, with its early stops: it is then `measured`. Of
any other one the passes are counted from its parameters, and multiplied by the measured seconds of a pass: `at most`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import pandas as pd

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.machine import available_cores
from cleanset.planning.clock import machine_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import IMAGE_BYTES, Cost, Passes, Plan, PlannedWork, Work, added, random_weights
from cleanset.progress import tracked
from cleanset.scoring.devices import Device, choose_devices
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import is_at_hand, untrained
from cleanset.scoring.shards import finished_shards
from cleanset.studies.attacks.attacking import Attacking, Search, open_attack
from cleanset.studies.attacks.passes import JUDGED, AttackPasses, passes_of, passes_of_probe
from cleanset.studies.attacks.speeds import (
    ModelSpeed,
    passes_tried,
    probe_seconds,
    speed_of_target,
    speed_of_untrained,
    trial_search,
    tried,
)
from cleanset.studies.attacks.study import AllParams, AttackParams, AttackStudy
from cleanset.studies.attacks.targets import AttackedModel, open_target, other_models
from cleanset.studies.robustness.planning import expected_images, images_not_here

WARNINGS = "warnings"
"""The name of the stages that look for signs of gradient masking."""
CHANNELS = 3
PNG_SHARE = 0.6
"""Bytes of a photograph's PNG by those of its pixels, about."""
PROBE_SECONDS = 30.0
"""The search for signs is tried if all its passes take at most that long."""
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


ProbedModel = tuple[AttackedModel, Mapping[str, PixelNetwork]]
"""A model, and the others that images are made on."""
RatioOfProbe = Callable[[int, float], float | None]
"""What the search for signs on a number of images takes, by the seconds of all its passes; None: not measured."""


@dataclass
class Pricer:
    """Prices attacks on models, of a study or outside one; what starts them is not in it."""

    params: AttackParams
    device: Device
    classes: int
    sources: int
    """The models that images are made on, beside the one that is attacked."""
    notes: list[str]
    speeds: list[ModelSpeed] = field(default_factory=list)
    """Models that images are made on, as far as they were measured: taken for alike."""

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def passes(self, name: str) -> AttackPasses:
        """The passes of an attack, or of the search for signs, for one image, at most."""
        if name == WARNINGS:
            return passes_of_probe(self.params.probe, self.sources)
        return passes_of(self.params.attack(name), self.sources, self.classes)

    def work(self, name: str, model: str, images: int, stage: str = "") -> Work:
        """The work of an attack on a model with a number of images, none of it finished."""
        limit = self.params.probe.images if name == WARNINGS else self.params.images_of(name, model)
        count = images if limit is None else min(limit, images)
        passes = self.passes(name)
        group = count if name == WARNINGS else self.params.attack(name).group_size
        return Work(
            name=name,
            model=model,
            stage=stage,
            images=count,
            passes=(passes.own + passes.others * self.sources) * count + JUDGED * count,
            bound="at most" if passes.own.forward else "exact",
            bytes_read=count * IMAGE_BYTES,
            tasks=max(1, -(-count // max(1, group))),
        )

    def priced(self, work: Work, speed: ModelSpeed, search: Search | None, files: Sequence[str] = ()) -> PlannedWork:
        """An attack with its cost, of the images that are left; `search`: searches some of `files`, the images.

        None where nothing can be tried.
        """
        attack = self.params.attack(work.name)
        most = self.passes(work.name)
        work = replace(work, bytes_written=round(PNG_SHARE * CHANNELS * speed.side**2) * work.images)
        seconds = (speed.searched.cost(most.own) + self.of_sources(most.others)).device
        trial = None
        if search is not None:
            search, count = trial_search(search, self.device, seconds)
            if count:
                trial = tried(search, self.device, files[:count])
        share = self._share_in_budget(most, attack.group_size, work.left)
        total = most.own + most.others * self.sources
        if trial is None:
            work = replace(work, passes=(total * work.left).scaled(share) + JUDGED * work.left)
            searched = speed.searched.cost((most.own * work.left).scaled(share))
            others = self.of_sources((most.others * work.left).scaled(share))
            return PlannedWork(work=work, cost=searched + others + speed.judging(work.left))
        passes = passes_tried(trial, most.own, work.left) + most.others * self.sources * work.left
        passes = passes.scaled(share)
        work = replace(work, passes=passes + JUDGED * work.left, bound="measured" if total.forward else "exact")
        derived = speed.searched.cost(passes) + speed.judging(work.left)
        spent = Cost(start=trial.fixed, device=share * trial.seconds / trial.images * work.left, gpu=derived.gpu)
        return PlannedWork(work=work, cost=spent + self._of_further_workers(work, speed.opening + trial.fixed))

    def _of_further_workers(self, work: Work, opening: float) -> Cost:
        """Each further worker of a CPU opens the attack, too."""
        workers = 1 if self.device.is_separate else min(available_cores(), work.tasks)
        return Cost(device=(workers - 1) * opening)

    def _share_in_budget(self, most: AttackPasses, group: int, left: int) -> float:
        """The share of the images that are left which a budget of queries has room for, were none to end early."""
        budget = self.params.budget
        if budget.seconds is not None:
            self.note("The budget of seconds is not counted: attacks end after it.")
        asked = most.own.forward * left
        if budget.queries is None or not asked:
            return 1.0
        # the group that exceeds the budget counts
        return min(1.0, (budget.queries + most.own.forward * group) / asked)

    def priced_warnings(self, work: Work, speed: ModelSpeed, measured: RatioOfProbe) -> PlannedWork:
        """The search for signs; `measured`: what it takes by the seconds of its passes, if it was tried."""
        searched = self._of_probe(speed, work.images)
        ratio = measured(work.images, searched.seconds)
        if ratio is None:
            return PlannedWork(work=work, cost=searched)
        derived = None if searched.gpu is None else min(1.0, ratio) * searched.gpu
        cost = Cost(device=ratio * searched.device, cores=ratio * searched.cores, gpu=derived)
        # what is not a pass takes time, too
        work = replace(work, passes=work.passes.scaled(min(1.0, ratio)), bound="measured")
        return PlannedWork(work=work, cost=cost)

    def _of_probe(self, speed: ModelSpeed, images: int) -> Cost:
        """The cost of the passes of a search for signs on a number of images, which share its checks."""
        most = passes_of_probe(self.params.probe.model_copy(update={"images": max(1, images)}), self.sources)
        searched = speed.searched.cost(most.own * images) + self.of_sources(most.others * images)
        return searched + speed.judging(images)

    def of_sources(self, passes: Passes) -> Cost:
        """The cost of passes of each of the models that images are made on."""
        if not self.speeds:
            return Cost()
        mean = [each.searched.cost(passes * self.sources) for each in self.speeds]
        return Cost(
            device=sum(each.device for each in mean) / len(mean), gpu=sum(each.gpu or 0.0 for each in mean) / len(mean)
        )


def ratio_of_probe(
    opened: Callable[[], ProbedModel], params: AttackParams, images: int, seconds: float
) -> float | None:
    """What the search for signs takes on all its images of one model, by the seconds of all its passes.

    None where that would take too long: on fewer images it would end before it searches, as they show no sign.
    """
    if not images or seconds > PROBE_SECONDS:
        return None
    target, others = opened()
    return images * probe_seconds(target, params, others, images) / seconds


def finished_images(attacking: Attacking, images: pd.DataFrame) -> int:
    """The images in finished groups of an interrupted run with the same inputs."""
    if not attacking.folder.partial.is_dir():
        return 0
    size = attacking.params.attack(attacking.name).group_size
    return min(len(images), finished_shards(attacking.folder.partial, attacking.made_from(images).fingerprint) * size)


@dataclass
class _Planner:
    """Plans a study's attacks, model by model."""

    study: AttackStudy
    params: AllParams
    device: Device
    states: StageStates
    notes: list[str] = field(default_factory=list)
    ratio_of_probe: float | None = None
    """The seconds of the search for signs by those of its passes; None: not measured yet."""
    start: float | None = None
    """Seconds until an attack begins, but for its model; None: not measured yet."""

    @cached_property
    def pricer(self) -> Pricer:
        """Prices the attacks; of a model all other models of the edition are sources."""
        sources = len([each for each in self.params.edition.models.values() if not each.is_list]) - 1
        return Pricer(
            params=self.params.attacks,
            device=self.device,
            classes=len(self.params.classes),
            sources=sources,
            notes=self.notes,
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
            self.pricer.speeds.append(speed)
        return found + [self._priced(self._work(name, model, images), speed) for name in needed]

    def _work(self, name: str, model: str, images: int) -> Work:
        return self.pricer.work(name, model, images, self._stage(name, model))

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
            self.pricer.note(random_weights(model))
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
        if work.name == WARNINGS:
            found = self.pricer.priced_warnings(work, speed, partial(self._ratio_of_probe, work.model, speed))
            cost += Cost(start=self.pricer.sources * speed.opening)
        # known mistakes are read, perhaps before they are there: nothing is searched
        elif speed.is_here and not self.params.attacks.attack(work.name).reads_predictions:
            opened = open_attack(self.study, self.params.attacks, work.model, work.name, None)
            work = replace(work, finished=finished_images(opened.search.attacking, opened.images))
            found = self.pricer.priced(work, speed, opened.search, opened.images["file"].tolist())
        else:
            found = self.pricer.priced(work, speed, None)
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
