"""Measure what attacks cost here: a model's passes and verdicts, the start of a process, an attack on a few images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from torch import nn

from cleanset.edition.params import Precision
from cleanset.planning.clock import NetworkSpeed, seconds_of_call, speed_of, timed
from cleanset.planning.work import Cost, Passes
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device, computing_threads, device_of
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.scoring.models import LoadedModel
from cleanset.studies.attacks.attack_stage import OPENING, open_attack
from cleanset.studies.attacks.attacking import Attacking, OtherSearches, Search
from cleanset.studies.attacks.base import LEVELS, Result, Subject
from cleanset.studies.attacks.candidate_files import Writers, candidate_file
from cleanset.studies.attacks.changes import NoAttack
from cleanset.studies.attacks.judge import Judge, unwritten
from cleanset.studies.attacks.passes import JUDGED
from cleanset.studies.attacks.study import AllParams, AttackedFolder, AttackParams, AttackStudy
from cleanset.studies.attacks.targets import AttackedModel
from cleanset.studies.attacks.threats import PROBE
from cleanset.studies.attacks.warning_stage import probed

SPEED_BATCH = 16
"""Images at a time in which passes are measured, at most: those of a group."""
TRIAL_SECONDS = 5.0
"""An attack is tried on its first images if their passes take at most that long."""
TRIAL_IMAGES = 4
"""Images that an attack is tried on, on a CPU."""
LIBRARIES = {"boundary": "foolbox.attacks.boundary_attack", "square": "pyautoattack", "autoattack": "pyautoattack"}
"""Modules that attacks import as they begin, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpeed:
    """What a model costs: to be opened, for a pass of the search, for a verdict on an image."""

    opening: float
    """Seconds until it is read, with its images."""
    searched: NetworkSpeed
    """In the precision of the search."""
    judged: NetworkSpeed
    """In the judge's, one image at a time."""
    verdict: float
    """Seconds of a core for a verdict, beside its pass: PNG, distances."""
    side: int
    """Side, in pixels, of the images that it sees."""
    is_here: bool
    """Whether its weights and its images are here; random ones are as fast."""

    def judging(self, images: int) -> Cost:
        """The cost of the verdicts on some images."""
        return self.judged.cost(JUDGED * images) + Cost(cores=images * self.verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An attack that was tried on some images of a model."""

    images: int
    fixed: float
    """Seconds before the first group: other models and images that are read, libraries."""
    seconds: float
    """Seconds of all groups, with verdicts."""
    queries: int
    """Images whose logits the search asked for."""


def speed_of_target(target: AttackedModel, device: Device, opening: float) -> ModelSpeed:
    """The speed of a model that was opened, which took `opening` seconds."""
    searched = target.model.network if target.searched is None else target.searched
    how = target.how
    found = _speed(target.model, searched, target.judge, device, precision=how.precision, batch_size=how.batch_size)
    return replace(found, opening=opening)


def speed_of_untrained(model: LoadedModel, device: Device, precision: Precision, batch_size: int) -> ModelSpeed:
    """The speed of a model with random weights."""
    judge = Judge(model, device.torch)
    found = _speed(model, model.network, judge, device, precision=precision, batch_size=batch_size)
    return replace(found, is_here=False)


def _speed(
    model: LoadedModel,
    searched: nn.Module,
    judge: Judge,
    device: Device,
    *,
    precision: Precision,
    batch_size: int,
) -> ModelSpeed:
    """Of a model that is open."""
    side = model.preprocessing.size
    judged = speed_of(model.network, side, device, precision=judge.precision, batch=1)
    generator = np.random.default_rng(0)
    subject = Subject("a", "a", 0, _photograph_like(generator, side))
    candidate = Result((subject.pixels // 2 + 64).astype(np.uint8), 0)
    before = judge.logits(subject.pixels)
    with computing_threads(1):
        file = partial(candidate_file, unwritten(subject, candidate, None))
        verdict = seconds_of_call(device, lambda: judge.verdict(subject, candidate, before, file))
    batch = min(SPEED_BATCH, batch_size)
    return ModelSpeed(
        opening=0.0,
        searched=speed_of(searched, side, device, precision=precision, batch=batch, gradients=True),
        judged=judged,
        verdict=max(0.0, verdict - judged.forward),
        side=side,
        is_here=True,
    )


def _photograph_like(generator: np.random.Generator, side: int) -> np.ndarray:
    """Pixels that a PNG stores about as a photograph's: blocks of colour with some noise."""
    blocks = generator.integers(16, LEVELS - 16, (3, -(-side // 8), -(-side // 8)))
    smooth = blocks.repeat(8, axis=1).repeat(8, axis=2)[:, :side, :side]
    return (smooth + generator.integers(-8, 8, smooth.shape)).astype(np.uint8)


def trial_search(search: Search, device: Device, seconds_of_image: float) -> tuple[Search, int]:
    """The search with groups of the size that it is tried in, and the number of images: 0 if it takes too long.

    A GPU gets whole groups, which it computes faster; a CPU a few images.
    """
    attacking = search.attacking
    attack = attacking.params.attack(attacking.name)
    group = attack.group_size if device.is_separate else min(TRIAL_IMAGES, attack.group_size)
    count = group if group > 1 else min(TRIAL_IMAGES, int(TRIAL_SECONDS / max(seconds_of_image, 1e-9)))
    if count * seconds_of_image > TRIAL_SECONDS:
        return search, 0
    if "group" in type(attack).model_fields:
        smaller = {**attacking.params.attacks, attacking.name: attack.model_copy(update={"group": group})}
        params = attacking.params.model_copy(update={"attacks": smaller})
        search = replace(search, attacking=replace(attacking, params=params))
    return search, count


def tried(search: Search, device: Device, files: Sequence[str]) -> Trial:
    """Attack some images, and measure it; nothing is written."""
    attacking = search.attacking
    attack = attacking.params.attack(attacking.name)
    known = replace(search.known, name=attacking.name)
    with computing_threads(1), Writers(search.writers) as writers:
        with timed(device) as fixed:
            if attack.kind in LIBRARIES:
                import_module(LIBRARIES[attack.kind])
            attack.prepare(known)
            network = attacking.target.network()
        queries = 0
        with timed(device) as elapsed:
            for start in range(0, len(files), attack.group_size):
                group = files[start : start + attack.group_size]
                search.check(group)
                queries += int(attacking.rows(known, network, group, writers)["queries"].sum())
    return Trial(images=len(files), fixed=fixed.seconds, seconds=elapsed.seconds, queries=queries)


def start(folder: str, model: str | None = None) -> None:
    """Attack an image of a model without a change, as a stage does, but write nothing into the study.

    Without a model, only start the processes of an attack.
    """
    worker_processes(OPENING)
    if model is None:
        return
    study = AttackStudy(Path(folder))
    params = AllParams.read(study)
    asked = AttackParams(
        seed=params.attacks.seed,
        search_precision=params.attacks.search_precision,
        attacks={"none": NoAttack(images=1)},
        wrapped=params.attacks.wrapped,
    )
    opened = open_attack(study, asked, model, "none", None)
    with TemporaryDirectory() as out:
        attacking: Attacking = replace(opened.search.attacking, folder=AttackedFolder(Path(out) / "none"))
        search = replace(opened.search, attacking=attacking)
        others = OtherSearches(devices=[device_of(attacking.target.how.device)], open=None)
        attacking.run(search, opened.images, others)


def passes_tried(trial: Trial, most: Passes, left: int) -> Passes:
    """The passes of the images that are left, from those of a trial; `most`: of one image, at most.

    A search asks for gradients in the same share of its queries whether it ends early or not.
    """
    share = trial.queries / max(1, most.forward * trial.images)
    return Passes(forward=round(share * most.forward * left), backward=round(share * most.backward * left))


def probe_seconds(
    target: AttackedModel, params: AttackParams, others: Mapping[str, PixelNetwork], images: int
) -> float:
    """Seconds of an image while signs of gradient masking are looked for, on a number of images."""
    fewer = params.model_copy(update={"probe": params.probe.model_copy(update={"images": images})})
    with TemporaryDirectory() as out, timed(device_of(target.how.device)) as elapsed:
        probed(Attacking(fewer, PROBE, target, AttackedFolder(Path(out) / PROBE)), others)
    return elapsed.seconds / images
