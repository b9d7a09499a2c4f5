"""The plan of a training study: the steps of its runs, and what they take here.

Measured are steps of the training loop itself, on the run's own images, after some that warm up; no file of a run is
read or written. Measured are, too, the reading of images that are then kept in memory, the validation after an epoch,
and the tests of some of the images left out.
"""

import math
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Generic

import torch
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.planning.clock import machine_of, now, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import IMAGE_BYTES, Cost, Passes, Plan, PlannedWork, Work
from cleanset.progress import TrainingStep, tracked
from cleanset.scoring.devices import Device
from cleanset.studies.training.finished import network_name
from cleanset.studies.training.fold_data import ProcessShare, read_fold
from cleanset.studies.training.loop import Batch, Outcome, Task, train
from cleanset.studies.training.params import grid_runs
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.spread import devices_of_folds
from cleanset.studies.training.state import StateFolder
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.studies.training.train import deterministic, device_named, task_of

if TYPE_CHECKING:
    from cleanset.studies.training.classification import Classification
    from cleanset.studies.training.segmentation.task import Segmentation

WARM_UP_STEPS = 5
"""Steps that are not timed first: memory is allocated, and libraries choose their algorithms."""
STEPS = 50
"""Steps that are timed."""
TESTED = 8
"""Images left out, at most, whose tests are timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """The times that were measured of a run, in seconds.

    Of a recipe that begins after clean epochs they are those after its begin, and so upper bounds for a whole run.
    """

    step: float
    validation: float
    opening: float
    """Until the first step of a fold: images that are found, and read where they are kept in memory, the network."""
    steps_per_epoch: int
    passes: Passes
    """Of a step."""
    validated: int = 0
    """Images of a validation."""
    testing: float = 0.0
    """Of all tests of a fold, at its end."""
    tested: int = 0
    """Images of these tests, each counted once for each scenario."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSteps:
    """The steps of a run as its settings have them; early stopping may leave some out."""

    folds: int
    steps: int
    """Of a fold."""
    epochs: int
    """Of a fold."""
    devices: int = 1
    """Those that share each batch; one of them validates and tests."""

    @classmethod
    def of(cls, run: Run, steps_per_epoch: int) -> "RunSteps":
        """The steps of a run."""
        steps = run.steps or steps_per_epoch * (run.epochs or 0)
        return cls(
            folds=len(run.fold_names()), steps=steps, epochs=math.ceil(steps / steps_per_epoch), devices=run.devices
        )

    def cost(self, times: StepTimes, start: float, ended: int = 0) -> Cost:
        """The cost of all folds, without opening those that have `ended`; `start`: seconds of the process."""
        of_fold = self.steps * times.step + self.epochs * times.validation + times.testing
        opening = (self.folds - ended) * times.opening
        return Cost(start=start + opening, device=self.folds * of_fold, gpu=None)

    def passes(self, times: StepTimes) -> Passes:
        """The passes of all folds."""
        evaluated = Passes(forward=self.epochs * times.validated + times.tested)
        return (times.passes * (self.steps * self.devices) + evaluated) * self.folds


def plan(study: TrainingStudy, grid: str | None, steps: int = STEPS) -> Plan:
    """The plan of a grid, of all stages without one; `steps`: of each run that are timed.

    Raises CleansetError for an unknown grid, and as training does.
    """
    inputs = StudyInputs.read(study)
    params = inputs.params
    states = stage_states(study.folder)
    device = device_named(params.device)
    names = list(params.runs) if grid is None else grid_runs(params.grids, params.runs, grid)
    works = [
        _planned(inputs, name, steps=steps, states=states, device=device)
        for name in tracked(names, len(names), "measuring")
    ]
    notes = []
    if any(params.run(name).early_stopping for name in names):
        notes.append("The estimate ignores early stopping: a run may take less.")
    if grid is None:
        data = without_network("data", "cleanset.studies.training.data", states)
        summary = without_network("summary", "cleanset.studies.training.summary", states)
        works = [data, *works, summary]
    name = str(study.folder) if grid is None else grid
    return Plan(name=name, machine=machine_of([device]), works=works, notes=notes)


def _planned(inputs: StudyInputs, name: str, *, steps: int, states: StageStates, device: Device) -> PlannedWork:
    run = inputs.params.run(name)
    stage = inputs.params.stage(name)
    work = Work(name=name, model=network_name(run.network), stage=stage, state=states.state(stage))
    if work.state == "finished":
        return PlannedWork(work=work)
    states_of_folds = [StateFolder(inputs.study.partial(name) / fold, {}) for fold in run.fold_names()]
    ended = sum(each.has_ended() for each in states_of_folds)
    if ended == len(states_of_folds):
        # its stage only takes over what is there
        return PlannedWork(work=work, cost=Cost(start=_start(device, 1)))
    try:
        times = measure(inputs, name, steps)
    except CleansetError as error:
        return PlannedWork(work=work, remark=f"{name}: {error}")
    epochs = sum(each.finished_epochs() for each in states_of_folds)
    epochs += ended * RunSteps.of(run, times.steps_per_epoch).epochs
    workers = len(devices_of_folds(inputs.params, len(states_of_folds) - ended))
    start = _start(device, workers)
    return planned_run(work, run, times, start=start, finished_epochs=epochs, ended_folds=ended)


def planned_run(
    work: Work,
    run: Run,
    times: StepTimes,
    *,
    start: float,
    finished_epochs: int = 0,
    ended_folds: int = 0,
) -> PlannedWork:
    """The plan of a run whose steps were measured.

    `start`: seconds of the process until it reads images; `finished_epochs`: of all folds of an interrupted run;
    `ended_folds`: those that are not opened again.
    """
    found = RunSteps.of(run, times.steps_per_epoch)
    images = found.folds * found.steps * run.batch
    finished = min(images, finished_epochs * times.steps_per_epoch * run.batch)
    share = 1 - finished / max(1, images)
    work = replace(
        work,
        images=images,
        finished=finished,
        passes=found.passes(times).scaled(share),
        bytes_read=(images - finished) * IMAGE_BYTES,
        bound="at most" if run.early_stopping or run.training_recipe.clean_epochs else "exact",
    )
    cost = found.cost(times, start, ended_folds)
    return PlannedWork(work=work, cost=replace(cost, device=share * cost.device))


def _start(device: Device, workers: int) -> float:
    """The seconds that the processes of some workers take until they open a fold.

    A server starts all but the first. Beside a GPU it does so while the first one opens its fold.
    """
    starts = 2 if workers > 1 and not device.is_separate else 1
    return starts * seconds_of_code("import cleanset.studies.training.train", is_separate=device.is_separate)


def measure(inputs: StudyInputs, name: str, steps: int) -> StepTimes:
    """Train the first fold of a run for some steps, and time them. Raises CleansetError as training does."""
    run = inputs.params.run(name)
    device = device_named(inputs.params.device)
    settings = run.model_copy(update={"steps": WARM_UP_STEPS + steps, "epochs": None, "early_stopping": None})
    with deterministic(inputs.params.threads), tempfile.TemporaryDirectory() as folder:
        with timed(device) as opening:
            # of several devices one is measured, on its part of each batch
            share = ProcessShare(0, run.devices)
            task = task_of(read_fold(inputs, name, run.fold_names()[0], device.torch, share=share))
        # mypy infers no type of batch from a union
        watched = _Timed(task, device, run.training_recipe.clean_epochs)  # type: ignore[misc]
        train(watched, settings, StateFolder(Path(folder), {}), watched.count)
        testing = _seconds_of_tests(task, device)
    # the first validation may read its images, too
    validation = watched.validations[-1] if watched.validations else 0.0
    return StepTimes(
        step=mean(watched.steps[WARM_UP_STEPS:]),
        validation=validation,
        opening=opening.seconds + watched.reading,
        steps_per_epoch=watched.steps_per_epoch,
        passes=watched.passes_of_step,
        validated=watched.validated,
        testing=testing,
        tested=task.tested_images(),
    )


def _seconds_of_tests(task: "Classification | Segmentation", device: Device) -> float:
    """The seconds that all tests of a fold take, from those of some images."""
    timed_images = task.tested_images(TESTED)
    if not timed_images:
        return 0.0
    # what is done once is done now: libraries are imported, photographs decoded
    task.test_table(None, 1)
    with timed(device) as taken:
        task.test_table(None, TESTED)
    # beside a GPU most of it is reading, which several processes do at once
    at_once = task.testing_processes if device.is_separate else 1
    return taken.seconds * task.tested_images() / timed_images / at_once


class _Timed(Generic[Batch]):
    """A task whose steps and validations are timed, in seconds; a step's time is without the validation before it.

    The images that go through its network are counted. The task is told epochs after its `clean_epochs`, so that all
    that is timed is under attack.
    """

    def __init__(self, task: Task[Batch], device: Device, clean_epochs: int = 0) -> None:
        self._task = task
        self._clean_epochs = clean_epochs
        self._device = device
        self._last = 0.0
        self._seen = Passes()
        self.network = task.network
        self.name = task.name
        self.steps_per_epoch = task.steps_per_epoch
        self.chosen_by = task.chosen_by
        self.steps: list[float] = []
        self.validations: list[float] = []
        self.passes_of_step = Passes()
        self.validated = 0
        self.reading = 0.0
        self.network.register_forward_hook(self._see)

    def _see(self, _: nn.Module, inputs: "tuple[Tensor, ...]", __: object) -> None:
        """Count the images of a pass; what is computed with gradients goes back, too."""
        images = len(inputs[0])
        self._seen += Passes(forward=images, backward=images if torch.is_grad_enabled() else 0)

    def batches(self, epoch: int) -> Iterable[Batch]:
        """The task's batches; those of the first epoch are timed until they can be taken."""
        begin = now(self._device)
        found = self._task.batches(epoch)
        seconds = now(self._device) - begin
        if epoch == 1:
            self.reading = seconds
        # the first step does not count it
        self._last += seconds
        return found

    def loss(self, network: nn.Module, batch: Batch, epoch: int) -> Outcome:
        """The task's loss."""
        self._seen = Passes()
        return self._task.loss(network, batch, epoch + self._clean_epochs)

    def count(self, _: TrainingStep) -> None:
        """Note the end of a step; the loss of each has been read, so that a GPU has finished its forward pass."""
        self.steps.append(self._lap())
        # the last batch of an epoch may be smaller
        if self._seen.forward > self.passes_of_step.forward:
            self.passes_of_step = self._seen

    def validate(self, epoch: int) -> Mapping[str, float]:
        """The task's validation, timed."""
        self._lap()
        self._seen = Passes()
        found = self._task.validate(epoch + self._clean_epochs)
        self.validations.append(self._lap())
        self.validated = self._seen.forward
        return found

    def _lap(self) -> float:
        """The seconds since the last lap, once the device has finished its work."""
        before = self._last
        self._last = now(self._device)
        return self._last - before
