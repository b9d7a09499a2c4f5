"""The price of an attack on a model, by its parameters and the model's speed: of any study, and of `attacks evaluate`.

An attack whose passes take a few seconds is tried on its first images, with its early stops: it is then `measured`. Of
any other one the passes are counted from its parameters, and multiplied by the measured seconds of a pass: `at most`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from cleanset.machine import available_cores
from cleanset.planning.work import IMAGE_BYTES, Cost, Passes, PlannedWork, Work
from cleanset.scoring.devices import Device
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.scoring.shards import finished_shards
from cleanset.studies.attacks.attacking import Attacking, Search
from cleanset.studies.attacks.base import AttackPasses
from cleanset.studies.attacks.passes import JUDGED, passes_of_probe
from cleanset.studies.attacks.speeds import ModelSpeed, passes_tried, probe_seconds, trial_search, tried
from cleanset.studies.attacks.study import AttackParams
from cleanset.studies.attacks.targets import AttackedModel

WARNINGS = "warnings"
"""The name of the stages that look for signs of gradient masking."""
CHANNELS = 3
PNG_SHARE = 0.6
"""Bytes of a photograph's PNG by those of its pixels, about."""
PROBE_SECONDS = 30.0
"""The search for signs is tried if all its passes take at most that long."""


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
        return self.params.attack(name).passes(self.sources, self.classes)

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
