"""The plan of a study of attacks: what each attack asks of each model, and what that takes here.

An attack whose passes take a few seconds is tried on its first images, with its early stops: it is then `measured`. Of
any other one the passes are counted from its parameters, and multiplied by the measured seconds of a pass: `at most`.
"""

from dataclasses import dataclass, field, replace

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.machine import available_cores
from cleanset.planning.clock import machine_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import IMAGE_BYTES, Bound, Cost, Passes, Plan, PlannedWork, Work, random_weights
from cleanset.progress import tracked
from cleanset.scoring.devices import Device, choose_devices
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import is_at_hand, untrained
from cleanset.scoring.shards import finished_shards
from cleanset.studies.attacks.attacking import OpenedAttack, open_attack
from cleanset.studies.attacks.passes import JUDGED, AttackPasses, passes_of, passes_of_probe
from cleanset.studies.attacks.speeds import (
    PROBED_IMAGES,
    ModelSpeed,
    passes_tried,
    probe_seconds,
    speed_of_target,
    speed_of_untrained,
    trial_search,
    tried,
)
from cleanset.studies.attacks.study import AllParams, AttackStudy
from cleanset.studies.attacks.targets import open_target, other_models
from cleanset.studies.robustness.planning import expected_images, images_not_here

WARNINGS = "warnings"
"""The name of the stages that look for signs of gradient masking."""
CHANNELS = 3
PNG_SHARE = 0.6
"""Bytes of a photograph's PNG by those of its pixels, about."""
PROBE_SECONDS = 30.0
"""The search for signs is tried on a few images if its passes take at most that long."""
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
    speeds: dict[str, ModelSpeed] = field(default_factory=dict)
    """The models that were measured, by name."""
    share_of_probe: float | None = None
    """The share of its passes that the search for signs asks; None: not measured yet."""
    start: float | None = None
    """Seconds until an attack begins, but for its model; None: not measured yet."""

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
        self.speeds[model] = speed
        return found + [self._priced(self._work(name, model, images), speed) for name in needed]

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
            self._note(random_weights(model))
        precision = self.params.attacks.search_precision
        speed = speed_of_untrained(untrained(entry), self.device, precision, settings.batch_size)
        return speed, expected_images(self.params.edition, self.params.classes)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _entry(self, model: str) -> Model | None:
        """The entry of a model of a zoo; None for another."""
        wrapped = self.params.attacks.wrapped
        role = wrapped[model].model if model in wrapped else model
        entry = self.params.robustness.further_models.get(role)
        if entry is None:
            return self.params.edition.network(role)
        return None if isinstance(entry, str) else entry

    def _passes(self, name: str) -> AttackPasses:
        sources = self._sources
        if name == WARNINGS:
            return passes_of_probe(self.params.attacks.probe, sources)
        return passes_of(self.params.attacks.attack(name), sources, len(self.params.classes))

    @property
    def _sources(self) -> int:
        """The models of the edition that images are made on, beside one of them."""
        return len([each for each in self.params.edition.models.values() if not each.is_list]) - 1

    def _work(self, name: str, model: str, images: int) -> Work:
        """The work of a stage whose model has a number of images, none of it finished."""
        attacks = self.params.attacks
        limit = attacks.probe.images if name == WARNINGS else attacks.images_of(name, model)
        count = images if limit is None else min(limit, images)
        passes = self._passes(name)
        group = count if name == WARNINGS else attacks.attack(name).group_size
        return Work(
            name=name,
            model=model,
            stage=self._stage(name, model),
            images=count,
            passes=(passes.own + passes.others * self._sources) * count + JUDGED * count,
            bound="at most" if passes.own.forward else "exact",
            bytes_read=count * IMAGE_BYTES,
            tasks=max(1, -(-count // max(1, group))),
        )

    def _priced(self, work: Work, speed: ModelSpeed) -> PlannedWork:
        """A stage with its cost; of one that was interrupted the images that are left."""
        if work.name == WARNINGS:
            return self._priced_warnings(work, speed)
        attack = self.params.attacks.attack(work.name)
        most = self._passes(work.name)
        work = replace(work, bytes_written=round(PNG_SHARE * CHANNELS * speed.side**2) * work.images)
        cost = Cost(start=self._start(work.model, speed) + speed.opening)
        seconds = (speed.searched.cost(most.own) + self._of_sources(most.others)).device
        trial = None
        # known mistakes are read, perhaps before they are there: nothing is searched
        if speed.is_here and not attack.reads_predictions:
            opened = open_attack(self.study, self.params.attacks, work.model, work.name, None)
            work = replace(work, finished=self._finished(opened))
            search, count = trial_search(opened.search, self.device, seconds)
            if count:
                trial = tried(search, self.device, opened.images["file"].tolist()[:count])
        share = self._share_in_budget(most, attack.group_size, work.left)
        total = most.own + most.others * self._sources
        if trial is None:
            work = replace(work, passes=(total * work.left).scaled(share) + JUDGED * work.left)
            searched = speed.searched.cost((most.own * work.left).scaled(share))
            others = self._of_sources((most.others * work.left).scaled(share))
            return PlannedWork(work=work, cost=cost + searched + others + speed.judging(work.left))
        passes = passes_tried(trial, most.own, work.left) + most.others * self._sources * work.left
        passes = passes.scaled(share)
        work = replace(work, passes=passes + JUDGED * work.left, bound="measured" if total.forward else "exact")
        derived = speed.searched.cost(passes) + speed.judging(work.left)
        spent = Cost(start=trial.fixed, device=share * trial.seconds / trial.images * work.left, gpu=derived.gpu)
        return PlannedWork(work=work, cost=cost + spent + self._of_further_workers(work, speed.opening + trial.fixed))

    def _of_further_workers(self, work: Work, opening: float) -> Cost:
        """Each further worker of a CPU opens the attack, too."""
        workers = 1 if self.device.is_separate else min(available_cores(), work.tasks)
        return Cost(device=(workers - 1) * opening)

    def _share_in_budget(self, most: AttackPasses, group: int, left: int) -> float:
        """The share of the images that are left which a budget of queries has room for, were none to end early."""
        budget = self.params.attacks.budget
        if budget.seconds is not None:
            self._note("The budget of seconds is not counted: attacks end after it.")
        asked = most.own.forward * left
        if budget.queries is None or not asked:
            return 1.0
        # the group that exceeds the budget counts
        return min(1.0, (budget.queries + most.own.forward * group) / asked)

    def _priced_warnings(self, work: Work, speed: ModelSpeed) -> PlannedWork:
        most = self._passes(WARNINGS)
        cost = Cost(start=self._start(work.model, speed) + speed.opening * (1 + self._sources))
        searched = speed.searched.cost(most.own * work.images) + self._of_sources(most.others * work.images)
        searched += speed.judging(work.images)
        if speed.is_here and self.share_of_probe is None:
            self.share_of_probe = self._share_of_probe(work, searched.seconds / max(1, work.images))
        share = self.share_of_probe or 1.0
        derived = None if searched.gpu is None else share * searched.gpu
        searched = Cost(device=share * searched.device, cores=share * searched.cores, gpu=derived)
        bound: Bound = "at most" if share == 1.0 else "measured"
        return PlannedWork(work=replace(work, passes=work.passes.scaled(share), bound=bound), cost=cost + searched)

    def _share_of_probe(self, work: Work, seconds_of_image: float) -> float:
        """The share of its passes that the search for signs asks, as measured on a few images of one model."""
        if PROBED_IMAGES * seconds_of_image > PROBE_SECONDS or not work.images:
            return 1.0
        target = open_target(self.study, self.params, work.model)
        others = target.sources(other_models(self.study, self.params, work.model))
        return min(1.0, probe_seconds(target, self.params.attacks, others) / seconds_of_image)

    def _of_sources(self, passes: Passes) -> Cost:
        """The cost of passes of each of the models that images are made on, which are taken for alike."""
        speeds = [each for role, each in self.speeds.items() if role in self._roles]
        if not speeds:
            return Cost()
        mean = [each.searched.cost(passes * self._sources) for each in speeds]
        return Cost(
            device=sum(each.device for each in mean) / len(mean), gpu=sum(each.gpu or 0.0 for each in mean) / len(mean)
        )

    def _start(self, model: str, speed: ModelSpeed) -> float:
        """Seconds until an attack begins, but for the model: those of an attack that changes nothing, once measured."""
        if self.start is None:
            code = "import sys; from cleanset.studies.attacks import speeds; speeds.start(*sys.argv[1:])"
            asked = [str(self.study.folder), *([model] if speed.is_here else [])]
            seconds = seconds_of_code(code, *asked, is_separate=self.device.is_separate)
            self.start = max(0.0, seconds - speed.opening)
        return self.start

    def _finished(self, opened: OpenedAttack) -> int:
        """The images in finished groups of an interrupted run with the same inputs."""
        attacking = opened.search.attacking
        if not attacking.folder.partial.is_dir():
            return 0
        size = attacking.params.attack(attacking.name).group_size
        groups = finished_shards(attacking.folder.partial, attacking.made_from(opened.images).fingerprint)
        return min(len(opened.images), groups * size)
