"""The plan of `robustness evaluate`: answers of any models to the changed images of a set.

Changed images are made once for as many models as are shown them together: the first of these that lacks answers has
the seconds of making them.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.measure.command import Wanted
from cleanset.measure.run import lacks_weights
from cleanset.measure.specs import CommandModel, Spec
from cleanset.planning.clock import machine_of, speed_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.work import (
    IMAGE_BYTES,
    Cost,
    Passes,
    Plan,
    PlannedWork,
    Work,
    of_program,
    random_weights,
    with_start,
)
from cleanset.progress import tracked
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import LoadedModel, untrained
from cleanset.scoring.shards import MIN_SHARD_IMAGES
from cleanset.studies.robustness.answering import fit_together
from cleanset.studies.robustness.evaluation import EvaluationRun, Request
from cleanset.studies.robustness.families import CHANGING, ChangePlan
from cleanset.studies.robustness.planning import (
    ANSWER_BYTES,
    AnsweringSpeed,
    finished_images,
    make_two,
    seconds_of_making,
)

CODE = (
    "import sys, cleanset.cli, cleanset.measure.run; "
    "from cleanset.studies.robustness import planned_evaluation; planned_evaluation.start(sys.argv[1])"
)
"""Begins as the command does; its argument is made by `_begun`."""


def plan(edition: Edition, wanted: Wanted, out: Path, params: Path | None = None) -> Plan:
    """The plan of measuring models on changed images; `out`: whose finished answers are taken off.

    Nothing is written or downloaded. Raises CleansetError as `robustness evaluate` does before it loads a model.
    """
    asked = Request.read(edition, wanted, out, params)
    run = EvaluationRun(asked=asked, settings=settings_for(asked.score))
    planner = _Planner(run=run)
    begun = _begun(edition, wanted, params)
    works = planner.works(lambda: seconds_of_code(CODE, begun, is_separate=planner.device.is_separate))
    return Plan(name=asked.images.name, machine=machine_of(run.settings.devices), works=works, notes=planner.notes)


def _begun(edition: Edition, wanted: Wanted, params: Path | None) -> str:
    return json.dumps(
        [str(edition.folder), str(wanted.name), wanted.models, wanted.architecture, params and str(params)]
    )


def start(asked: str) -> None:
    """Read the images, and make two changed ones by worker processes; nothing is written."""
    folder, name, models, architecture, params = json.loads(asked)
    worker_processes(CHANGING)
    wanted = Wanted(name=name, models=models, architecture=architecture)
    request = Request.read(Edition(Path(folder)), wanted, Path(folder), None if params is None else Path(params))
    make_two(request.plans[0], request.sources, request.params)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A model of the request, and what it costs; its price is unknown if it could not be opened."""

    spec: Spec
    speed: AnsweringSpeed | CleansetError
    parameters: int = 0


@dataclass
class _Planner:
    """Plans the answers of each model to each family."""

    run: EvaluationRun
    notes: list[str] = field(default_factory=list)

    @property
    def device(self) -> Device:
        return self.run.settings.devices[0]

    def works(self, start: Callable[[], float]) -> list[PlannedWork]:
        """A row for each family and model; `start`: measures the seconds until the first model is read."""
        specs = self.run.asked.by_stem()
        models = [self._opened(spec, stem) for stem, spec in tracked(specs.items(), len(specs), "measuring")]
        found = list[PlannedWork]()
        for together in shown_together(models):
            for change in self.run.asked.plans:
                found += self._of_family(change, together)
        openings = sum(each.speed.opening for each in models if isinstance(each.speed, AnsweringSpeed))
        return with_start(found, lambda: start() + openings)

    def _opened(self, spec: Spec, stem: str) -> _Model:
        """A model that was read and asked about a few images, as the command does first."""
        if isinstance(spec, CommandModel):
            return _Model(spec=spec, speed=CleansetError(of_program(spec.text)))
        try:
            with timed(self.device) as opening:
                answering = None
                if lacks_weights(spec):
                    self.notes.append(random_weights(spec.text))
                    model: LoadedModel = untrained(spec.model)
                else:
                    answering = self.run.load(spec, stem)
                    model = answering.model
        except CleansetError as error:
            return _Model(spec=spec, speed=error)
        how = self.run.settings
        side = model.preprocessing.size
        measured = speed_of(model.network, side, self.device, precision=how.precision, batch=how.batch_size)
        speed = AnsweringSpeed(opening=opening.seconds, speed=measured, side=side, model=answering)
        return _Model(spec=spec, speed=speed, parameters=sum(each.numel() for each in model.network.parameters()))

    def _of_family(self, change: ChangePlan, models: Sequence[_Model]) -> Iterator[PlannedWork]:
        """The answers of models, which are shown the images together."""
        sides = {each.speed.side for each in models if isinstance(each.speed, AnsweringSpeed)}
        making: float | None = None
        for each in models:
            work = self._work(change, each)
            if isinstance(each.speed, CleansetError):
                yield PlannedWork(work=work, remark=str(each.speed))
                continue
            if work.state == "finished":
                yield PlannedWork(work=work)
                continue
            cost = each.speed.speed.cost(work.passes)
            if making is None and work.left:
                making = self._seconds_of_making(change, sides)
                cost += Cost(cores=making * work.left)
            yield PlannedWork(work=work, cost=cost)

    def _work(self, change: ChangePlan, model: _Model) -> Work:
        clean = len(change.images)
        images = len(change.names())
        answering = model.speed.model if isinstance(model.speed, AnsweringSpeed) else None
        work = Work(name=change.name, model=model.spec.text, images=images, tasks=-(-images // MIN_SHARD_IMAGES))
        if answering is not None:
            if self.run.is_finished(answering, change):
                return replace(work, state="finished")
            work = replace(work, finished=finished_images(answering, self.run.asked.params, change))
        return replace(
            work,
            passes=Passes(forward=work.left + clean),
            bytes_read=clean * IMAGE_BYTES,
            bytes_written=images * ANSWER_BYTES,
        )

    def _seconds_of_making(self, change: ChangePlan, sides: Collection[int]) -> float:
        asked = self.run.asked
        return seconds_of_making(change, asked.sources, asked.params, sides=sides, device=self.device)


def shown_together(models: Sequence[_Model]) -> list[list[_Model]]:
    """The models in passes over the images: of each as many as memory allows."""
    found = list[list[_Model]]()
    for each in models:
        if not found or not fit_together([*(other.parameters for other in found[-1]), each.parameters]):
            found.append([])
        found[-1].append(each)
    return found
